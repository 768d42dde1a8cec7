// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/config/trusted"
	"github.com/gleam-rdma/gleam/internal/confine/privilege"
	"github.com/gleam-rdma/gleam/internal/control"
	"github.com/gleam-rdma/gleam/internal/doctor"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
	"github.com/gleam-rdma/gleam/test/apitest"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// testTimeout bounds what should take milliseconds.
const testTimeout = 20 * time.Second

// fakeEngine is a switch without ports.
type fakeEngine struct {
	*apitest.Backend
	run           func(context.Context) error
	closeErr      error
	ended, closed bool // Run has returned; Close was called, after it
	lost          control.Lost
	refusal       error // the error of Reconfigure
	progress      func(context.Context) error
}

func (e *fakeEngine) Progress(ctx context.Context) error {
	if e.progress != nil {
		return e.progress(ctx)
	}
	return nil
}

func (e *fakeEngine) Run(ctx context.Context) (err error) {
	if e.run != nil {
		err = e.run(ctx)
	} else {
		<-ctx.Done()
	}
	e.ended = true
	return err
}

func (e *fakeEngine) Reconfigure(_, _ *config.Config, _ bool) (control.Lost, error) {
	return e.lost, e.refusal
}

func (e *fakeEngine) Close() error {
	e.closed = e.ended
	return e.closeErr
}

// buffer is written by the daemon while the test reads it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// bench is a daemon under test and what it said.
type bench struct {
	daemon
	dir, file, socket string
	out, err          buffer
	eng               *fakeEngine
	openErr           error
	confineErr        error
}

const secret = "5d03b8e67f1294ca83e6105bd94f7a2c61f8c30e957db42ae8176c90f34a2bd5"

// ownGroup is a group of users that whoever runs the test may give files to.
func ownGroup(t *testing.T) string {
	t.Helper()
	g, err := user.LookupGroupId(strconv.Itoa(os.Getgid()))
	if err != nil {
		t.Fatal(err)
	}
	return g.Name
}

func newBench(t *testing.T, extra string) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), eng: &fakeEngine{Backend: apitest.Switch()}}
	b.file, b.socket = filepath.Join(b.dir, "gleamd.yaml"), filepath.Join(b.dir, "s.sock")
	text := "ports: [{name: p1}]\ngroup_prefixes: [10.77.254.0/24]\nenvelope: {keys: [{id: 1, secret: \"hex:" + secret +
		"\"}]}\napi: {socket: " + b.socket + ", group: " + ownGroup(t) + "}\n" + extra
	if err := os.WriteFile(b.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b.stdout, b.stderr = &b.out, &b.err
	b.inspect = func(*config.Config, *doctor.Running) []checks.Finding { return nil }
	b.identify = func(string) (privilege.Identity, error) {
		return privilege.Identity{UID: os.Geteuid(), GID: os.Getegid()}, nil
	}
	b.confine = func(privilege.Identity) error { return b.confineErr }
	b.open = func(cfg *config.Config, say control.Notify) (engine, error) {
		if b.openErr != nil {
			return nil, b.openErr
		}
		say(false, "port attached", "port", "p1", "xdp", "generic")
		say(true, "generic mode, slower", "config", fmt.Sprintf("%+v", cfg))
		return b.eng, nil
	}
	return b
}

// start runs the daemon until it answers; stop is the signal, and returns the
// exit code.
func (b *bench) start(t *testing.T) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- b.main(ctx, []string{"-c", b.file}) }()
	ready, done := context.WithTimeout(t.Context(), testTimeout)
	defer done()
	c := api.Dial(b.socket)
	defer c.Close()
	if err := c.WaitReady(ready); err != nil {
		cancel()
		t.Fatalf("%v\n%s", err, b.err.String())
	}
	return func() int { cancel(); return <-code }
}

