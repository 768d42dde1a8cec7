// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gleam-rdma/gleam/api"
)

// leaveStale leaves a socket on which no process listens.
func leaveStale(t *testing.T, path string) {
	t.Helper()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
}

func TestListenMakesDirectoryAndMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "s.sock")
	ln, err := api.Listen(path, 0o620)
	if err != nil {
		t.Fatal(err)
	}
	fi, err := os.Lstat(path)
	if err != nil || fi.Mode() != os.ModeSocket|0o620 {
		t.Errorf("got %v, %v", fi.Mode(), err)
	}
	for range 2 {
		if err := ln.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	leaveStale(t, path)
	ln, err := api.Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
}

func TestSocketInUseIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	first, err := api.Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err = api.Listen(path, 0o600); !errors.Is(err, api.ErrSocketInUse) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want it to name %s", err, path)
	}
	if c, err := net.Dial("unix", path); err != nil {
		t.Errorf("the first one's socket is gone: %v", err)
	} else {
		c.Close()
	}
}

// TestOneOfManyListens starts many at once on a stale socket: without the lock
// two of them find it stale and the second removes what the first has bound.
func TestOneOfManyListens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	leaveStale(t, path)
	var wg sync.WaitGroup
	lns := make([]*api.Listener, 16)
	for i := range lns {
		wg.Go(func() { lns[i], _ = api.Listen(path, 0o600) })
	}
	wg.Wait()
	n := 0
	for _, ln := range lns {
		if ln != nil {
			n++
			defer ln.Close()
		}
	}
	if n != 1 {
		t.Errorf("%d of %d listen, want 1", n, len(lns))
	}
}

// A user who may read the directory may hold a flock on it: that keeps no gleamd from starting. Nothing is left in the
// directory but the socket, and what a gleamd has left that was killed meanwhile is in nobody's way.
func TestHeldDirectoryKeepsNobodyFromListening(t *testing.T) {
	dir := t.TempDir()
	held, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s.sock")
	if err := os.WriteFile(path+".lock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := api.Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v: want the socket alone", files, err)
	}
}

func TestCloseLeavesAnothersSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	first, err := api.Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(path) // by a careless operator
	next, err := api.Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	first.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the second one's socket is gone: %v", err)
	}
}

func TestListenErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, want string }{
		{"", "no path"},
		{file, "not a socket"},
		{filepath.Join(file, "s.sock"), "make its directory"},
		{filepath.Join(dir, strings.Repeat("x", 108)), "too long"},
	} {
		if _, err := api.Listen(tt.path, 0o600); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.path) {
			t.Errorf("%q: got %v, want %q", tt.path, err, tt.want)
		}
	}
	if _, err := os.Lstat(file); err != nil {
		t.Errorf("a file in the way was removed: %v", err)
	}
}

// TestPermissionDenied calls as the user nobody: root may write to every socket, so
// this test's program runs itself again.
func TestPermissionDenied(t *testing.T) {
	if socket := os.Getenv("GLEAM_TEST_SOCKET"); socket != "" {
		_, err := api.Dial(socket).Version(t.Context())
		if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "use sudo") || !strings.Contains(err.Error(), socket) {
			t.Fatalf("got %v", err)
		}
		return
	}
	dir, err := os.MkdirTemp("/tmp", "gleam-api") // that other users may not enter, unlike t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s.sock")
	ln, err := api.Listen(socket, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	exe := filepath.Join(dir, "test")
	if b, err := os.ReadFile("/proc/self/exe"); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(exe, b, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run", "^TestPermissionDenied$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GLEAM_TEST_SOCKET="+socket)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	} else if err := os.Chmod(socket, 0); err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestPermissionDenied") {
		t.Errorf("%v\n%s", err, out)
	}
}
