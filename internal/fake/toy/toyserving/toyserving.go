// Package toyserving is the toy as an ecosystem that can be served, with everything that the
// product's have: listings, files, publishing, a mirror and a lock file.
package toyserving

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/ecosystem/ecosystemtest"
	"github.com/ecluse-gate/ecluse/internal/fake/toy"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/mirror"
	"github.com/ecluse-gate/ecluse/internal/mirror/lockfile"
	"github.com/ecluse-gate/ecluse/internal/serving"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// Ecosystem is the toy.
func Ecosystem() serving.Ecosystem {
	return serving.Ecosystem{
		Ecosystem: ecosystemtest.Toy(),
		Protocol: gate.Ecosystem{
			Name: toy.Name, ListingAccept: "application/json", ListingPath: toy.ListingPath, ArtifactPath: toy.ArtifactPath,
			KeyOfFile: toy.KeyOfFile, Scan: toy.Scan, Render: toy.Render,
		},
		ParseName: parseName,
		Read:      read,
		Refusal:   serving.Refusal{ContentType: "text/plain", Body: func(message string) []byte { return []byte("no: " + message) }},
		Mirror: func(r serving.Registry) (mirror.Target, error) {
			t, err := r.Open(r.URL)
			return &target{t, r.Authorization}, err
		},
		LockFiles: []lockfile.Format{{Name: "toys.lock", Files: []string{"toys*.lock"}, Read: readLockFile}},
		Words:     serving.Words{Upstream: "toy box", Served: "toy shelf", Entry: "/", Token: "toys: the key"},
	}
}

func parseName(text string) (string, error) {
	if text == "" || strings.ContainsAny(text, "/ ") {
		return "", fmt.Errorf("%q is not a toy", text)
	}
	return strings.ToLower(text), nil
}

// read knows "/name", also with PUT, and "/name/-/file".
func read(r *http.Request, path string) serving.Ask {
	name, file, isFile := strings.Cut(strings.TrimPrefix(path, "/"), "/-/")
	name, err := parseName(name)
	switch {
	case err != nil:
		return serving.Ask{Want: serving.Refuse{Status: http.StatusNotFound, Message: err.Error()}}
	case isFile:
		return serving.Ask{Route: "toy_file", Want: serving.File{Name: name, File: file}}
	case r.Method == http.MethodPut:
		return serving.Ask{Route: "toy_publish", Want: serving.Publish{
			Method: http.MethodPut, Allow: "GET, HEAD", Name: name, Path: toy.ListingPath(name), Check: check,
		}}
	}
	return serving.Ask{Route: "toy_listing", Want: serving.Listing{Name: name, Form: serving.Form{Name: "toy"}}}
}

// check wants a body that says something.
func check(body io.Reader) (string, error) {
	text, err := io.ReadAll(body)
	if err == nil && len(text) == 0 {
		err = &serving.BadPackage{Err: errors.New("an empty toy")}
	}
	return "", err
}

// readLockFile reads lines of a name and a version, which do not say the file.
func readLockFile(data []byte, _ lockfile.Opener) (l lockfile.Lock, err error) {
	for s := bufio.NewScanner(strings.NewReader(string(data))); s.Scan(); {
		name, version, ok := strings.Cut(s.Text(), " ")
		if !ok {
			l.Skipped++
			continue
		}
		l.Needs = append(l.Needs, lockfile.Need{Ecosystem: toy.Name, Package: name, Version: version})
	}
	return l, nil
}

// target takes files by PUT, each at its name.
type target struct {
	*upstream.Target
	authorization func() string
}

// Base implements mirror.Target.
func (t *target) Base() string { return strings.TrimSuffix(t.URL().String(), "/") }

// Holds implements mirror.Target.
func (t *target) Holds(ctx context.Context, j mirror.Job) (bool, error) {
	u, err := t.Under("/" + j.File)
	if err != nil {
		return false, err
	}
	resp, err := t.Read(ctx, upstream.Request{Method: http.MethodGet, URL: u, Kind: upstream.Metadata}, t.authorization())
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	file, err := mirror.ReadListing(resp)
	return file != nil, err
}

// Put implements mirror.Target.
func (t *target) Put(ctx context.Context, j mirror.Job, _ *gate.Copy, f *mirror.Spooled) error {
	u, err := t.Under("/" + j.File)
	if err != nil {
		return err
	}
	resp, err := t.Write(ctx, upstream.Write{Method: http.MethodPut, URL: u, Body: f.Reader(), Length: f.Size, Authorization: t.authorization()})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return mirror.Settle(ctx, t, j, resp)
}
