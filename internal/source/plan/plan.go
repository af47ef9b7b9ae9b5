package plan

import (
	"maps"
	"strconv"

	"github.com/ecluse-gate/ecluse/internal/strictjson"

	"github.com/ecluse-gate/ecluse/internal/source/corpus"
)

// Kinds of plans.
const (
	KindFile     = "file"
	KindContinue = "file-upload-continuation"
	KindResolve  = "journal-resolution"
)

// Actions on the source.
const (
	ActionCreate = "create"
	ActionUpdate = "update"
	ActionReuse  = "reuse"
)

// Plan is what will happen to one File knowledge source, once approved. Anything that differs from
// it later is drift.
type Plan struct {
	Kind        string `json:"kind"`
	Action      string `json:"action"`
	Endpoint    string `json:"endpoint"`
	APIVersion  string `json:"api_version"`
	ServiceTier string `json:"service_tier"`
	Owner       string `json:"owner"`
	Source      Source `json:"source"`
	Files       Files  `json:"files"`
	// InventoryDigest is that of the files on the server when the plan was made, of none when the
	// source was absent.
	InventoryDigest string   `json:"inventory_digest"`
	Network         *Network `json:"network,omitempty"`
	RBAC            *RBAC    `json:"rbac,omitempty"`
}

// Context is the account that a run was made with (S119, S137).
type Context struct {
	SubscriptionID string    `json:"subscription_id"`
	TenantID       string    `json:"tenant_id"`
	CloudName      string    `json:"cloud_name"`
	Principal      Principal `json:"principal"`
}

// Principal is who acts: a user or a service principal.
type Principal struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Source is the knowledge source itself.
type Source struct {
	Name string `json:"name"`
	// URL is exactly what is sent.
	URL        string         `json:"url"`
	Definition map[string]any `json:"definition"`
	// ETag is that of the source which is updated or reused, null when it was absent.
	ETag *string `json:"etag"`
}

// Files are the files in the order in which they are sent.
type Files struct {
	LocalRoot string `json:"local_root"`
	// Digest is over Records: the marker ecluseInventory (S65).
	Digest  string `json:"digest"`
	Records []File `json:"records"`
}

// File is one approved file.
type File struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// ModTime is in nanoseconds since 1970, as text: RFC 8785 would round a number of this size.
	ModTime   string            `json:"mtime_ns"`
	SHA256    string            `json:"sha256"`
	MediaType string            `json:"media_type"`
	Metadata  map[string]string `json:"metadata,omitempty"`
}

// Local is the file as the corpus knows it.
func (f File) Local() corpus.File {
	ns, _ := strconv.ParseInt(f.ModTime, 10, 64) // checked when the plan was read
	return corpus.File{Path: f.Path, Size: f.Size, ModTime: ns, SHA256: f.SHA256}
}

// Digest is "sha256:" and the digest of the canonical form (RFC 8785) of v, which must be encodable
// as JSON.
func Digest(v any) string {
	digest, err := strictjson.Digest(v)
	if err != nil {
		panic("plan: a document of our own has no canonical form: " + err.Error())
	}
	return digest
}

// Markers is the metadata that is sent with a file: the caller's own, and the marks by which the
// tool knows its file again (S65).
func (p *Plan) Markers(f File) map[string]string {
	marks := map[string]string{
		"ecluseSha256":    f.SHA256,
		"ecluseSizeBytes": strconv.FormatInt(f.Size, 10),
		"ecluseInventory": p.Files.Digest,
		"ecluseOwner":     p.Owner,
		"ecluseSource":    p.Source.Name,
	}
	maps.Copy(marks, f.Metadata)
	return marks
}

// Definition is the body of the PUT that a request asks for.
func (r *Request) Definition() map[string]any {
	ingestion := map[string]any{"contentExtractionMode": r.ExtractionMode}
	if v := r.Vectorization; v != nil {
		ingestion["embeddingModel"] = map[string]any{
			"kind": "azureOpenAI",
			"azureOpenAIParameters": map[string]any{
				"resourceUri": v.ResourceURI, "deploymentId": v.DeploymentID, "modelName": v.ModelName,
			},
		}
	}
	definition := map[string]any{
		"name": r.Name, "kind": "file", "fileParameters": map[string]any{"ingestionParameters": ingestion},
	}
	if r.Description != "" {
		definition["description"] = r.Description
	}
	return definition
}
