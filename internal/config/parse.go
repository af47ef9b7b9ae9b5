package config

import (
	"math"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/registry"

	"github.com/ecluse-gate/ecluse/cooldown"
)

// ByteSize is a number of bytes, written 256MiB (powers of 1024) or 10GB (powers of 1000).
type ByteSize int64

// What a listing may be bounded to: the most is what can be scanned.
const (
	minDocument = 1 << 20
	maxDocument = 1 << 30
	minFetching = 1 << 20
)

// Types whose pointers choose a stricter syntax than their plain counterpart.
type (
	hostPort         string
	optionalHostPort string
	required         string
	oneLine          string
	documentSize     ByteSize
	autoSize         ByteSize // 0 for the word auto
)

// parseInto reads v into the place that dst points to.
func parseInto(dst any, v value) (err error) {
	if known, err := parseList(dst, v); known {
		return err
	}
	if v.isList {
		return problemf("is one value, not a list")
	}
	s := v.scalar
	switch dst := dst.(type) {
	case *bool:
		*dst, err = parseBool(s)
	case *int:
		*dst, err = parseCount(s)
	case *time.Duration:
		*dst, err = parseDuration(s)
	case *ByteSize:
		*dst, err = parseBytes(s)
	case *integrity.Floor:
		if *dst, err = integrity.ParseFloor(s); err != nil {
			err = problemf("%v", err)
		}
	case *publicFloor:
		f, ferr := integrity.ParseFloor(s)
		if *dst = publicFloor(f); ferr != nil || f < integrity.SHA256 {
			err = problemf("%s: public files need sha256, sha384 or sha512", quote(s))
		}
	case *requiredURL:
		*dst, err = nil, problemf("must not be empty")
		if s != "" {
			*dst, err = parseURL(s)
		}
	case **url.URL:
		if *dst = nil; s != "" {
			*dst, err = parseURL(s)
		}
	case *autoSize, *documentSize:
		return parseBounded(dst, s)
	default:
		return parseText(dst, s)
	}
	return err
}

// parseBounded reads the sizes that have bounds.
func parseBounded(dst any, s string) error {
	if auto, ok := dst.(*autoSize); ok && s == "auto" {
		*auto = 0
		return nil
	}
	n, err := parseBytes(s)
	if err != nil {
		return err
	}
	switch dst := dst.(type) {
	case *autoSize:
		if *dst = autoSize(n); n < minFetching {
			return problemf("%s: at least 1MiB, or auto", quote(s))
		}
	case *documentSize:
		if *dst = documentSize(n); n < minDocument || n > maxDocument {
			return problemf("%s: a listing may have between 1MiB and 1GiB", quote(s))
		}
	}
	return nil
}

// parseList reads the kinds of lists.
func parseList(dst any, v value) (known bool, err error) {
	switch list := dst.(type) {
	case *[]string:
		*list, err = v.items()
	case *[]*url.URL:
		*list, err = parseEach(v, parseURL)
	case *[]cooldown.Authority:
		*list, err = parseEach(v, parseAuthority)
	case *[]netip.Prefix:
		*list, err = parseEach(v, parsePrefix)
	case packageNames:
		*list.into, err = parseEach(v, list.parse)
	default:
		return false, nil
	}
	return true, err
}

// parseText reads the kinds of text. A wrong one is kept all the same: the problem forbids its use.
func parseText(dst any, s string) error {
	switch dst := dst.(type) {
	case *string:
		*dst = s
	case *hostPort:
		*dst = hostPort(s)
		return checkHostPort(s)
	case *optionalHostPort:
		if *dst = optionalHostPort(s); s != "" {
			return checkHostPort(s)
		}
	case *postgresURL:
		if *dst = postgresURL(s); s != "" {
			return checkPostgresURL(s)
		}
	case *advisorySource:
		*dst = advisorySource(s)
		return dst.check()
	case *required:
		if *dst = required(s); strings.TrimSpace(s) == "" {
			return problemf("must not be empty")
		}
	case *oneLine:
		if *dst = oneLine(s); strings.ContainsFunc(s, unicode.IsControl) || len(s) > 1000 {
			return problemf("must be one line of at most 1000 bytes, without control characters")
		}
	default:
		panic("config: a key of an unknown type")
	}
	return nil
}

