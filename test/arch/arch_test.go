// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the module's folder.
const root = "../.."

// goFiles returns all Go files of the module, by path relative to root, without
// hidden folders and testdata.
func goFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "vendor") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(rel)], err = os.ReadFile(p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestArchitecture(t *testing.T) {
	files := goFiles(t)
	for _, must := range []string{"rocev2/psn.go", "mcast/types.go", "test/arch/rooms.go"} {
		if files[must] == nil {
			t.Fatalf("%s not found; looked at %d files", must, len(files))
		}
	}
	for name, src := range files {
		for _, wrong := range check(name, src) {
			t.Error(wrong)
		}
	}
}

func TestModulePath(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(mod, []byte("module "+module+"\n")) {
		t.Errorf("go.mod is not of %s: the checks look for imports of that", module)
	}
}

// TestCheckFindsWhatItIsFor checks files with one fault each.
func TestCheckFindsWhatItIsFor(t *testing.T) {
	file := func(pkg, body string) string { return header + "\npackage " + pkg + "\n\n" + body + "\n" }
	const good = "import \"time\"\n\nvar D = time.Second"
	for _, tt := range []struct{ name, path, src, want string }{
		{"good", "mcast/x.go", file("mcast", good), ""},
		{"socket", "mcast/x.go", file("mcast", `import "net"; var _ net.Conn`), "x.go:6: the core must not import net: sockets"},
		{"netip", "mcast/x.go", file("mcast", `import "net/netip"; var _ netip.Addr`), ""},
		{"net/http", "mcast/x.go", file("mcast", `import "net/http"; var _ http.Client`), "the core must not import net/http"},
		{"os", "host/rc/x.go", file("rc", `import "os"; var _ os.File`), "the core must not import os"},
		{"x/sys", "host/rc/x.go", file("rc", `import "golang.org/x/sys/unix"; var _ = unix.AF_INET`), "the core must not import golang.org/x/sys/unix"},
		{"atomic", "rocev2/x.go", file("rocev2", `import "sync/atomic"; var _ atomic.Bool`), "the core must not import sync/atomic"},
		{"log", "envelope/x.go", file("envelope", `import "log/slog"; var _ slog.Logger`), "the core must not import log/slog"},
		{"zap", "envelope/x.go", file("envelope", `import "go.uber.org/zap"; var _ zap.Logger`), "the core must not import go.uber.org/zap"},
		{"faulty name", "dataplane/x.go", file("dataplane", `import "github.com/vishvananda/netlink/nl"; var _ nl.Genlmsg`), "has 2 bytes and sends 4"},
		{"faulty function", "dataplane/x_test.go", file("dataplane", `import "github.com/vishvananda/netlink"; var _ = netlink.GenlFamilyGet`), "uses nl.Genlmsg"},
		{"goroutine", "mcast/x.go", file("mcast", "func f() {\n\tgo f()\n}"), "x.go:7: the core must not start goroutines"},
		{"now", "mcast/x.go", file("mcast", "import \"time\"\n\nvar t = time.Now()"), "x.go:8: the core must not use time.Now"},
		{"now as value", "mcast/x.go", file("mcast", `import clock "time"; var now = clock.Now`), "the core must not use time.Now"},
		{"timer", "mcast/x.go", file("mcast", `import "time"; var t = time.NewTimer(0)`), "the core must not use time.NewTimer"},
		{"global rand", "host/rc/x.go", file("rc", `import "math/rand/v2"; var n = rand.IntN(3)`), "the core must not use math/rand/v2.IntN"},
		{"seeded rand", "host/rc/x.go", file("rc", `import "math/rand/v2"; func f(r *rand.Rand) *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }`), ""},
		{"dot import", "host/rc/x.go", file("rc", `import . "time"; var n = Now()`), "dot import of time"},
		{"test of the core", "mcast/x_test.go", file("mcast", "import \"time\"\n\nvar t = time.Now()\n\nfunc f() { go f() }"), ""},
		{"now elsewhere", "dataplane/x.go", file("dataplane", "import \"time\"\n\nvar t = time.Now()"), ""},

		{"down the list", "dataplane/x.go", file("dataplane", `import _ "`+module+`/mcast"`), ""},
		{"up the list", "mcast/x.go", file("mcast", `import _ "`+module+`/dataplane"`), "mcast is below dataplane in the table"},
		{"not for config", "config/x.go", file("config", `import _ "`+module+`/rocev2"`), "config must know nothing of rocev2"},
		{"back from the data plane", "dataplane/x.go", file("dataplane", `import _ "`+module+`/internal/control"`), "dataplane is below internal/control in the table"},
		{"past the data plane", "internal/control/x.go", file("control", `import _ "`+module+`/dataplane/xsk"`), "internal/control must know nothing of dataplane/xsk"},
		{"not for endpoint", "host/endpoint/soft/x.go", file("soft", `import _ "`+module+`/dataplane/xsk"`), "host/endpoint must know nothing of dataplane/xsk"},
		{"words", "host/endpoint/x.go", file("endpoint", `import "`+module+`/mcast"; var _ mcast.Window`), ""},
		{"not the switch", "host/endpoint/x.go", file("endpoint", `import "`+module+`/mcast"; var _ mcast.Switch`), "host/endpoint must know nothing of mcast.Switch"},
		{"own room", "host/endpoint/soft/x.go", file("soft", `import _ "`+module+`/host/endpoint"`), ""},
		{"test imports up", "mcast/x_test.go", file("mcast", `import _ "`+module+`/lab"`), ""},
		{"no room", "attic/x.go", file("attic", ""), "package attic has no room"},
		{"testing", "dataplane/x.go", file("dataplane", `import "testing"; var _ testing.TB`), "imports testing outside of a test"},
		{"testing in a test", "dataplane/x_test.go", file("dataplane", `import "testing"; var _ testing.TB`), ""},

		{"no header", "mcast/x.go", "package mcast\n", "x.go:1: does not begin with the licence header"},
		{"generated", "mcast/x.go", "// Code generated by x; DO NOT EDIT.\n\npackage mcast\n", ""},
		{"long", "mcast/x.go", file("mcast", strings.Repeat("//\n", maxLines)), "split it (at most 450)"},
		{"long generated", "mcast/x.go", "// Code generated by x; DO NOT EDIT.\n" + file("mcast", strings.Repeat("//\n", maxLines)), ""},
		{"util", "lab/util/x.go", file("util", ""), "package name util says nothing"},
		{"common inside", "lab/x.go", file("common", ""), "package name common says nothing"},
		{"helpers", "lab/x_test.go", file("helpers_test", ""), "package name helpers says nothing"},
		{"exit", "dataplane/x.go", file("dataplane", `import "os"; func f() { os.Exit(1) }`), "a library must not end the process (os.Exit)"},
		{"fatal", "dataplane/x.go", file("dataplane", `import "log"; func f() { log.Fatalf("") }`), "a library must not end the process (log.Fatalf)"},
		{"exit of a command", "cmd/gleam/x.go", file("main", `import "os"; func f() { os.Exit(1) }`), ""},
		{"exit of a command of the tests", "test/x/x.go", file("main", `import "os"; func f() { os.Exit(1) }`), ""},
		{"no Go", "mcast/x.go", "package", "expected 'IDENT'"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(check(tt.path, []byte(tt.src)), "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestRoomsAreConsistent checks that each room stands below the rooms that it knows.
func TestRoomsAreConsistent(t *testing.T) {
	for i, r := range rooms {
		for _, k := range r.knows {
			if j := roomOf(k); j < 0 || j >= i || rooms[j].dir != k {
				t.Errorf("%s knows %s, which does not stand above it", r.dir, k)
			}
		}
	}
}
