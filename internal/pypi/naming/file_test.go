package naming

import (
	"strings"
	"testing"
)

func TestVersionOfFile(t *testing.T) {
	for _, c := range []struct{ name, file, version, kind string }{
		{"foo", "foo-1.0-py3-none-any.whl", "1.0", KindWheel},
		{"foo-bar", "foo_bar-1.0-py3-none-any.whl", "1.0", KindWheel},
		{"foo-bar", "Foo.Bar-1.0-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "1.0", KindWheel},
		{"torch", "torch-2.0.0+cu118-cp311-cp311-linux_x86_64.whl", "2.0.0+cu118", KindWheel},
		{"foo", "foo-1.0_beta-py3-none-any.whl", "1.0b0", KindWheel},
		{"foo", "foo-1!2.0-py3-none-any.whl", "1!2.0", KindWheel},
		{"foo", "foo-1.0.tar.gz", "1.0", KindSdist},
		{"foo-bar", "foo-bar-1.0.tar.gz", "1.0", KindSdist},
		{"foo-bar", "foo_bar-1.0.zip", "1.0", KindSdist},
		{"foo-bar", "Foo.Bar-1.0.tar.bz2", "1.0", KindSdist},
		{"foo", "foo-1.0-beta1.tar.gz", "1.0b1", KindSdist},
		{"foo", "foo-1.0-1.tar.gz", "1.0.post1", KindSdist},
		{"foo", "foo-v1.0.tgz", "1.0", KindSdist},
		{"foo", "foo-1.0.tar.xz", "1.0", KindSdist},
		{"foo", "foo-1.0.tar.Z", "1.0", KindSdist},
		{"pytz", "pytz-2004D.tar.gz", "2004d", KindSdist},
		{"foo", "foo-1.0.linux-x86_64.tar.gz", "1.0.linux-x86_64", KindSdist},
		{"foo-2", "foo-2-1.0.tar.gz", "1.0", KindSdist},
		{"foo", "foo-1.0-py2.7.egg", "1.0", KindEgg},
		{"foo-bar", "foo_bar-1.0-py2.7-linux-x86_64.egg", "1.0", KindEgg},
		{"foo", "foo-1.0.win32.exe", "1.0", KindInstaller},
		{"foo", "foo-1.0.win-amd64-py2.7.exe", "1.0", KindInstaller},
		{"foo", "foo-1.0.win32-py3.4.msi", "1.0", KindInstaller},
		{"Foo_Bar", "foo_bar-1.0.tar.gz", "1.0", KindSdist},
	} {
		version, kind, ok := VersionOfFile(c.name, c.file)
		if !ok || version != c.version || kind != c.kind {
			t.Errorf("VersionOfFile(%q, %q) = %q, %q, %v, want %q, %q", c.name, c.file, version, kind, ok, c.version, c.kind)
		}
		if key, ok := KeyOfFile(c.name, c.file); !ok || key != c.file {
			t.Errorf("KeyOfFile(%q) = %q, %v", c.file, key, ok)
		}
		if key, ok := KeyOfFile(c.name, c.file+".metadata"); !ok || key != c.file { // C17
			t.Errorf("KeyOfFile(%q.metadata) = %q, %v", c.file, key, ok)
		}
	}
}

// What no file of the project can be called, and what cannot be put into a path, a page or a
// folder.
func TestNoFileOfTheProject(t *testing.T) {
	for _, file := range []string{
		"", ".", "..", "foo", "foo-1.0", "foo-1.0.rpm", "foo-1.0.tar.gz.asc", "foo-.tar.gz", "foo-dev.tar.gz", "-1.0.tar.gz", "1.0.tar.gz", ".whl",
		// another project's
		"bar-1.0.tar.gz", "foo-bar-1.0.tar.gz", "foobar-1.0.tar.gz", "bar-1.0-py3-none-any.whl", "foo_bar-1.0-py3-none-any.whl",
		"foo-1.0.whl", "foo-1.0-py3-none.whl", "foo-1.0-a-py3-none-any.whl", "foo-1.0-1-2-py3-none-any.whl", "foo-1.0-py3--any.whl", "foo--py3-none-any.whl",
		"foo-1.0-py3-none-any.whl.metadata.metadata", "foo.metadata", ".metadata",
		"../foo-1.0.tar.gz", "a/foo-1.0.tar.gz", `a\foo-1.0.tar.gz`, "foo-1.0\x00.tar.gz", "foo-1.0 .tar.gz", "foo-1.0?.tar.gz", "foo-1.0#.tar.gz",
		"foo-1.0%2f.tar.gz", "foo-1.0\".tar.gz", "foo-1.0<.tar.gz", "foo-1.0&.tar.gz", "foo-1.0'.tar.gz", "foo-1.0\n.tar.gz", "foo-1.0ä.tar.gz",
		"foo-1.0.tar.gz/", "foo-1." + strings.Repeat("0", maxFile) + ".tar.gz",
	} {
		if version, kind, ok := VersionOfFile("foo", file); ok {
			t.Errorf("VersionOfFile(foo, %q) = %q, %q", file, version, kind)
		}
		if key, ok := KeyOfFile("foo", file); ok {
			t.Errorf("KeyOfFile(foo, %q) = %q", file, key)
		}
	}
}

func FuzzVersionOfFile(f *testing.F) {
	for _, seed := range []string{"foo-1.0-py3-none-any.whl", "foo-1.0.tar.gz", "foo-1.0-py2.7.egg", "foo-1.0.win32.exe", "FOO-1!1+a-1-a-b-c.whl"} {
		f.Add("foo", seed)
	}
	f.Fuzz(func(t *testing.T, name, file string) {
		if _, err := ParseName(name); err != nil {
			return
		}
		version, kind, ok := VersionOfFile(name, file)
		if !ok {
			return
		}
		if version == "" || version != strings.ToLower(version) || kind == "" {
			t.Fatalf("VersionOfFile(%q, %q) = %q, %q", name, file, version, kind)
		}
		if strings.ContainsAny(file, "/\\\"'<>&?#% \t\r\n\x00") || file[0] == '.' {
			t.Fatalf("%q would have to be escaped somewhere", file)
		}
		if again, ok := NormalizeVersion(version); ok && again != version {
			t.Fatalf("the version of %q is %q, which is not normalised", file, version)
		}
	})
}