// items is a list from the file, or the comma-separated text of another layer.
func (v value) items() ([]string, error) {
	if v.isList {
		return v.list, nil
	}
	if v.layer == FromFile {
		return nil, problemf("must be a list: [a, b]")
	}
	var out []string
	for item := range strings.SplitSeq(v.scalar, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out, nil
}

func parseBool(s string) (bool, error) {
	on, err := strconv.ParseBool(s)
	if err != nil || len(s) < 4 {
		return false, problemf("must be true or false")
	}
	return on, nil
}

// packageNames is a list of names of packages.
type packageNames struct {
	into  *[]policy.Pattern
	known registry.Ecosystems
}

// parse reads the name of a package, all versions of it.
func (n packageNames) parse(text string) (policy.Pattern, error) {
	p, err := policy.ParsePattern(text, n.known)
	switch {
	case err != nil:
		return p, problemf("%v", err)
	case p.HasVersion():
		return p, problemf("%s: give a name without a version", quote(text))
	}
	return p, nil
}

// publicFloor is a floor that may not lie below SHA-256.
type publicFloor integrity.Floor

// requiredURL is a URL that may not be empty.
type requiredURL *url.URL

// parseEach reads a list item by item.
func parseEach[T any](v value, parse func(string) (T, error)) (out []T, err error) {
	texts, err := v.items()
	for _, text := range texts {
		item, perr := parse(text)
		if perr != nil {
			return nil, perr
		}
		out = append(out, item)
	}
	return out, err
}

func parseAuthority(text string) (cooldown.Authority, error) {
	a, err := cooldown.ParseAuthority(text, 443)
	if err != nil || strings.ContainsAny(text, "/@?#") {
		return a, problemf("%s: write host or host:port", quote(text))
	}
	return a, nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p != p.Masked() {
		return p, problemf("%s: write a range as in 10.0.0.0/8", quote(text))
	}
	return p, nil
}

func parseCount(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, problemf("%s is not a whole number of at least 0", quote(s))
	}
	return int(n), nil
}

// parseDuration reads what Go reads, and whole days as in 7d. Negative durations are refused.
func parseDuration(s string) (time.Duration, error) {
	const day = 24 * time.Hour
	if digits, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(digits, 10, 32)
		if err != nil || n > uint64(math.MaxInt64/day) {
			return 0, problemf("%s is not a duration like 30s, 1h30m or 7d", quote(s))
		}
		return time.Duration(n) * day, nil
	}
	d, err := time.ParseDuration(s)
	switch _, number := strconv.ParseFloat(s, 64); {
	case err != nil && number == nil:
		return 0, problemf("%s needs a unit, as in %ss", quote(s), s)
	case err != nil:
		return 0, problemf("%s is not a duration like 30s, 1h30m or 7d", quote(s))
	case d < 0 || strings.HasPrefix(s, "+"):
		return 0, problemf("%s: a duration may not have a sign", quote(s))
	}
	return d, nil
}

func parseBytes(s string) (ByteSize, error) {
	units := []struct {
		suffix string
		size   int64
	}{
		{"KiB", 1 << 10},
		{"MiB", 1 << 20},
		{"GiB", 1 << 30},
		{"TiB", 1 << 40},
		{"kB", 1e3},
		{"KB", 1e3},
		{"MB", 1e6},
		{"GB", 1e9},
		{"TB", 1e12},
		{"B", 1},
		{"", 1},
	}
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 63)
		if err != nil || n > uint64(math.MaxInt64/u.size) {
			break
		}
		return ByteSize(int64(n) * u.size), nil
	}
	return 0, problemf("%s is not a size like 256MiB, 10GB or 4096", quote(s))
}

// checkHostPort wants an address to listen on. Port 0 is allowed: the system picks one.
func checkHostPort(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return problemf("%s is not host:port", quote(s))
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return problemf("%s: the port must be a number from 0 to 65535 without leading zeros", quote(s))
	}
	if strings.ContainsFunc(host, func(r rune) bool { return unicode.IsSpace(r) || r == '/' }) {
		return problemf("%s is not host:port", quote(s))
	}
	return nil
}

// parseURL reads an address of the kind an upstream has. What it refuses is never shown, since it
// may hold a password.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, problemf("not a URL: it must look like https://host/path, with a valid port if any")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, problemf("must begin with https:// or http://")
	case u.User != nil || strings.Contains(u.Host, "@"):
		return nil, problemf("must not contain a user name or password")
	case u.RawQuery != "" || u.ForceQuery:
		return nil, problemf("must not contain a query (?…)")
	case u.Fragment != "" || strings.Contains(s, "#"):
		return nil, problemf("must not contain a fragment (#…)")
	case u.Host == "" || u.Opaque != "":
		return nil, problemf("has no host")
	}
	if _, err := cooldown.AuthorityOf(u); err != nil {
		return nil, problemf("not usable as an address: %v", err)
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return nil, problemf("must not contain the path segment %q", segment)
		}
	}
	return u, nil
}
