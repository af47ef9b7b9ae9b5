package service

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
func (v *Service) resources(c *call) Answer {
	switch {
	case c.r.Method == http.MethodGet && !c.route.hasKey:
		return v.listResources(c)
	case c.r.Method == http.MethodPost && !c.route.hasKey:
		return v.putResource(c)
	case c.r.Method == http.MethodPut && c.route.hasKey:
		return v.putResource(c)
	case c.r.Method == http.MethodGet:
		return v.getResource(c)
	case c.r.Method == http.MethodDelete && c.route.hasKey:
		return v.deleteResource(c)
	}
	return methodNotAllowed()
}

func (c *call) what() string {
	if c.route.collection == "knowledgebases" {
		return "knowledge base"
	}
	return "knowledge source"
}

// table gives the resources that the call is about. Call with Service.mu held.
func (v *Service) table(c *call) map[string]*resource {
	if c.route.collection == "knowledgebases" {
		return v.store.bases
	}
	return v.store.sources
}

func (v *Service) getResource(c *call) Answer {
	v.mu.Lock()
	defer v.mu.Unlock()
	found, ok := v.table(c)[c.route.key]
	if !ok {
		return notFound(c.what(), c.route.key)
	}
	shown, _ := redact(found.definition).(map[string]any)
	return v.show(c, http.StatusOK, found, shown)
}

// show answers a definition with what the service adds to it.
func (v *Service) show(c *call, status int, found *resource, definition map[string]any) Answer {
	shown := maps.Clone(definition)
	shown["@odata.context"] = v.Base(c.r) + "/$metadata#" + c.route.collection + "/$entity"
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
	out.Header.Set("ETag", found.etag)
	if c.r.Header.Get("Prefer") == "return=representation" {
		out.Header.Set("Preference-Applied", "return=representation")
	}
	return out
}

func (v *Service) putResource(c *call) Answer {
	definition, problem := readObject(c.r.Body, maxDefinitionBytes)
	if problem != nil {
		return *problem
	}
	name, _ := definition["name"].(string)
	if name == "" {
		name = c.route.key
	}
	if c.route.hasKey && name != c.route.key {
		return Refuse(http.StatusBadRequest, "InvalidName", "the name in the body differs from the name in the URL")
	}
	if n := utf8.RuneCountInString(name); n < 1 || n > 128 {
		return Refuse(http.StatusBadRequest, "InvalidName", "a name has 1 to 128 characters")
	}
	definition["name"] = name
	stripServiceFields(definition)

	v.mu.Lock()
	defer v.mu.Unlock()
	old := v.table(c)[name]
	if old != nil && c.r.Method == http.MethodPost {
		return Refuse(http.StatusConflict, "ResourceNameAlreadyInUse", "a "+c.what()+" named '"+name+"' exists")
	}
	if failed := precondition(c.r.Header, old); failed != nil {
		return *failed
	}
	if bad := v.checkDefinition(c, name, definition, old); bad != nil {
		return *bad
	}
	return v.keep(c, name, definition, old)
}

// keep stores a checked definition. Call with Service.mu held.
func (v *Service) keep(c *call, name string, definition map[string]any, old *resource) Answer {
	fresh, status := old, http.StatusOK
	if fresh == nil {
		fresh, status = &resource{name: name, created: v.now()}, http.StatusCreated
		v.table(c)[name] = fresh
	}
	fresh.definition, fresh.etag = definition, v.newETag()
	if c.route.collection == "knowledgesources" {
		for collection, generated := range fresh.generated() {
			if v.store.children[collection][generated] == nil {
				v.store.children[collection][generated] = &child{name: generated, etag: v.newETag(), source: name}
			}
		}
	}
	return v.show(c, status, fresh, definition)
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
func precondition(header http.Header, old *resource) *Answer {
	failed := Refuse(http.StatusPreconditionFailed, "PreconditionFailed", "the precondition is not met")
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

func (v *Service) checkDefinition(c *call, name string, definition map[string]any, old *resource) *Answer {
	bad := func(status int, code, message string) *Answer { a := Refuse(status, code, message); return &a }
	if c.route.collection == "knowledgebases" {
		if old == nil && len(v.store.bases) >= v.limits.bases {
			return quota("knowledge bases", v.limits.bases)
		}
		names := referred(definition)
		if len(names) > v.limits.sourcesPerBase {
			return bad(http.StatusBadRequest, "InvalidRequestParameter", fmt.Sprintf("at most %d knowledge sources per base", v.limits.sourcesPerBase))
		}
		for _, source := range names {
			if v.store.sources[source] == nil {
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
	if old == nil && len(v.store.sources) >= v.limits.sources {
		return quota("knowledge sources", v.limits.sources)
	}
	return nil
}

// quota answers like the service: a 429 that no wait will cure, with an empty code
// (azure-rest-api-specs issue 15178).
func quota(what string, limit int) *Answer {
	a := Refuse(http.StatusTooManyRequests, "", fmt.Sprintf("the quota of %d %s is exceeded for this service", limit, what))
	return &a
}

func (v *Service) deleteResource(c *call) Answer {
	v.mu.Lock()
	defer v.mu.Unlock()
	name := c.route.key
	old := v.table(c)[name]
	if old == nil {
		return notFound(c.what(), name)
	}
	if failed := precondition(c.r.Header, old); failed != nil {
		return *failed
	}
	if c.route.collection == "knowledgesources" {
		if users := v.store.users(name); len(users) > 0 {
			return Refuse(http.StatusConflict, "ResourceInUse", "knowledge source '"+name+"' is used by knowledge base "+strings.Join(users, ", "))
		}
		for collection, generated := range old.generated() {
			delete(v.store.children[collection], generated)
		}
	}
	delete(v.table(c), name)
	return noContent()
}

func (v *Service) listResources(c *call) Answer {
	v.mu.Lock()
	defer v.mu.Unlock()
	table := v.table(c)
	return v.page(c, slices.Sorted(maps.Keys(table)), func(name string) any {
		shown, _ := redact(table[name].definition).(map[string]any)
		shown["@odata.etag"] = table[name].etag
		return shown
	})
}

// readObject reads a JSON object of bounded size.
func readObject(body io.Reader, limit int64) (map[string]any, *Answer) {
	bad := Refuse(http.StatusBadRequest, "InvalidRequestBody", "the body must be one JSON object")
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, &bad
	}
	if int64(len(data)) > limit {
		large := Refuse(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "the definition is too large")
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

// redact copies a JSON value with secrets hidden and one slash off the end of resource addresses,
// as a GET shows them.
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
