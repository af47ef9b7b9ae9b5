package search

import (
	"context"
	"errors"
	"net/http"

	"github.com/ecluse-gate/ecluse/internal/requestid"
)

// File is one file record of a knowledge source.
type File struct {
	// ID is the service's id, "" where absent; see SafeID.
	ID   string
	Name string
	// Bytes is the size of the file, -1 where absent.
	Bytes int64
	// Failed means that errorMessage is there and not null. Its text is the service's and stays in
	// Fields.
	Failed   bool
	Metadata map[string]string
	// Fields are those of the eight fields of the inventory digest (S64) that are present, as they
	// came.
	Fields map[string]any
}

// SafeID reports whether a file id may be stored and sent: the form of a safe request id (S36,
// S67).
func SafeID(id string) bool { return requestid.Safe(id) }

// inventoryFields are the fields of S64.
func inventoryFields() []string {
	return []string{"fileId", "fileName", "prefix", "metadata", "parsingMode", "extractionMode", "fileSizeBytes", "errorMessage"}
}

// parseFile reads one record; a field of the wrong type is an error, an absent one is not.
func parseFile(record map[string]any) (File, error) {
	file := File{Bytes: -1, Fields: map[string]any{}}
	for _, name := range inventoryFields() {
		value, given := record[name]
		if !given {
			continue
		}
		file.Fields[name] = value
		if err := file.set(name, value); err != nil {
			return File{}, err
		}
	}
	return file, nil
}

// FileOf reads a file record from the document of an answer, for a Recorder that keeps what an
// upload's answer proved. false when it is none.
func FileOf(document map[string]any) (File, bool) {
	if document == nil {
		return File{}, false
	}
	file, err := parseFile(document)
	return file, err == nil
}

func (f *File) set(name string, value any) error {
	if value == nil {
		return nil
	}
	text, isText := value.(string)
	switch name {
	case "fileId":
		f.ID = text
	case "fileName":
		f.Name = text
	case "fileSizeBytes":
		n, ok := whole(value)
		if !ok || n < 0 {
			return errors.New("fileSizeBytes is not a size")
		}
		f.Bytes = n
		return nil
	case "errorMessage":
		f.Failed = true
	case "metadata":
		return f.setMetadata(value)
	}
	if !isText {
		return errors.New(name + " is not a string")
	}
	return nil
}

func (f *File) setMetadata(value any) error {
	object, ok := value.(map[string]any)
	if !ok {
		return errors.New("metadata is not an object")
	}
	f.Metadata = make(map[string]string, len(object))
	for key, entry := range object {
		text, ok := entry.(string)
		if !ok {
			return errors.New("metadata is not a map of strings")
		}
		f.Metadata[key] = text
	}
	return nil
}

// FilePage is one page of an inventory.
type FilePage struct {
	Answer
	Files []File
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
		file, problem := parseFile(record)
		if problem != nil {
			return nil, &Error{
				Code: CodeFileListInvalid, Method: http.MethodGet, URL: firstOf(link, first), Status: page.Status, RequestID: page.RequestID,
				ReceivedAt: page.ReceivedAt, Sent: true, Err: Reason(problem.Error()), Persistence: persistenceOf(err),
			}
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
	File *File
	// BodyUnreadable means a 200 or 201 whose body was too big, late, broken or not JSON.
	BodyUnreadable bool
}

// UploadFile sends a file to a source: one POST, 200 and 201 are a success. The result is not nil
// whenever the service answered 200 or 201, also beside an error (S77, S105). A body that is JSON
// but no file record is a success without File.
func (c *Client) UploadFile(ctx context.Context, source string, upload Upload, bounds Bounds) (*FileAnswer, error) {
	address, err := c.service.UploadURL(source)
	if err != nil {
		return nil, err
	}
	body, err := upload.open()
	if err != nil {
		return nil, &Error{Code: CodeRequestInvalid, Method: http.MethodPost, URL: address, Err: err}
	}
	answer, document, err := c.exchange(ctx, call{
		method: http.MethodPost, url: address, header: http.Header{"Content-Type": {body.contentType}}, body: body, length: body.length,
		accept: []int{http.StatusOK, http.StatusCreated}, document: documentOptional,
	}, bounds)
	if answer.Status != http.StatusOK && answer.Status != http.StatusCreated {
		return nil, err
	}
	out := &FileAnswer{Answer: answer}
	if failed, ok := errors.AsType[*Error](err); ok {
		out.BodyUnreadable = failed.Code != CodePersistence
	}
	if file, ok := FileOf(document); ok {
		out.File = &file
	}
	return out, err
}
