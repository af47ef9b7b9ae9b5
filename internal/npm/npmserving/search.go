package npmserving

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

// search is a search by words. Only what the protocol names goes on.
func search(asked url.Values) serving.Search {
	query := url.Values{}
	for _, name := range []string{"text", "size", "from", "quality", "popularity", "maintenance"} {
		if asked.Has(name) {
			query.Set(name, asked.Get(name))
		}
	}
	return serving.Search{Path: "/-/v1/search?" + query.Encode(), Names: meant(asked.Get("text")), Filter: filter}
}

// meant are the names that the words of a search may mean: a scope stands for any package in it.
func meant(text string) (names []string) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`,;"'+`, r) }) {
		qualifier, value, ok := strings.Cut(word, ":")
		if !ok {
			value = word
		}
		value = strings.TrimSuffix(strings.TrimPrefix(value, "-"), "/")
		if qualifier == "scope" || strings.HasPrefix(value, "@") && !strings.Contains(value, "/") {
			value = "@" + strings.TrimPrefix(value, "@") + "/any"
		}
		if i := strings.LastIndexByte(value, '@'); i > 0 { // with a version
			value = value[:i]
		}
		if name, err := npm.ParseName(value); err == nil {
			names = append(names, name, strings.ToLower(name))
		}
	}
	return names
}

// filter takes the packages that may not be shown out of an answer, which stays as it is otherwise.
func filter(body []byte, shown func(string, registry.Version) bool) ([]byte, error) {
	var answer map[string]json.RawMessage
	var objects []json.RawMessage
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, errors.New("it is no object")
	}
	if err := json.Unmarshal(answer["objects"], &objects); err != nil {
		return nil, errors.New("it has no list of objects")
	}
	kept := []json.RawMessage{}
	for _, raw := range objects {
		var object struct {
			Package struct {
				Name, Version, License string
				Date                   time.Time
			}
		}
		if json.Unmarshal(raw, &object) != nil {
			continue
		}
		p := object.Package
		if name, err := npm.ParseName(p.Name); err == nil && shown(name, registry.Version{Version: p.Version, License: p.License, Published: p.Date}) {
			kept = append(kept, raw)
		}
	}
	var total int
	if json.Unmarshal(answer["total"], &total) == nil {
		// numbers cannot fail
		answer["total"], _ = json.Marshal(max(0, total-len(objects)+len(kept)))
	}
	answer["objects"], _ = json.Marshal(kept) // nor can what was read just now
	return json.Marshal(answer)
}