func TestRunServesUntilTheSignal(t *testing.T) {
	b := newBench(t, "log: {format: json}\n")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(b.dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", manager.LocalAddr().String())
	stop := b.start(t)
	c := api.Dial(b.socket)
	defer c.Close()
	if gs, err := c.Groups(t.Context()); err != nil || len(gs) != len(b.eng.GroupList) {
		t.Errorf("Groups: %v, %v", gs, err)
	}
	if code := stop(); code != 0 || !b.eng.closed {
		t.Errorf("exit %d, closed after Run: %v\n%s", code, b.eng.closed, b.err.String())
	}
	if _, err := os.Lstat(b.socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
	for _, want := range []string{"READY=1", "STOPPING=1"} {
		buf := make([]byte, 100)
		n, err := manager.Read(buf)
		if err != nil || string(buf[:n]) != want {
			t.Errorf("the service manager was told %q, %v, want %s", buf[:n], err, want)
		}
	}
	var got []string
	for line := range strings.Lines(b.err.String()) {
		var l struct{ Level, Msg, Port string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Errorf("%q is not JSON", line)
		}
		got = append(got, l.Level+" "+l.Msg)
	}
	want := []string{"info gleamd starts", "info port attached", "warn generic mode, slower", "info gleamd is ready", "info gleamd ends, the ports are the kernel's again"}
	if !slices.Equal(got, want) {
		t.Errorf("log: %q\nwant %q", got, want)
	}
	if s := b.err.String(); strings.Contains(s, secret) || strings.Contains(s, secret[:16]) {
		t.Errorf("the secret is in the log: %s", s)
	}
}

func TestLogLevel(t *testing.T) {
	b := newBench(t, "log: {level: error}\n")
	if code := b.start(t)(); code != 0 || b.err.String() != "" {
		t.Errorf("exit %d, log %q", code, b.err.String())
	}
}

func TestSecondDaemonLeavesTheFirstAlone(t *testing.T) {
	first := newBench(t, "")
	stop := first.start(t)
	second := newBench(t, "")
	text, err := os.ReadFile(first.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(second.file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	second.openErr = errors.New("the ports were touched")
	code := second.main(t.Context(), []string{"--config", second.file})
	if s := second.err.String(); code != 1 || !strings.Contains(s, "another gleamd answers") || !strings.Contains(s, first.socket) || !strings.Contains(s, "api.socket") {
		t.Errorf("exit %d, %s", code, s)
	}
	if _, err := api.Dial(first.socket).Version(t.Context()); err != nil {
		t.Errorf("the first one does not answer any more: %v", err)
	}
	if code := stop(); code != 0 {
		t.Errorf("the first one exits with %d", code)
	}
}

func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		set        func(*bench)
	}{
		{"open", "gleamd: port p1: no such interface\n", func(b *bench) { b.openErr = errors.New("port p1: no such interface") }},
		{"two causes", "gleamd: port p1: in use (busy)\n", func(b *bench) {
			b.openErr = fmt.Errorf("port p1: %w (%w)", errors.New("in use"), errors.New("busy"))
		}},
		{"run", "gleamd: rings are gone\n", func(b *bench) {
			b.eng.run = func(context.Context) error { return errors.New("rings are gone") }
		}},
		{"run ends", "gleamd: the switch stopped by itself\n", func(b *bench) {
			b.eng.run = func(context.Context) error { return nil }
		}},
		{"run and close", "gleamd: rings are gone\ngleamd: give the ports back to the kernel: netlink is gone\n", func(b *bench) {
			b.eng.run = func(context.Context) error { return errors.New("rings are gone") }
			b.eng.closeErr = errors.New("netlink is gone")
		}},
		{"not confined", "gleamd: confine this process: it will not\n", func(b *bench) { b.confineErr = errors.New("confine this process: it will not") }},
		{"user", "/gleamd.yaml: there is no such user\n", func(b *bench) {
			b.identify = func(string) (privilege.Identity, error) {
				return privilege.Identity{}, errors.New("there is no such user")
			}
		}},
		{"socket", "not a socket", func(b *bench) { os.WriteFile(b.socket, nil, 0o600) }},
	} {
		b := newBench(t, "log: {level: error}\n")
		tt.set(b)
		code := b.main(t.Context(), []string{"-c", b.file})
		if s := b.err.String(); code != 1 || !strings.HasSuffix(s, tt.want) && !strings.Contains(tt.want, "not a socket") || !strings.Contains(s, tt.want) {
			t.Errorf("%s: exit %d, %q, want %q", tt.name, code, s, tt.want)
		}
		if fi, err := os.Lstat(b.socket); err == nil && fi.Mode().Type() == os.ModeSocket {
			t.Errorf("%s: the socket is left behind", tt.name)
		}
	}
}

// A configuration with a secret that others may read is refused by --check, at start and by a
// reload, with the line and the remedy.
func TestOpenConfigurationIsRefused(t *testing.T) {
	b := newBench(t, "") // its configuration has a secret
	if err := os.Chmod(b.file, 0o644); err != nil {
		t.Fatal(err)
	}
	const want = "may be read or changed by others (mode 0644); run: chmod 0640 "
	for _, args := range [][]string{{"--check", "-c", b.file}, {"-c", b.file}} {
		if code := b.main(t.Context(), args); code != 1 || !strings.Contains(b.err.String(), want+b.file) {
			t.Errorf("%v: exit %d, %q", args, code, b.err.String())
		}
	}
	r := &reloader{file: b.file, files: new(trusted.Files)}
	if _, err := r.reload(api.Reload{}); err == nil || !strings.Contains(err.Error(), want+b.file) {
		t.Errorf("reload: %v", err)
	}
	if err := os.Chmod(b.file, 0o640); err != nil {
		t.Fatal(err)
	}
	if code := b.main(t.Context(), []string{"--check", "-c", b.file}); code != 0 {
		t.Errorf("mode 0640: exit %d, %s", code, b.err.String())
	}
}

func TestCheck(t *testing.T) {
	b := newBench(t, "")
	if code := b.main(t.Context(), []string{"--check", "-c", b.file}); code != 0 || b.out.String() != b.file+": ok\n" || b.err.String() != "" {
		t.Errorf("exit %d, %q, %q", code, b.out.String(), b.err.String())
	}
	b = newBench(t, "")
	b.inspect = doctor.Start
	b.main(t.Context(), []string{"--check", "-c", b.file})
	if want := "gleamd: port p1: there is no interface of this name here: "; !strings.Contains(b.err.String(), want) {
		t.Errorf("got %q, want %q and the existing ones", b.err.String(), want)
	}
	b = newBench(t, "")
	b.inspect = func(*config.Config, *doctor.Running) []checks.Finding {
		return []checks.Finding{{Port: "p1", Text: "port is down", Remedy: "ip link set p1 up"}}
	}
	if code := b.main(t.Context(), []string{"--check", "-c", b.file}); code != 0 ||
		b.out.String() != b.file+": ok, see the warnings\n" || b.err.String() != "gleamd: warning: port p1: port is down: ip link set p1 up\n" {
		t.Errorf("with a warning: exit %d, %q, %q", code, b.out.String(), b.err.String())
	}
	b = newBench(t, "umem: {frames: 3}\nlog: {level: loud}\n")
	code := b.main(t.Context(), []string{"--check", "-c", b.file})
	lines := strings.Split(strings.TrimSpace(b.err.String()), "\n")
	if code != 1 || len(lines) != 2 || b.out.String() != "" {
		t.Errorf("exit %d, %q, want two errors", code, b.err.String())
	}
	for i, want := range []string{b.file + ":5: umem.frames", b.file + ":6: log.level"} {
		if len(lines) > i && !strings.HasPrefix(lines[i], "gleamd: "+want) {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
}

func TestCheckPortsRefusesLoopback(t *testing.T) {
	found := doctor.Start(&config.Config{Ports: []config.Port{{Name: "lo"}, {Name: "nothere0"}}}, nil)
	if len(found) < 2 || !found[0].Fatal || !strings.Contains(found[0].String(), "port lo: not an Ethernet interface") ||
		!found[1].Fatal || !strings.Contains(found[1].String(), "nothere0") {
		t.Errorf("got %v", found)
	}
}

// The folder of the state file is checked for the user that gleamd becomes.
func TestCheckLooksAtTheState(t *testing.T) {
	labtest.Require(t)
	missing := filepath.Join(t.TempDir(), "missing", "folder")
	found := doctor.Start(&config.Config{User: config.UserAuto, State: missing}, nil)
	if !slices.ContainsFunc(found, func(f checks.Finding) bool {
		return f.Fatal && strings.Contains(f.String(), "key state: ") && strings.Contains(f.String(), missing)
	}) {
		t.Errorf("got %v", found)
	}
}

func TestCommandLine(t *testing.T) {
	for _, tt := range []struct {
		args     string
		code     int
		out, err string
	}{
		{"--version", 0, "gleamd version ", ""},
		{"--help", 0, "--config file", ""},
		{"gleamd.yaml", 2, "", `"gleamd.yaml": gleamd takes no arguments`},
		{"--confg x", 2, "", "unknown flag: --confg"},
		{"-c", 2, "", "flag needs an argument"},
		{"-c /nowhere/gleamd.yaml", 1, "", "/nowhere/gleamd.yaml"},
	} {
		b := newBench(t, "")
		code := b.main(t.Context(), strings.Fields(tt.args))
		if code != tt.code || !strings.Contains(b.out.String(), tt.out) || !strings.Contains(b.err.String(), tt.err) {
			t.Errorf("%s: exit %d, %q, %q, want %+v", tt.args, code, b.out.String(), b.err.String(), tt)
		}
	}
}
