// Package plan holds the documents of the source tool that people see and approve: the request, the
// plan that is made from it, the envelope around a plan with its approval and fingerprint, and the
// plan of an upload-only continuation. Every schema is closed. Nothing here opens a connection or
// asks for a token: what it refuses is refused before either.
package plan

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/source/corpus"
	"github.com/ecluse-gate/ecluse/internal/strictjson"
)

// Codes of a Refusal; the corpus has its own (S68-S70), the endpoint and the name theirs (S41,
// S42).
const (
	CodeRequest     = "request-invalid"
	CodeUnsupported = "not-supported"
	CodeSecret      = "secret-input-forbidden"
	CodeEnvelope    = "envelope-invalid"
	CodeFingerprint = "approval-fingerprint-mismatch"
	CodeApproval    = "approval-missing"
)

// Refusal says which field of an input was refused, with a code that scripts can read. It is an
// error.
type Refusal struct{ Code, Field, Message string }

func (r *Refusal) Error() string {
	if r.Field == "" {
		return r.Message
	}
	return r.Field + " " + r.Message
}

func refuse(code, field, format string, args ...any) error {
	return &Refusal{Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Request is what an operator asks for: one File knowledge source with its files.
type Request struct {
	SchemaVersion  string                       `json:"schema_version"`
	Kind           string                       `json:"kind"`
	Endpoint       string                       `json:"endpoint"`
	Name           string                       `json:"name"`
	Owner          string                       `json:"owner"`
	Description    string                       `json:"description,omitempty"`
	LocalRoot      string                       `json:"local_root"`
	Paths          []string                     `json:"paths"`
	ServiceTier    string                       `json:"service_tier"`
	ExtractionMode string                       `json:"extraction_mode"`
	APIVersion     string                       `json:"api_version"`
	Metadata       map[string]map[string]string `json:"metadata,omitempty"`
	Vectorization  *Vectorization               `json:"vectorization,omitempty"`
	Network        *Network                     `json:"network,omitempty"`
	RBAC           *RBAC                        `json:"rbac,omitempty"`
	// AllowUpdate lets a plan change the definition of an existing source. Without it another
	// definition is drift.
	AllowUpdate bool `json:"allow_update,omitempty"`
}

// Vectorization names the embedding model that the service is to use, with its own identity: there
// is no field for a key.
type Vectorization struct {
	ResourceURI  string `json:"resource_uri"`
	DeploymentID string `json:"deployment_id"`
	ModelName    string `json:"model_name"`
}

// Network is how the service is reached. It is declared for the reviewer and bound by the
// fingerprint; nothing is changed by it.
type Network struct {
	Mode string `json:"mode"` // public or private
}

// RBAC is the role that the operator relies on. It is declared for the reviewer and bound by the
// fingerprint; nothing is assigned.
type RBAC struct {
	Role      string `json:"role"`
	Principal string `json:"principal"`
}

// Limits of a request.
const (
	MaxFiles      = 200 // azure-rest.md: files per source
	maxMetadata   = 32
	maxValue      = 1024
	mebibyte      = 1 << 20
	smallFile     = 50 * mebibyte
	largeFile     = 100 * mebibyte
	markerPrefix  = "ecluse"
	maxDescripton = 2000
)

// FileLimit is the largest file in bytes that a tier takes, false for a tier that takes none (S70;
// azure-rest.md).
func FileLimit(tier string) (int64, bool) {
	switch tier {
	case "free", "basic":
		return smallFile, true
	case "s1", "s2", "s3", "l1", "l2", "serverless", "standard", "standard2", "standard3", "storage_optimized_l1", "storage_optimized_l2":
		return largeFile, true
	}
	return 0, false
}

// ParseRequest reads a request document and checks every field of it. An error is a *Refusal or a
// *corpus.Error.
func ParseRequest(data []byte) (*Request, error) {
	tree, err := strictjson.Parse(data)
	if err != nil {
		return nil, asRefusal(CodeRequest, err)
	}
	if err := refuseSecrets("", tree); err != nil {
		return nil, err
	}
	if kind, ok := tree["kind"].(string); ok && kind != "file" {
		return nil, refuse(CodeUnsupported, "kind", "%q is not supported by this version; it knows \"file\"", clip(kind))
	}
	r := &Request{}
	if err := strictjson.Fill(tree, r); err != nil {
		return nil, asRefusal(CodeRequest, err)
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return r, nil
}

func asRefusal(code string, err error) error {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return &Refusal{Code: code, Field: e.Field, Message: e.Reason}
	}
	return err
}

func (r *Request) check() error {
	if r.SchemaVersion != "1.0" {
		return refuse(CodeRequest, "schema_version", "must be \"1.0\"")
	}
	for _, f := range []struct{ field, value, want string }{
		{"api_version", r.APIVersion, "2026-08-01-preview 2026-10-01"},
		{"extraction_mode", r.ExtractionMode, "minimal standard"},
	} {
		if !slices.Contains(strings.Fields(f.want), f.value) {
			return refuse(CodeRequest, f.field, "is %q; use one of: %s", clip(f.value), f.want)
		}
	}
	if _, ok := FileLimit(r.ServiceTier); !ok {
		return refuse(CodeRequest, "service_tier", "is %q; use free, basic, s1, s2, s3, l1, l2 or serverless (s3hd takes no knowledge sources)", clip(r.ServiceTier))
	}
	if _, _, err := Address(r.Endpoint, r.APIVersion, r.Name); err != nil {
		return err
	}
	if !ownerForm.MatchString(r.Owner) {
		return refuse(CodeRequest, "owner", "must be 1 to 128 letters, digits and . _ @ + : / -, starting with a letter or digit")
	}
	if len(r.Description) > maxDescripton {
		return refuse(CodeRequest, "description", "is longer than %d bytes", maxDescripton)
	}
	if err := r.checkDeclared(); err != nil {
		return err
	}
	return r.checkPaths()
}

// Address checks endpoint, API version and name (S41, S42), and gives the service and the exact URL
// of the source. Whether a loopback address is wanted is for the caller to ask (Loopback).
func Address(endpoint, version, name string) (search.Service, string, error) {
	at, err := search.ParseEndpoint(endpoint, true)
	if err != nil {
		return search.Service{}, "", refuse(search.CodeEndpointInvalid, "endpoint", "%s", reason(err))
	}
	profile, err := search.ParseProfile(version)
	if err != nil {
		return search.Service{}, "", refuse(CodeRequest, "api_version", "%s", err)
	}
	service := search.Service{Endpoint: at, Profile: profile}
	url, err := service.ResourceURL(search.KnowledgeSources, name)
	if err != nil {
		return search.Service{}, "", refuse(search.CodeNameInvalid, "name", "%s", reason(err))
	}
	return service, url, nil
}

// Loopback refuses a loopback endpoint, which is for the emulator only.
func Loopback(endpoint string) error {
	if _, err := search.ParseEndpoint(endpoint, false); err != nil {
		return refuse(search.CodeEndpointInvalid, "endpoint", "%s", reason(err))
	}
	return nil
}

// reason is the text of an error of package search without its code, which the refusal carries by
// itself.
func reason(err error) string {
	if e, ok := errors.AsType[*search.Error](err); ok {
		return strings.TrimPrefix(e.Error(), e.Code+": ")
	}
	return err.Error()
}

// The forms of what stands in a document; none of them ever changes.
var (
	// what S65's marker can carry unchanged
	ownerForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+:/-]{0,127}$`)
	metadataForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)
	sha256Form   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func (r *Request) checkDeclared() error {
	if v := r.Vectorization; v != nil {
		if !strings.HasPrefix(v.ResourceURI, "https://") || strings.ContainsAny(v.ResourceURI, " ?#@\\") || len(v.ResourceURI) > 256 {
			return refuse(CodeRequest, "vectorization.resource_uri", "must be a plain https address")
		}
		if v.DeploymentID == "" || v.ModelName == "" || len(v.DeploymentID) > 128 || len(v.ModelName) > 128 {
			return refuse(CodeRequest, "vectorization", "needs deployment_id and model_name of 1 to 128 bytes")
		}
	}
	if n := r.Network; n != nil && n.Mode != "public" && n.Mode != "private" {
		return refuse(CodeRequest, "network.mode", "must be public or private")
	}
	if b := r.RBAC; b != nil && (b.Role == "" || b.Principal == "" || len(b.Role) > 128 || len(b.Principal) > 256) {
		return refuse(CodeRequest, "rbac", "needs role and principal")
	}
	return nil
}

func (r *Request) checkPaths() error {
	if n := len(r.Paths); n < 1 || n > MaxFiles {
		return refuse(CodeRequest, "paths", "lists %d files; 1 to %d are allowed", n, MaxFiles)
	}
	seen := map[string]bool{}
	for i, name := range r.Paths {
		field := fmt.Sprintf("paths[%d]", i)
		if err := corpus.CheckPath(name); err != nil {
			e, _ := errors.AsType[*corpus.Error](err)
			return &Refusal{Code: e.Code, Field: field, Message: err.Error()}
		}
		if seen[name] {
			return refuse(CodeRequest, field, "lists %q more than once", name)
		}
		seen[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
		if !seen[name] {
			return refuse(CodeRequest, "metadata", "is given for %q, which is not in paths", clip(name))
		}
		if err := checkMetadata("metadata."+name, r.Metadata[name]); err != nil {
			return err
		}
	}
	return nil
}

func checkMetadata(field string, values map[string]string) error {
	if len(values) > maxMetadata {
		return refuse(CodeRequest, field, "has more than %d entries", maxMetadata)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch value := values[key]; {
		case !metadataForm.MatchString(key):
			return refuse(CodeRequest, field, "has the key %q; keys are 1 to 64 letters, digits and _, starting with a letter", clip(key))
		case strings.HasPrefix(strings.ToLower(key), markerPrefix):
			return refuse(CodeRequest, field+"."+key, "is reserved: the tool's own markers begin with %q", markerPrefix)
		case len(value) > maxValue || strings.ContainsFunc(value, unicode.IsControl):
			return refuse(CodeRequest, field+"."+key, "must be at most %d bytes without control characters", maxValue)
		}
	}
	return nil
}

// clip keeps foreign text in a message short.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
