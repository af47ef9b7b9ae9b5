package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

const maxDefinitionBytes = 1 << 20

// resources serves knowledge sources and knowledge bases, which behave alike.
func (e *Emulator) resources(c *call) answer {
	switch {
	case c.r.Method == http.MethodGet && !c.route.hasKey:
		return e.listResources(c)
	case c.r.Method == http.MethodPost && !c.route.hasKey:
		return e.putResource(c)
	case c.r.Method == http.MethodPut && c.route.hasKey:
		return e.putResource(c)
	case c.r.Method == http.MethodGet:
		return e.getResource(c)
	case c.r.Method == http.MethodDelete && c.route.hasKey:
		return e.deleteResource(c)
	}
	return methodNotAllowed()
}

func (c *call) what() string {
	if c.route.collection == "knowledgebases" {
		return "knowledge base"
	}
	return "knowledge source"
}

// table gives the resources that the call is about. Call with e.mu held.
func (e *Emulator) table(c *call) map[string]*resource {
	if c.route.collection == "knowledgebases" {
		return e.store.bases
	}
	return e.store.sources
}

func (e *Emulator) getResource(c *call) answer {
	e.mu.Lock()
	defer e.mu.Unlock()
	found, ok := e.table(c)[c.route.key]
	if !ok {
		return notFound(c.what(), c.route.key)
	}
	shown, _ := redact(found.definition).(map[string]any)
	return e.show(c, http.StatusOK, found, shown)
}

// show answers a definition with what the service adds to it.
func (e *Emulator) show(c *call, status int, found *resource, definition map[string]any) answer {
	shown := maps.Clone(definition)
	shown["@odata.context"] = e.base(c.r) + "/$metadata#" + c.route.collection + "/$entity"
	shown["@odata.etag"] = found.etag
	if _, given := shown["encryptionKey"]; !given {
		shown["encryptionKey"] = nil
	}
	if created := found.createdResources(); len(created) > 0 {
		key := found.kind() + "Parameters"
		parameters, _ := shown[key].(map[string]any)
		parameters = maps.Clone(parameters)
		if parameters == nil {
			parameters = map[string]any{}
		}
		parameters["createdResources"] = created
		shown[key] = parameters
	}
	out := reply(status, shown)
	out.header.Set("ETag", found.etag)
	if c.r.Header.Get("Prefer") == "return=representation" {
		out.header.Set("Preference-Applied", "return=representation")
	}
	return out
}

func (e *Emulator) putResource(c *call) answer {
	definition, problem := readObject(c.r.Body, maxDefinitionBytes)
	if problem != nil {
		return *problem
	}
	name, _ := definition["name"].(string)
	if name == "" {
		name = c.route.key
	}
	if c.route.hasKey && name != c.route.key {
		return refuse(http.StatusBadRequest, "InvalidName", "the name in the body is not the name in the address")
	}
	if n := utf8.RuneCountInString(name); n < 1 || n > 128 {
		return refuse(http.StatusBadRequest, "InvalidName", "a name has 1 to 128 characters")
	}
	definition["name"] = name
	stripServiceFields(definition)

	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.table(c)[name]
	if old != nil && c.r.Method == http.MethodPost {
		return refuse(http.StatusConflict, "ResourceNameAlreadyInUse", "a "+c.what()+" named '"+name+"' exists")
	}
	if failed := precondition(c.r.Header, old); failed != nil {
		return *failed
	}
	if bad := e.checkDefinition(c, name, definition, old); bad != nil {
		return *bad
	}
	return e.keep(c, name, definition, old)
}

// keep stores a checked definition. Call with e.mu held.
func (e *Emulator) keep(c *call, name string, definition map[string]any, old *resource) answer {
	fresh, status := old, http.StatusOK
	if fresh == nil {
		fresh, status = &resource{name: name, created: e.now()}, http.StatusCreated
		e.table(c)[name] = fresh
	}
	fresh.definition, fresh.etag = definition, e.newETag()
	if c.route.collection == "knowledgesources" {
		for collection, generated := range fresh.generated() {
			if e.store.children[collection][generated] == nil {
				e.store.children[collection][generated] = &child{name: generated, etag: e.newETag(), source: name}
			}
		}
	}
	return e.show(c, status, fresh, definition)
}

func stripServiceFields(definition map[string]any) {
	for key := range definition {
		if strings.HasPrefix(key, "@odata.") {
			delete(definition, key)
		}
	}
	for key, value := range definition {
		if parameters, ok := value.(map[string]any); ok && strings.HasSuffix(key, "Parameters") {
			delete(parameters, "createdResources")
		}
	}
}

