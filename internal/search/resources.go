package search

import (
	"bytes"
	"context"
	"net/http"
	"net/url"

	"github.com/ecluse-gate/ecluse/internal/search/wire"
)

// Resource is one resource as the service shows it.
type Resource struct {
	Answer
	// Definition is the whole body, numbers as json.Number; nil when the answer had none that could
	// be read.
	Definition map[string]any
}

// Condition guards a write. The zero value is no condition.
type Condition struct{ ifMatch, ifNoneMatch string }

// IfAbsent lets a write through only when the resource does not exist.
func IfAbsent() Condition { return Condition{ifNoneMatch: "*"} }

// IfMatch lets a write through only when the resource still has the ETag.
func IfMatch(etag string) Condition { return Condition{ifMatch: etag} }

func (c Condition) header() http.Header {
	header := http.Header{}
	if c.ifMatch != "" {
		header.Set("If-Match", c.ifMatch)
	}
	if c.ifNoneMatch != "" {
		header.Set("If-None-Match", c.ifNoneMatch)
	}
	return header
}

// Get reads one resource of any collection.
func (c *Client) Get(ctx context.Context, kind Collection, name string, bounds Bounds) (*Resource, error) {
	address, err := c.service.ResourceURL(kind, name)
	if err != nil {
		return nil, err
	}
	return c.get(ctx, address, bounds)
}

func (c *Client) get(ctx context.Context, address string, bounds Bounds) (*Resource, error) {
	answer, document, err := c.exchange(ctx, call{method: http.MethodGet, url: address, accept: []int{http.StatusOK}}, bounds)
	return resource(answer, document, err)
}

// resource keeps what is known beside an error: nil only when there was no successful answer at
// all.
func resource(answer Answer, document map[string]any, err error) (*Resource, error) {
	if err != nil && (answer.Status < 200 || answer.Status > 299) {
		return nil, err
	}
	return &Resource{Answer: answer, Definition: document}, err
}

// Put creates or updates a knowledge source or base, asking for the representation. The result is
// not nil whenever the service answered 2xx, also beside an error: an acknowledgement with an
// unreadable body, or one that could not be recorded.
func (c *Client) Put(ctx context.Context, kind Collection, name string, definition []byte, condition Condition, bounds Bounds) (*Resource, error) {
	address, err := c.writable(kind, name)
	if err != nil {
		return nil, err
	}
	if _, err := wire.ParseDocument(definition); err != nil {
		return nil, &Error{Code: CodeRequestInvalid, Method: http.MethodPut, URL: address, Err: Reason("the definition is not one JSON object")}
	}
	header := condition.header()
	header.Set("Content-Type", "application/json")
	header.Set("Prefer", "return=representation")
	answer, document, err := c.exchange(ctx, call{
		method: http.MethodPut, url: address, header: header,
		body: bytes.NewReader(definition), length: int64(len(definition)), accept: []int{http.StatusOK, http.StatusCreated},
	}, bounds)
	return resource(answer, document, err)
}

// Delete removes a knowledge source or base. 200 and 204 are a success; 404 is an Error with that
// status.
func (c *Client) Delete(ctx context.Context, kind Collection, name string, condition Condition, bounds Bounds) (*Answer, error) {
	address, err := c.writable(kind, name)
	if err != nil {
		return nil, err
	}
	return c.remove(ctx, address, condition, bounds)
}

func (c *Client) remove(ctx context.Context, address string, condition Condition, bounds Bounds) (*Answer, error) {
	answer, _, err := c.exchange(ctx, call{
		method: http.MethodDelete, url: address, header: condition.header(),
		accept: []int{http.StatusOK, http.StatusNoContent}, document: documentNone,
	}, bounds)
	if answer.Status == 0 {
		return nil, err
	}
	return &answer, err
}

// writable gives the address of a resource that may be written: never a generated child (S144).
func (c *Client) writable(kind Collection, name string) (string, error) {
	if kind != KnowledgeSources && kind != KnowledgeBases {
		return "", &Error{Code: CodeRequestInvalid, Err: Reason("only knowledge sources and bases can be written")}
	}
	return c.service.ResourceURL(kind, name)
}

// Page is one page of a list.
type Page struct {
	Answer
	Values []map[string]any
	// Next is the link to the next page exactly as given, unchecked, or ""; see Trail.
	Next string
}

// List reads one page of a collection: the first when link is "", else the page of a link that a
// Trail has let through.
func (c *Client) List(ctx context.Context, kind Collection, link string, bounds Bounds) (*Page, error) {
	return c.page(ctx, c.service.CollectionURL(kind), link, bounds)
}

// page checks again that a link leads to the same list, so that the token never goes anywhere else.
func (c *Client) page(ctx context.Context, first, link string, bounds Bounds) (*Page, error) {
	if link == "" {
		link = first
	}
	base, err := url.Parse(first)
	if err != nil {
		return nil, continuation("the first page has no URL")
	}
	if err := sameList(base, link); err != nil {
		return nil, err
	}
	answer, document, err := c.exchange(ctx, call{method: http.MethodGet, url: link, accept: []int{http.StatusOK}}, bounds)
	if document == nil {
		return nil, err
	}
	page := &Page{Answer: answer}
	values, isList := document["value"].([]any)
	for _, value := range values {
		object, ok := value.(map[string]any)
		isList = isList && ok
		page.Values = append(page.Values, object)
	}
	next, isText := document["@odata.nextLink"].(string)
	if page.Next = next; !isList || (!isText && document["@odata.nextLink"] != nil) {
		return nil, malformed(CodeInvalidJSON, link, answer, "the page is not a list of objects with a link", err)
	}
	return page, err
}

// malformed is the error of a successful read whose document is not what was asked for; beside is
// the error that exchange returned with it.
func malformed(code, url string, answer Answer, reason string, beside error) *Error {
	return &Error{
		Code: code, Method: http.MethodGet, URL: url, Status: answer.Status, RequestID: answer.RequestID,
		ReceivedAt: answer.ReceivedAt, Sent: true, Err: Reason(reason), Persistence: persistenceOf(beside),
	}
}

func persistenceOf(err error) error {
	if own, ok := err.(*Error); ok && own != nil { //nolint:errorlint // exchange returns exactly this type
		return own.Persistence
	}
	return nil
}

// SourceStatus is the state of a knowledge source.
type SourceStatus struct {
	Answer
	Kind            string // "" where the service leaves it out
	Synchronization string // creating, active or deleting
	// Capacity is what the source can still take, nil where the version or the kind does not tell.
	Capacity *wire.Capacity
	Document map[string]any
}

// GetSourceStatus reads the state of a knowledge source.
func (c *Client) GetSourceStatus(ctx context.Context, source string, bounds Bounds) (*SourceStatus, error) {
	address, err := c.service.SourceStatusURL(source)
	if err != nil {
		return nil, err
	}
	found, err := c.get(ctx, address, bounds)
	if found == nil || found.Definition == nil {
		return nil, err
	}
	status := &SourceStatus{Answer: found.Answer, Document: found.Definition}
	status.Kind, _ = found.Definition["kind"].(string)
	status.Synchronization, _ = found.Definition["synchronizationStatus"].(string)
	if capacity, ok := found.Definition["fileCapacity"].(map[string]any); ok {
		room, problem := wire.ParseCapacity(capacity)
		if problem != nil {
			return nil, malformed(CodeInvalidJSON, address, found.Answer, problem.Error(), err)
		}
		status.Capacity = room
	}
	return status, err
}
