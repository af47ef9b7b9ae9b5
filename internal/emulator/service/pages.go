package service

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const (
	defaultPage = 100
	maxPage     = 3000
)

// page answers a list of named things with server-driven paging: search, pageSize 1..3000,
// $skiptoken.
func (v *Service) page(c *call, names []string, show func(string) any) Answer {
	want, problem := readPage(c.r.URL.Query(), "search", "searchType")
	if problem != nil {
		return *problem
	}
	if kind := c.r.URL.Query().Get("searchType"); kind != "" && kind != "prefix" {
		return Refuse(http.StatusBadRequest, "InvalidRequestParameter", "searchType must be prefix")
	}
	value := []any{}
	for _, name := range names {
		if name <= want.after || !strings.HasPrefix(name, want.filter) {
			continue
		}
		if len(value) == want.size {
			return v.listed(c, value, want.next(lastName(value)))
		}
		value = append(value, show(name))
	}
	return v.listed(c, value, "")
}

func lastName(value []any) string {
	m, _ := value[len(value)-1].(map[string]any)
	name, _ := m["name"].(string)
	return name
}

// listed answers a page; a next token becomes a link with the same api-version.
func (v *Service) listed(c *call, value any, token string) Answer {
	body := map[string]any{"@odata.context": v.Base(c.r) + "/$metadata#" + c.route.collection, "value": value}
	if token != "" {
		query := "api-version=" + url.QueryEscape(c.version) + "&$skiptoken=" + token
		body["@odata.nextLink"] = v.Base(c.r) + c.r.URL.EscapedPath() + "?" + query
	}
	return reply(http.StatusOK, body)
}

// wanted is a page request: at most size entries after a position, filtered.
type wanted struct {
	size          int
	after, filter string
}

// readPage reads pageSize, a filter parameter and $skiptoken; a token excludes the others.
func readPage(query url.Values, filters ...string) (wanted, *Answer) {
	bad := func(message string) (wanted, *Answer) {
		a := Refuse(http.StatusBadRequest, "InvalidRequestParameter", message)
		return wanted{}, &a
	}
	if token := query.Get("$skiptoken"); query.Has("$skiptoken") {
		for _, name := range append(filters, "pageSize") {
			if query.Has(name) {
				return bad("$skiptoken cannot be combined with " + name)
			}
		}
		data, err := base64.RawURLEncoding.DecodeString(token)
		parts := strings.SplitN(string(data), "\x00", 3)
		size, sizeErr := strconv.Atoi(parts[0])
		if err != nil || len(parts) != 3 || sizeErr != nil || size < 1 || size > maxPage {
			return bad("bad continuation token")
		}
		return wanted{size: size, after: parts[1], filter: parts[2]}, nil
	}
	page := wanted{size: defaultPage, filter: query.Get(filters[0])}
	if text := query.Get("pageSize"); query.Has("pageSize") {
		size, err := strconv.Atoi(text)
		if err != nil || size < 1 || size > maxPage {
			return bad("pageSize must be 1 to 3000")
		}
		page.size = size
	}
	return page, nil
}

// next makes the token of the page after this one.
func (w wanted) next(position string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(w.size) + "\x00" + position + "\x00" + w.filter))
}
