package signin_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/emulator/emulatortest"
	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/search/signin"
)

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	failed, ok := errors.AsType[*search.Error](err)
	if !ok || failed.Code != code {
		t.Fatalf("error is %v, want code %s", err, code)
	}
}

// S48: a token file is read each time; what is no token in a regular file is refused.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	e := emulatortest.New(t, emulatortest.Options{Token: "from-file"})
	endpoint, err := search.ParseEndpoint(emulatortest.Socket(t, e), true)
	if err != nil {
		t.Fatal(err)
	}
	client, err := search.New(search.Options{Service: search.Service{Endpoint: endpoint, Profile: search.ProfileGA}, Tokens: signin.File(path)})
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, client.Authenticate(t.Context()), search.CodeAuthenticationFailed)
	for content, ok := range map[string]bool{"": false, "  \n": false, "two words": false, strings.Repeat("a", search.MaxTokenBytes+1): false} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := client.Authenticate(t.Context()); (err == nil) != ok {
			t.Errorf("%.20q: %v", content, err)
		}
	}
	if len(e.Requests()) != 0 {
		t.Error("a request was sent without a token")
	}
	if err := os.WriteFile(path, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := client.Authenticate(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = client.Get(t.Context(), search.KnowledgeSources, "manuals", search.Bounds{})
	if failed, ok := errors.AsType[*search.Error](err); !ok || failed.Status != http.StatusNotFound {
		t.Errorf("with the token of the file: %v", err)
	}
	wantCode(t, failToken(t, signin.File(t.TempDir())), search.CodeAuthenticationFailed)
}

func failToken(t *testing.T, source search.TokenSource) error {
	t.Helper()
	token, err := source.Token(t.Context(), search.SearchAudience)
	if err == nil {
		t.Fatalf("got a token: %v", token)
	}
	return err
}

// fakeCLI puts a command named az on the path that does what the script says.
func fakeCLI(t *testing.T, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for az is a shell script")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "az"), []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // a command must be executable
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+"/usr/bin"+string(os.PathListSeparator)+"/bin")
}

// S48: the Azure CLI gives the token for the audience; absent and failing it is told apart.
func TestCLI(t *testing.T) {
	source, err := signin.New(signin.CredentialCLI)
	if err != nil {
		t.Fatal(err)
	}
	fakeCLI(t, `case "$*" in *"https://search.azure.com"*) echo '{"accessToken":"from-az","expiresOn":"2099-01-01 00:00:00.000000","expires_on":4070908800}';; *) exit 1;; esac`)
	token, err := source.Token(t.Context(), search.SearchAudience)
	if err != nil || token.Expires.Year() != 2099 {
		t.Fatalf("%v, %v", token.Expires, err)
	}
	fakeCLI(t, `echo "ERROR: secret words" >&2; exit 1`)
	err = failToken(t, source)
	wantCode(t, err, search.CodeAuthenticationFailed)
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the CLI's words are shown: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	wantCode(t, failToken(t, source), search.CodeCLIUnavailable)
}

// S48: credentials without their settings fail at once, and name what is missing.
func TestIncompleteSettings(t *testing.T) {
	for _, name := range []string{"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE"} {
		t.Setenv(name, "")
		_ = os.Unsetenv(name) // Setenv restores it afterwards
	}
	for _, credential := range []signin.Credential{signin.CredentialEnvironment, signin.CredentialWorkload, "browser"} {
		_, err := signin.New(credential)
		wantCode(t, err, search.CodeAuthenticationFailed)
	}
	if _, err := signin.New(signin.CredentialEnvironment); !strings.Contains(err.Error(), "AZURE_TENANT_ID") {
		t.Errorf("it does not say what is missing: %v", err)
	}
	if _, err := signin.New(signin.CredentialManaged); err != nil {
		t.Errorf("managed identity: %v", err)
	}
}
