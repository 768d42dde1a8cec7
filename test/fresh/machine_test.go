// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package fresh types README's commands, and starts each target of make, on a Debian with git,
// make, ca-certificates and Go alone.
package fresh

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gleam-rdma/gleam/test/debian"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// source is this checkout.
const source = "../.."

// machine is a Debian in a folder, with this machine's Go and network.
type machine struct {
	root  string
	base  string            // the machine that it began as; may be empty
	clone string            // its place in the machine: that of the checkout here, so that caches of compiled packages fit
	binds map[string]string // folders of this machine by their places there
	env   []string
}

// newMachine makes a machine, with a clone of what is committed here.
func newMachine(t *testing.T) *machine {
	t.Helper()
	labtest.Require(t)
	clone, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	goroot := goEnv(t)["GOROOT"]
	m := &machine{
		root:  debian.Root(t, "git", "make", "ca-certificates"),
		clone: clone,
		binds: map[string]string{"/usr/local/go": "ro:" + goroot},
		env:   []string{"HOME=/root", "USER=root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin", "GLEAM_REQUIRE_ROOT=1"},
	}
	if said := run(t, "git", "-C", source, "status", "--porcelain"); said != "" {
		t.Logf("NOTE: what is not committed is not in the clone:\n%s", said)
	}
	run(t, "git", "clone", "--quiet", "--no-local", source, m.root+clone)

	// Where packages and modules come from, and who vouches for it, is this machine's.
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasSuffix(strings.ToLower(name), "_proxy") {
			m.env = append(m.env, v)
		}
	}
	for _, name := range []string{"GOFLAGS", "GOINSECURE", "GONOPROXY", "GONOSUMDB", "GOPRIVATE", "GOPROXY", "GOSUMDB"} {
		m.env = append(m.env, name+"="+goEnv(t)[name])
	}
	for _, file := range []string{"/etc/resolv.conf", "/etc/hosts"} {
		m.copy(t, file, file)
	}
	var proxies strings.Builder
	for line := range strings.Lines(run(t, "apt-config", "dump")) {
		if key, _, _ := strings.Cut(line, " "); strings.Contains(key, "Proxy") || strings.HasPrefix(key, "Acquire::Check") {
			proxies.WriteString(line)
		}
	}
	for file, text := range map[string]string{
		"/etc/apt/apt.conf.d/90machine":  proxies.String(),
		"/etc/dpkg/dpkg.cfg.d/90machine": "force-unsafe-io\n", // a machine of minutes waits for no disk
	} {
		if err := os.WriteFile(m.root+file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	certificates, _ := filepath.Glob("/usr/local/share/ca-certificates/*.crt")
	for _, file := range certificates {
		m.copy(t, file, file)
	}
	m.run(t, "update-ca-certificates >/dev/null")
	return m
}

// fork returns a machine that begins as m is, and changes by itself but for the folders that are shared.
func (m *machine) fork(t *testing.T, shared map[string]string) *machine {
	t.Helper()
	f := &machine{root: debian.Folder(t), base: m.root, clone: m.clone, binds: maps.Clone(m.binds), env: m.env}
	maps.Copy(f.binds, shared)
	return f
}

// copy copies a file of this machine.
func (m *machine) copy(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(m.root+to), 0o755)
	}
	if err == nil {
		os.Remove(m.root + to) // it may be a link
		err = os.WriteFile(m.root+to, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run types lines of bash in the clone. What they print is in the test's log as it comes.
func (m *machine) run(t *testing.T, lines string) {
	t.Helper()
	c := debian.Command(debian.Script(m.root, m.base, m.binds) + "cd '" + m.clone + "'; exec bash -euc \"$LINES_OF_THE_TEST\"")
	c.Env = append(slices.Clone(m.env), "LINES_OF_THE_TEST="+lines)
	c.Stdout, c.Stderr = t.Output(), t.Output()
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // nothing runs on when the test is interrupted
	runtime.LockOSThread()                                           // whose death it is about
	defer runtime.UnlockOSThread()
	t.Logf("$ %s", lines)
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v", lines, err)
	}
}

// run returns what a command of this machine prints.
func run(t *testing.T, command ...string) string {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, &said)
	}
	return string(out)
}

func goEnv(t *testing.T) (env map[string]string) {
	t.Helper()
	if err := json.Unmarshal([]byte(run(t, "go", "env", "-json")), &env); err != nil {
		t.Fatal(err)
	}
	return env
}
