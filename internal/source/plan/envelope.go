package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/source/corpus"
	"github.com/ecluse-gate/ecluse/internal/strictjson"
	"github.com/ecluse-gate/ecluse/internal/visible"
)

// Envelope is a plan with its approval. Exactly one of File, Continue and Resolve is set.
type Envelope struct {
	Approval Approval
	File     *Plan
	Continue *Continuation
	Resolve  *Resolution
	// Document is the whole envelope as it was read, to be kept with the run.
	Document map[string]any
}

// Approval is what a person gives: the fingerprint names the plan, the flag says yes.
type Approval struct {
	Confirmed   bool   `json:"confirmed"`
	Fingerprint string `json:"fingerprint"`
}

// Continuation is the plan of an upload-only continuation (S117-S126): only files that were never
// attempted and are not on the server. It binds the plan, the acknowledgement and every record of
// the journal as they were when it was made (S121).
type Continuation struct {
	Kind       string `json:"kind"`
	Journal    string `json:"journal"`
	Endpoint   string `json:"endpoint"`
	APIVersion string `json:"api_version"`
	Owner      string `json:"owner"`
	// LocalRoot is where the files are on this machine, if not where the original plan has them.
	LocalRoot          string  `json:"local_root,omitempty"`
	SourceName         string  `json:"source_name"`
	SourceURL          string  `json:"source_url"`
	OriginalPlanDigest string  `json:"original_plan_digest"`
	CreationAckDigest  string  `json:"creation_ack_digest"`
	JournalDigest      string  `json:"journal_digest"`
	Eligible           []Named `json:"eligible"`
}

// Named is a file by its place in the original plan (the first is 0) and its path, which is for the
// reader.
type Named struct {
	Ordinal int    `json:"ordinal"`
	Path    string `json:"path"`
}

type envelopeDocument struct {
	SchemaVersion string         `json:"schema_version"`
	Plan          any            `json:"plan"`
	Approval      map[string]any `json:"approval"`
}

// New wraps a *Plan or *Continuation as an envelope that is not approved yet.
func New(content any) ([]byte, error) {
	data, err := encode(map[string]any{
		"schema_version": "1.0", "plan": content, "approval": Approval{Fingerprint: Digest(content)},
	})
	if err != nil {
		return nil, err
	}
	// The run record wraps the envelope, so it must be readable with something around it.
	if _, err := strictjson.Parse([]byte(`{"payload":{"document":` + string(data) + `}}`)); err != nil {
		return nil, refuse(CodeRequest, "paths", "and metadata make a plan that is too large (%v): use fewer files or less metadata", err)
	}
	return data, nil
}

// encode writes an envelope with its members in the order of their names, so that an approved one
// differs in one word.
func encode(envelope map[string]any) ([]byte, error) {
	data, err := json.Marshal(envelope)
	if err != nil {
		return nil, fmt.Errorf("print envelope: %v", err)
	}
	var ordered any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&ordered); err != nil {
		return nil, fmt.Errorf("print envelope: %v", err)
	}
	data, err = json.MarshalIndent(ordered, "", "  ")
	return append(visible.JSON(data), '\n'), err
}

// Parse reads an envelope, at most 1 MiB of it, and checks every field of it and the fingerprint.
// Whether it was approved is for the caller to ask.
func Parse(data []byte) (*Envelope, error) {
	tree, err := strictjson.Parse(data)
	if err != nil {
		return nil, asRefusal(CodeEnvelope, err)
	}
	return FromDocument(tree)
}

// FromDocument checks an envelope that was read before.
func FromDocument(tree map[string]any) (*Envelope, error) {
	if err := refuseSecrets("", tree); err != nil {
		return nil, err
	}
	var doc envelopeDocument
	if err := strictjson.Fill(tree, &doc); err != nil {
		return nil, asRefusal(CodeEnvelope, err)
	}
	if doc.SchemaVersion != "1.0" {
		return nil, refuse(CodeEnvelope, "schema_version", "must be \"1.0\"")
	}
	e := &Envelope{Document: tree}
	if err := strictjson.Fill(doc.Approval, &e.Approval); err != nil {
		return nil, inside("approval", asRefusal(CodeEnvelope, err))
	}
	if !strictjson.IsDigest(e.Approval.Fingerprint) {
		return nil, refuse(CodeEnvelope, "approval.fingerprint", "must be sha256: and 64 hexadecimal digits")
	}
	if err := e.fill(doc.Plan); err != nil {
		return nil, inside("plan", asRefusal(CodeEnvelope, err))
	}
	if got := Digest(doc.Plan); got != e.Approval.Fingerprint {
		return nil, refuse(CodeFingerprint, "approval.fingerprint", "does not match the plan (%s): the plan was changed after it was made; make a new one", got)
	}
	return e, nil
}

func inside(prefix string, err error) error {
	if r, ok := errors.AsType[*Refusal](err); ok {
		r.Field = strings.TrimSuffix(prefix+"."+r.Field, ".")
	}
	return err
}

func (e *Envelope) fill(content any) error {
	tree, ok := content.(map[string]any)
	if !ok {
		return refuse(CodeEnvelope, "", "must be an object")
	}
	var into interface{ check() error }
	switch tree["kind"] {
	case KindFile:
		e.File = &Plan{}
		into = e.File
	case KindContinue:
		e.Continue = &Continuation{}
		into = e.Continue
	case KindResolve:
		e.Resolve = &Resolution{}
		into = e.Resolve
	default:
		return refuse(CodeUnsupported, "kind", "is not supported by this version; supported are %q, %q and %q", KindFile, KindContinue, KindResolve)
	}
	if err := strictjson.Fill(tree, into); err != nil {
		return err
	}
	return into.check()
}

