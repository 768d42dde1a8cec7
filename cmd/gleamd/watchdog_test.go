// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// serviceManager is a socket that gleamd tells its states.
type serviceManager struct{ *net.UnixConn }

func newServiceManager(t *testing.T) serviceManager {
	t.Helper()
	dir, err := os.MkdirTemp("", "gleamd-notify") // gleamd becomes another user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	name := filepath.Join(dir, "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(name, 0o777)); err != nil {
		t.Fatal(err)
	}
	return serviceManager{c}
}

// name is the socket's, for NOTIFY_SOCKET.
func (m serviceManager) name() string { return m.LocalAddr().String() }

// hear returns the next state that comes within a time; "" if there is none.
func (m serviceManager) hear(t *testing.T, within time.Duration) string {
	t.Helper()
	if err := m.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	n, err := m.Read(buf)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return string(buf[:n])
}

// The watchdog hears nothing while the switch makes no progress, the log says why, and it
// hears again afterwards.
func TestWatchdogHearsOfProgressOnly(t *testing.T) {
	b, m := newBench(t, ""), newServiceManager(t)
	t.Setenv("NOTIFY_SOCKET", m.name())
	t.Setenv("WATCHDOG_USEC", "60000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	asked, mended := make(chan struct{}, 100), make(chan struct{})
	b.eng.progress = func(ctx context.Context) error {
		select {
		case <-mended:
			return nil
		default:
		}
		<-ctx.Done()
		asked <- struct{}{}
		return fmt.Errorf("worker 3 has not ended its batch: %w", ctx.Err())
	}
	stop := b.start(t)
	for range 4 {
		<-asked
	}
	if s := m.hear(t, testTimeout); s != "READY=1" {
		t.Errorf("first %q", s)
	}
	if s := m.hear(t, time.Millisecond); s != "" {
		t.Errorf("%q while the switch stands still", s)
	}
	close(mended)
	for range 3 {
		if s := m.hear(t, testTimeout); s != "WATCHDOG=1" {
			t.Errorf("%q after it went on", s)
		}
	}
	if code := stop(); code != 0 {
		t.Errorf("exit %d", code)
	}
	log := b.err.String()
	if strings.Count(log, "worker 3 has not ended its batch") != 1 || !strings.Contains(log, "is notified again") {
		t.Errorf("log:\n%s", log)
	}
}

// Another process's watchdog, and a time that makes no sense, are nobody's to answer.
func TestWatchdogOfOthers(t *testing.T) {
	for _, env := range [][2]string{{"1000", "1"}, {"soon", strconv.Itoa(os.Getpid())}, {"-5", ""}, {"", ""}} {
		b, m := newBench(t, ""), newServiceManager(t)
		t.Setenv("NOTIFY_SOCKET", m.name())
		t.Setenv("WATCHDOG_USEC", env[0])
		t.Setenv("WATCHDOG_PID", env[1])
		b.eng.progress = func(context.Context) error { t.Errorf("%v: asked", env); return nil }
		if code := b.start(t)(); code != 0 {
			t.Errorf("%v: exit %d\n%s", env, code, b.err.String())
		}
		for _, want := range []string{"READY=1", "STOPPING=1"} {
			if s := m.hear(t, testTimeout); s != want {
				t.Errorf("%v: %q, want %s", env, s, want)
			}
		}
	}
}

// A worker's thread that stands still keeps the watchdog silent, though the process runs.
func TestWatchdogWhenAWorkerHangs(t *testing.T) {
	m := newServiceManager(t)
	p := &process{star: labtest.Star(t, lab.StarConfig{Hosts: 2}), env: []string{"NOTIFY_SOCKET=" + m.name(), "WATCHDOG_USEC=300000"}}
	p.configure(t, "worker: {cpu: 0}\n")
	if s := m.hear(t, testTimeout); s != "READY=1" {
		t.Fatalf("%q\n%s", s, p.Output())
	}
	if s := m.hear(t, testTimeout); s != "WATCHDOG=1" {
		t.Fatalf("%q\n%s", s, p.Output())
	}
	goOn := labtest.HoldThread(t, labtest.ThreadOnCPU0(t, p.PID()))
	for end := time.Now().Add(testTimeout); !strings.Contains(p.Output(), "watchdog is not notified"); {
		if time.Now().After(end) {
			t.Fatalf("nothing is said of a worker that stands still:\n%s", p.Output())
		}
		m.hear(t, 10*time.Millisecond) // sent before it stood still
	}
	if s := m.hear(t, time.Second); s != "" {
		t.Errorf("%q, though a worker stands still\n%s", s, p.Output())
	}
	goOn()
	if s := m.hear(t, testTimeout); s != "WATCHDOG=1" {
		t.Errorf("%q after the worker went on\n%s", s, p.Output())
	}
	if !strings.Contains(p.Output(), "worker 0") {
		t.Errorf("the log does not name the worker:\n%s", p.Output())
	}
}