// precondition checks If-Match and If-None-Match; nil means go on.
func precondition(header http.Header, old *resource) *answer {
	failed := refuse(http.StatusPreconditionFailed, "PreconditionFailed", "the resource is not in the state that the condition names")
	if none := header.Get("If-None-Match"); none != "" && old != nil && (none == "*" || listsTag(none, old.etag)) {
		return &failed
	}
	if want := header.Get("If-Match"); want != "" && (old == nil || (want != "*" && !listsTag(want, old.etag))) {
		return &failed
	}
	return nil
}

func listsTag(list, etag string) bool {
	for tag := range strings.SplitSeq(list, ",") {
		if tag = strings.TrimSpace(tag); tag == etag || `"`+tag+`"` == etag {
			return true
		}
	}
	return false
}

func (e *Emulator) checkDefinition(c *call, name string, definition map[string]any, old *resource) *answer {
	bad := func(status int, code, message string) *answer { a := refuse(status, code, message); return &a }
	if c.route.collection == "knowledgebases" {
		if old == nil && len(e.store.bases) >= e.limits.bases {
			return quota("knowledge bases", e.limits.bases)
		}
		names := referred(definition)
		if len(names) > e.limits.sourcesPerBase {
			return bad(http.StatusBadRequest, "InvalidRequestParameter", fmt.Sprintf("at most %d knowledge sources per base", e.limits.sourcesPerBase))
		}
		for _, source := range names {
			if e.store.sources[source] == nil {
				return bad(http.StatusBadRequest, "InvalidRequestParameter", "knowledge source '"+source+"' does not exist")
			}
		}
		return nil
	}
	candidate := &resource{name: name, definition: definition}
	if candidate.kind() == "" || candidate.parameters() == nil {
		return bad(http.StatusBadRequest, "InvalidRequestParameter", "a knowledge source has a kind and the parameters of that kind")
	}
	if old != nil && old.kind() != candidate.kind() {
		return bad(http.StatusBadRequest, "OperationNotAllowed", "the kind of a knowledge source cannot change")
	}
	ingestion, _ := candidate.parameters()["ingestionParameters"].(map[string]any)
	if _, given := ingestion["networkAccessMode"]; given && candidate.kind() == "file" {
		return bad(http.StatusBadRequest, "InvalidRequestParameter", "networkAccessMode does not apply to a file knowledge source")
	}
	if old == nil && len(e.store.sources) >= e.limits.sources {
		return quota("knowledge sources", e.limits.sources)
	}
	return nil
}

// quota answers like the service: a 429 that no wait will cure, with an empty code (azure-rest-api-specs issue 15178).
func quota(what string, limit int) *answer {
	a := refuse(http.StatusTooManyRequests, "", fmt.Sprintf("the quota of %d %s is exceeded for this service", limit, what))
	return &a
}

func (e *Emulator) deleteResource(c *call) answer {
	e.mu.Lock()
	defer e.mu.Unlock()
	name := c.route.key
	old := e.table(c)[name]
	if old == nil {
		return notFound(c.what(), name)
	}
	if failed := precondition(c.r.Header, old); failed != nil {
		return *failed
	}
	if c.route.collection == "knowledgesources" {
		if users := e.store.users(name); len(users) > 0 {
			return refuse(http.StatusConflict, "ResourceInUse", "knowledge source '"+name+"' is used by knowledge base "+strings.Join(users, ", "))
		}
		for collection, generated := range old.generated() {
			delete(e.store.children[collection], generated)
		}
	}
	delete(e.table(c), name)
	return noContent()
}

func (e *Emulator) listResources(c *call) answer {
	e.mu.Lock()
	defer e.mu.Unlock()
	table := e.table(c)
	return e.page(c, slices.Sorted(maps.Keys(table)), func(name string) any {
		shown, _ := redact(table[name].definition).(map[string]any)
		shown["@odata.etag"] = table[name].etag
		return shown
	})
}

// readObject reads a JSON object of bounded size.
func readObject(body io.Reader, limit int64) (map[string]any, *answer) {
	bad := refuse(http.StatusBadRequest, "InvalidRequestBody", "the body must be one JSON object")
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, &bad
	}
	if int64(len(data)) > limit {
		large := refuse(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "the definition is too large")
		return nil, &large
	}
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	object := map[string]any{}
	if err := decoder.Decode(&object); err != nil || object == nil {
		return nil, &bad
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, &bad
	}
	return object, nil
}

// redact copies a JSON value with secrets hidden and one slash off the end of resource addresses, as a GET shows them.
func redact(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			out[key] = redactField(key, inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = redact(inner)
		}
		return out
	}
	return value
}

func redactField(key string, value any) any {
	text, isText := value.(string)
	switch strings.ToLower(key) {
	case "apikey", "applicationsecret", "accountkey", "connectionstring":
		if value != nil {
			return "<redacted>"
		}
	case "resourceuri", "uri":
		if isText {
			return strings.TrimSuffix(text, "/")
		}
	}
	return redact(value)
}
