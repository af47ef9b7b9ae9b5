package service

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// children serves the indexes, indexers, skillsets and data sources that knowledge sources
// generate: reads only.
func (v *Service) children(c *call) Answer {
	if c.r.Method != http.MethodGet {
		return methodNotAllowed()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	table := v.store.children[c.route.collection]
	if !c.route.hasKey {
		return v.page(c, slices.Sorted(maps.Keys(table)), func(name string) any { return v.childBody(c, table[name]) })
	}
	found := table[c.route.key]
	if found == nil {
		return notFound(strings.TrimSuffix(c.route.collection, "s"), c.route.key)
	}
	out := reply(http.StatusOK, v.childBody(c, found))
	out.Header.Set("ETag", found.etag)
	return out
}

// childBody is the part of a child that binds it to its siblings. Call with Service.mu held.
func (v *Service) childBody(c *call, found *child) map[string]any {
	body := map[string]any{
		"@odata.context": v.Base(c.r) + "/$metadata#" + c.route.collection + "/$entity",
		"@odata.etag":    found.etag, "name": found.name,
	}
	source := v.store.sources[found.source]
	switch c.route.collection {
	case "indexes":
		body["fields"] = []any{map[string]any{"name": "uid", "type": "Edm.String", "key": true}}
	case "skillsets":
		body["skills"] = []any{}
	case "indexers":
		names := source.generated()
		body["dataSourceName"], body["skillsetName"], body["targetIndexName"] = names["datasources"], names["skillsets"], names["indexes"]
	case "datasources":
		body["type"] = "azureblob"
		body["container"] = map[string]any{"name": source.parameters()["containerName"], "query": source.parameters()["folderPath"]}
		body["credentials"] = map[string]any{"connectionString": visibleConnection(c, source)}
	}
	return body
}

// visibleConnection shows a connection string only on request and only when it holds no secret.
func visibleConnection(c *call, source *resource) any {
	text, _ := source.parameters()["connectionString"].(string)
	if c.r.URL.Query().Get("includeConnectionString") != "true" {
		return nil
	}
	if strings.HasPrefix(text, "ResourceId=") && !strings.Contains(text, "Key=") {
		return text
	}
	return "<redacted>"
}

func (v *Service) indexerStatus(c *call) Answer {
	if c.r.Method != http.MethodGet {
		return methodNotAllowed()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	found := v.store.children["indexers"][c.route.key]
	if found == nil {
		return notFound("indexer", c.route.key)
	}
	created := v.store.sources[found.source].created.Format(time.RFC3339Nano)
	last := map[string]any{
		"status": "success", "startTime": created, "endTime": created,
		"itemsProcessed": 1, "itemsFailed": 0, "errors": []any{}, "warnings": []any{},
	}
	return reply(http.StatusOK, map[string]any{
		"name": found.name, "status": "running", "lastResult": last, "executionHistory": []any{last},
		"limits": map[string]any{"maxRunTime": "PT2H", "maxDocumentExtractionSize": 16 << 20, "maxDocumentContentCharactersToExtract": 64_000},
	})
}

func (v *Service) sourceStatus(c *call) Answer {
	if c.r.Method != http.MethodGet {
		return methodNotAllowed()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	source := v.store.sources[c.route.key]
	if source == nil {
		return notFound("knowledge source", c.route.key)
	}
	created := source.created.Format(time.RFC3339Nano)
	processed := max(len(source.files), 1)
	body := map[string]any{
		"kind": source.kind(), "synchronizationStatus": "active", "synchronizationInterval": nil,
		"currentSynchronizationState": nil,
		"lastSynchronizationState": map[string]any{
			"status": "success", "startTime": created, "endTime": created,
			"itemsUpdatesProcessed": processed, "itemsUpdatesFailed": 0, "itemsSkipped": 0, "errors": []any{},
		},
		"statistics": map[string]any{
			"totalSynchronization": 1, "averageSynchronizationDuration": "PT1S", "averageItemsProcessedPerSynchronization": processed,
		},
	}
	if c.version == VersionGA && source.kind() == "file" {
		body["fileCapacity"] = map[string]any{
			"maxFileCount": v.maxFiles(), "remainingFileCount": max(v.maxFiles()-len(source.files), 0),
			"maxFileSizeBytes": v.limits.fileBytes,
		}
	}
	return reply(http.StatusOK, body)
}
