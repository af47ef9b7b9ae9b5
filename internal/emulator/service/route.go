package service

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// API versions that the emulated service speaks.
const (
	VersionPreview = "2026-08-01-preview"
	VersionGA      = "2026-10-01"
)

// call is one authorised request with its address taken apart.
type call struct {
	r       *http.Request
	version string
	route   route
}

// route is collection('key')/sub('subKey'), in either spelling.
type route struct {
	collection, key string
	sub, subKey     string
	hasKey          bool
	hasSubKey       bool
}

// Perform carries out the request as the service would.
func (v *Service) Perform(r *http.Request) Answer {
	if reply, ok := v.authorize(r); !ok {
		return reply
	}
	version := r.URL.Query()["api-version"]
	if len(version) != 1 || (version[0] != VersionPreview && version[0] != VersionGA) {
		return Refuse(http.StatusBadRequest, "InvalidApiVersion", "api-version must be given once, as "+VersionPreview+" or "+VersionGA)
	}
	where, ok := parseRoute(r.URL.EscapedPath())
	if !ok {
		return Refuse(http.StatusNotFound, "NotFound", "no such path on this service")
	}
	return v.dispatch(&call{r: r, version: version[0], route: where})
}

func (v *Service) authorize(r *http.Request) (Answer, bool) {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(kind, "Bearer") || token == "" || (v.options.Token != "" && token != v.options.Token) {
		reply := Refuse(http.StatusUnauthorized, "Unauthorized", "send Authorization: Bearer with any non-empty token")
		reply.Header.Set("WWW-Authenticate", `Bearer resource_id="https://search.azure.com"`)
		return reply, false
	}
	return Answer{}, true
}

func (v *Service) dispatch(c *call) Answer {
	w := c.route
	switch {
	case w.collection == "knowledgesources" && w.sub == "files":
		return v.files(c)
	case w.collection == "knowledgesources" && w.sub == "status" && !w.hasSubKey:
		return v.sourceStatus(c)
	case w.sub == "" && (w.collection == "knowledgesources" || w.collection == "knowledgebases"):
		return v.resources(c)
	case w.collection == "indexers" && (w.sub == "search.status" || w.sub == "status") && !w.hasSubKey:
		return v.indexerStatus(c)
	case w.sub == "" && isChildKind(w.collection):
		return v.children(c)
	}
	return Refuse(http.StatusNotFound, "NotFound", "no such path on this service")
}

func isChildKind(collection string) bool {
	switch collection {
	case "indexes", "indexers", "skillsets", "datasources":
		return true
	}
	return false
}

// parseRoute reads /name('key')/sub('key') and /name/key/sub/key, mixed as one likes. A key may
// hold anything once decoded.
func parseRoute(escaped string) (route, bool) {
	var parts []route
	for raw := range strings.SplitSeq(strings.TrimPrefix(escaped, "/"), "/") {
		text, err := url.PathUnescape(raw)
		if err != nil || text == "" {
			return route{}, false
		}
		part := route{collection: text}
		if name, rest, found := strings.Cut(text, "('"); found && name != "" && strings.HasSuffix(rest, "')") {
			part = route{collection: name, key: strings.ReplaceAll(strings.TrimSuffix(rest, "')"), "''", "'"), hasKey: true}
		}
		parts = append(parts, part)
	}
	out := parts[0]
	parts = parts[1:]
	if !out.hasKey && len(parts) > 0 {
		out.key, out.hasKey, parts = parts[0].collection, true, parts[1:]
	}
	if len(parts) > 0 {
		out.sub, out.subKey, out.hasSubKey, parts = parts[0].collection, parts[0].key, parts[0].hasKey, parts[1:]
	}
	if out.sub != "" && !out.hasSubKey && len(parts) > 0 {
		out.subKey, out.hasSubKey, parts = parts[0].collection, true, parts[1:]
	}
	if (out.hasKey && out.key == "") || (out.hasSubKey && out.subKey == "") {
		return route{}, false
	}
	return out, len(parts) == 0
}

// Refuse makes an error answer in the shape of the service.
func Refuse(status int, code, message string) Answer {
	return reply(status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}

func reply(status int, value any) Answer {
	body, err := json.Marshal(value)
	if err != nil { // values are maps and structs of ours
		panic(err)
	}
	header := http.Header{"Content-Type": {"application/json; odata.metadata=minimal; charset=utf-8"}}
	return Answer{Status: status, Header: header, Body: body}
}

func noContent() Answer { return Answer{Status: http.StatusNoContent, Header: http.Header{}} }

func notFound(what, name string) Answer {
	return Refuse(http.StatusNotFound, "ResourceNotFound", "no "+what+" is named '"+name+"'")
}

func methodNotAllowed() Answer {
	return Refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", "method not allowed at this path")
}
