package search

import (
	"context"
	"errors"
	"net/http"

	"github.com/ecluse-gate/ecluse/internal/search/wire"
)

// FilePage is one page of an inventory.
type FilePage struct {
	Answer
	Files []wire.File
	// Next is the link to the next page exactly as given, unchecked, or ""; see Trail.
	Next string
}

// ListFiles reads one page of a source's files: the first when link is "", else the page of a link
// that a Trail has let through. What is no list of file records is file-list-invalid (S62).
func (c *Client) ListFiles(ctx context.Context, source, link string, bounds Bounds) (*FilePage, error) {
	first, err := c.service.InventoryURL(source)
	if err != nil {
		return nil, err
	}
	page, err := c.page(ctx, first, link, bounds)
	if page == nil {
		return nil, listProblem(err)
	}
	out := &FilePage{Answer: page.Answer, Next: page.Next}
	for _, record := range page.Values {
		file, problem := wire.ParseFile(record)
		if problem != nil {
			return nil, malformed(CodeFileListInvalid, firstOf(link, first), page.Answer, problem.Error(), err)
		}
		out.Files = append(out.Files, file)
	}
	return out, err
}

// listProblem renames what S62 calls by another name: a 2xx that is not 200, and a body of the
// wrong shape.
func listProblem(err error) error {
	failed, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	odd := failed.Code == CodeHTTP && failed.Status > 200 && failed.Status < 300
	if _, own := errors.AsType[Reason](failed.Err); odd || (own && failed.Code == CodeInvalidJSON) {
		failed.Code = CodeFileListInvalid
	}
	return failed
}

// FileAnswer is the service's answer to an upload.
type FileAnswer struct {
	Answer
	// File is the record of the body, nil when the body was empty, unreadable or no record.
	File *wire.File
	// BodyUnreadable means a 200 or 201 whose body was too big, late, broken or not JSON.
	BodyUnreadable bool
}

// UploadFile sends a file to a source: one POST, 200 and 201 are a success. The result is not nil
// whenever the service answered 200 or 201, also beside an error (S77, S105). A body that is JSON
// but no file record is a success without File.
func (c *Client) UploadFile(ctx context.Context, source string, upload wire.Upload, bounds Bounds) (*FileAnswer, error) {
	address, err := c.service.UploadURL(source)
	if err != nil {
		return nil, err
	}
	body, err := upload.Body()
	if err != nil {
		return nil, &Error{Code: CodeRequestInvalid, Method: http.MethodPost, URL: address, Err: Reason(err.Error())}
	}
	answer, document, err := c.exchange(ctx, call{
		method: http.MethodPost, url: address, header: http.Header{"Content-Type": {body.ContentType}}, body: body, length: body.Length,
		accept: []int{http.StatusOK, http.StatusCreated}, document: documentOptional,
	}, bounds)
	if answer.Status != http.StatusOK && answer.Status != http.StatusCreated {
		return nil, err
	}
	out := &FileAnswer{Answer: answer}
	if failed, ok := errors.AsType[*Error](err); ok {
		out.BodyUnreadable = failed.Code != CodePersistence
	}
	if file, err := wire.ParseFile(document); err == nil {
		out.File = &file
	}
	return out, err
}