// check holds a plan to everything that its request was held to, so that an edited plan with a
// fresh fingerprint gains nothing.
func (p *Plan) check() error {
	request := Request{
		SchemaVersion: "1.0", Kind: "file", Endpoint: p.Endpoint, Name: p.Source.Name, Owner: p.Owner, LocalRoot: p.Files.LocalRoot,
		ServiceTier: p.ServiceTier, APIVersion: p.APIVersion, ExtractionMode: "minimal", Network: p.Network, RBAC: p.RBAC,
		Metadata: map[string]map[string]string{},
	}
	limit, _ := FileLimit(p.ServiceTier)
	for i, f := range p.Files.Records {
		request.Paths = append(request.Paths, f.Path)
		if f.Metadata != nil {
			request.Metadata[f.Path] = f.Metadata
		}
		if err := f.check(limit); err != nil {
			return inside(fmt.Sprintf("files.records[%d]", i), err)
		}
	}
	if err := request.check(); err != nil {
		r, _ := errors.AsType[*Refusal](err)
		r.Field = planField(r.Field)
		return r
	}
	return p.checkSource()
}

// planField translates the place of a request's field into that of the plan's.
func planField(field string) string {
	if rest, ok := strings.CutPrefix(field, "paths"); ok {
		return "files.records" + rest
	}
	if rest, ok := strings.CutPrefix(field, "metadata"); ok {
		return "files.records.metadata" + rest
	}
	return field
}

func (f File) check(limit int64) error {
	ns, err := strconv.ParseInt(f.ModTime, 10, 64)
	switch {
	case limit > 0 && (f.Size < 1 || f.Size > limit):
		return refuse(corpus.CodeSize, "size", "is %d bytes; 1 to %d are allowed", f.Size, limit)
	case err != nil || strconv.FormatInt(ns, 10) != f.ModTime:
		return refuse(CodeEnvelope, "mtime_ns", "must be nanoseconds since 1970 in digits")
	case !sha256Form.MatchString(f.SHA256):
		return refuse(CodeEnvelope, "sha256", "must be 64 hexadecimal digits")
	case f.MediaType != MediaType(f.Path):
		return refuse(CodeEnvelope, "media_type", "must be %q for this name", MediaType(f.Path))
	}
	return nil
}

func (p *Plan) checkSource() error {
	_, url, err := Address(p.Endpoint, p.APIVersion, p.Source.Name)
	switch {
	case err != nil:
		return err
	case p.Source.URL != url:
		return refuse(CodeEnvelope, "source.url", "does not match the source")
	case p.Action != ActionCreate && p.Action != ActionUpdate:
		return refuse(CodeEnvelope, "action", "must be create or update")
	case (p.Action == ActionCreate) != (p.Source.ETag == nil):
		return refuse(CodeEnvelope, "source.etag", "must be null for create and the approved ETag for update")
	case p.Source.Definition["name"] != p.Source.Name || p.Source.Definition["kind"] != "file":
		return refuse(CodeEnvelope, "source.definition", "must be that of the file source %q", clip(p.Source.Name))
	case p.Files.Digest != Digest(p.Files.Records):
		return refuse(CodeEnvelope, "files.digest", "does not match the records")
	case !strictjson.IsDigest(p.InventoryDigest):
		return refuse(CodeEnvelope, "inventory_digest", "must be sha256: and 64 hexadecimal digits")
	}
	return nil
}

func (c *Continuation) check() error {
	for _, f := range []struct{ field, value string }{
		{"original_plan_digest", c.OriginalPlanDigest}, {"creation_ack_digest", c.CreationAckDigest}, {"journal_digest", c.JournalDigest},
	} {
		if !strictjson.IsDigest(f.value) {
			return refuse(CodeEnvelope, f.field, "must be sha256: and 64 hexadecimal digits")
		}
	}
	if n := len(c.Eligible); n < 1 || n > MaxFiles {
		return refuse(CodeEnvelope, "eligible", "lists %d files; 1 to %d are allowed", n, MaxFiles)
	}
	if !slices.IsSortedFunc(c.Eligible, func(a, b Named) int { return a.Ordinal - b.Ordinal }) {
		return refuse(CodeEnvelope, "eligible", "must be in the order of the plan")
	}
	for i, f := range c.Eligible {
		if f.Ordinal < 0 || f.Ordinal >= MaxFiles || i > 0 && f.Ordinal == c.Eligible[i-1].Ordinal {
			return refuse(CodeEnvelope, fmt.Sprintf("eligible[%d].ordinal", i), "is out of range or duplicate")
		}
	}
	return nil
}

// Fingerprint is that of the plan, as the approval names it.
func (e *Envelope) Fingerprint() string { return e.Approval.Fingerprint }

// Digest is that of the plan: the same value, under the name that records use.
func (e *Envelope) Digest() string { return e.Approval.Fingerprint }

// Approve prints the envelope with the confirmation flipped and nothing else changed.
func (e *Envelope) Approve() ([]byte, error) {
	approved := maps.Clone(e.Document)
	approved["approval"] = Approval{Confirmed: true, Fingerprint: e.Approval.Fingerprint}
	return encode(approved)
}
