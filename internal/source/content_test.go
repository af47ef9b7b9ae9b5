package source

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/source/corpus"
)

// S70: a local file that the disk does not give while it is being sent is named with the file and
// the cause; to the request it is only content that is not what was announced, which is drift.
func TestLocalContentRemembersItsFailure(t *testing.T) {
	c := &localContent{Reader: io.MultiReader(strings.NewReader("half"), iotest.ErrReader(syscall.EIO))}
	if _, err := io.ReadAll(c); !errors.Is(err, syscall.EIO) || !errors.Is(c.failed, syscall.EIO) {
		t.Errorf("%v, remembered %v", err, c.failed)
	}
	whole := &localContent{Reader: strings.NewReader("whole")}
	if _, err := io.ReadAll(whole); err != nil || whole.failed != nil {
		t.Errorf("%v, remembered %v", err, whole.failed)
	}
	sent := &search.Error{Code: search.CodeContentChanged, Method: http.MethodPost, Sent: true}
	if f := explain(sent); f.code != corpus.CodeDrift {
		t.Errorf("%+v", f)
	}
	f := explain(errors.Join(corpus.Unreadable("a.txt", c.failed), sent))
	if f.code != corpus.CodeUnreadable || !strings.Contains(f.message, `"a.txt" cannot be read: input/output error`) {
		t.Errorf("%+v", f)
	}
}
