package source

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/source/plan"
)

// sameDefinition compares what was asked for with what the service shows (S52).
func sameDefinition(a, b map[string]any) bool {
	return definitionDigest(a) == definitionDigest(b)
}

// definitionDigest names what matters of a definition.
func definitionDigest(definition map[string]any) string {
	return plan.Digest(essence(plain(definition)))
}

// plain is the JSON form of a document, so that numbers of either spelling compare alike.
func plain(document map[string]any) map[string]any {
	data, err := json.Marshal(document)
	if err != nil {
		return nil
	}
	var tree map[string]any
	if json.Unmarshal(data, &tree) != nil {
		return nil
	}
	return tree
}

// essence leaves out what the service adds or hides: context, ETag, synchronisation, secrets,
// generated names, and what is empty.
func essence(node any) any {
	switch v := node.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			if ignored(name) || name == "resultsProcessing" && value == "rerank" && v["kind"] == "azureBlob" {
				continue
			}
			value = essence(value)
			if text, ok := value.(string); ok && (name == "uri" || name == "resourceUri") {
				value = strings.TrimSuffix(text, "/")
			}
			if !empty(value) {
				out[name] = value
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			out = append(out, essence(item))
		}
		return out
	}
	return node
}

func ignored(name string) bool {
	return strings.HasPrefix(name, "@odata.") || slices.Contains([]string{
		"apiKey", "createdResources", "connectionString",
		"synchronizationStatus", "synchronizationInterval", "currentSynchronizationState", "lastSynchronizationState", "statistics",
	}, name)
}

func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
