// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/test/apitest"
)

var build = api.Version{Version: "v1", Go: "go1", Started: time.Unix(1e9, 0).UTC(), Pid: 7}

// serve runs a server on a socket of its own until the test ends.
func serve(t *testing.T, b api.Backend) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "run", "s.sock")
	ln, err := api.Listen(socket, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx, ln, b, build, api.Access{}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if _, err := os.Lstat(socket); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left behind: %v", err)
		}
	})
	return socket
}

func dial(t *testing.T, socket string) *api.Client {
	c := api.Dial(socket)
	t.Cleanup(c.Close)
	return c
}

func TestEveryReadArrivesWhole(t *testing.T) {
	b := apitest.Switch()
	c := dial(t, serve(t, b))
	ctx := t.Context()
	check := func(what string, got any, err error, want any) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\ngot  %+v\nwant %+v", what, err, got, want)
		}
	}
	gs, err := c.Groups(ctx)
	check("Groups", gs, err, b.GroupList)
	for i := range b.GroupList {
		g, err := c.Group(ctx, b.GroupList[i].IP)
		check("Group", g, err, &b.GroupList[i])
	}
	ps, err := c.Ports(ctx)
	check("Ports", ps, err, b.PortList)
	top, err := c.Topology(ctx)
	check("Topology", top, err, &b.Switches)
	st, err := c.Stats(ctx)
	check("Stats", st, err, b.Totals)
	es, err := c.Events(ctx, 1, time.Minute)
	check("Events", es, err, &api.Events{Events: b.EventList[1:], Last: 2})
	v, err := c.Version(ctx)
	check("Version", v, err, &build)
}

func TestRegisterAndDelete(t *testing.T) {
	b := &apitest.Backend{}
	c := dial(t, serve(t, b))
	r := sane()
	if err := c.Register(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if got := b.Registered(); len(got) != 1 || !reflect.DeepEqual(&got[0], r) {
		t.Errorf("the backend got %+v, want %+v", got, r)
	}
	if err := c.Delete(t.Context(), r.Group); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"delete again": c.Delete(t.Context(), r.Group),
		"get":          second(c.Group(t.Context(), r.Group)),
	} {
		var e *api.Error
		if !errors.As(err, &e) || e.Reason != api.ReasonUnknownGroup {
			t.Errorf("%s: got %v, want an unknown group", what, err)
		}
	}
}

func TestSetPort(t *testing.T) {
	b := apitest.Switch()
	c := dial(t, serve(t, b))
	for _, r := range []linkrate.Rate{20_000_000, linkrate.None} {
		if err := c.SetPort(t.Context(), "p1", &api.SetPort{Rate: &r}); err != nil {
			t.Fatal(err)
		}
		ps, err := c.Ports(t.Context())
		if err != nil || ps[0].Rate != r || ps[1].Rate != 100_000_000 {
			t.Errorf("after setting p1 to %v: %v, %+v", r, err, ps)
		}
	}
	var e *api.Error
	r := linkrate.None
	if err := c.SetPort(t.Context(), "p 9/x", &api.SetPort{Rate: &r}); !errors.As(err, &e) {
		t.Errorf("a port that is not there: %v", err)
	}
	if err := c.SetPort(t.Context(), "p9", &api.SetPort{Rate: &r}); !errors.As(err, &e) || e.Reason != api.ReasonUnknownPort {
		t.Errorf("a port that is not there: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestRejectionKeepsItsReason(t *testing.T) {
	c := dial(t, serve(t, &apitest.Backend{}))
	r := sane()
	r.Group = netip.MustParseAddr("192.0.2.1")
	var e *api.Error
	if err := c.Register(t.Context(), r); !errors.As(err, &e) || e.Reason != "not_group_prefix" {
		t.Errorf("got %v, want the backend's rejection", err)
	}
}

func TestClientErrorsNameTheSocketAndTheRemedy(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale.sock")
	leaveStale(t, stale)
	other := filepath.Join(dir, "other.sock")
	ln, err := net.Listen("unix", other)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() { // something that is not gleamd
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 1024))
			c.Write([]byte("HTTP/1.0 200 OK\r\n\r\nhello"))
			c.Close()
		}
	}()
	for _, tt := range []struct{ socket, want string }{
		{filepath.Join(dir, "none.sock"), "does not exist: is gleamd running?"},
		{stale, "is gleamd running?"},
		{other, "same version?"},
	} {
		_, err := dial(t, tt.socket).Stats(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.socket) {
			t.Errorf("got %v, want it to name %s and say %q", err, tt.socket, tt.want)
		}
	}
}

func TestWaitReady(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s.sock")
	waited := make(chan error, 1)
	go func() { waited <- dial(t, socket).WaitReady(t.Context()) }()
	ln, err := api.Listen(socket, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- api.Serve(ctx, ln, &apitest.Backend{}, build, api.Access{}) }()
	if err := <-waited; err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := dial(t, socket).WaitReady(short); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "is gleamd running?") {
		t.Errorf("got %v, want the deadline and the reason", err)
	}
}

func TestServeEndsWithItsListener(t *testing.T) {
	ln, err := api.Listen(filepath.Join(t.TempDir(), "s"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := api.Serve(t.Context(), ln, &apitest.Backend{}, build, api.Access{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// A request for events that do not come is answered when its time is over, and does not
// keep the daemon from stopping.
func TestEventsWait(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := api.Listen(socket, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- api.Serve(ctx, ln, &apitest.Backend{}, build, api.Access{}) }()
	c := dial(t, socket)
	if es, err := c.Events(t.Context(), 0, 20*time.Millisecond); err != nil || len(es.Events) != 0 {
		t.Errorf("got %v, %v", es, err)
	}
	asked := make(chan error, 1)
	go func() {
		_, err := c.Events(t.Context(), 0, time.Minute)
		asked <- err
	}()
	time.AfterFunc(20*time.Millisecond, stop)
	begun := time.Now()
	if err := <-served; err != nil {
		t.Error(err)
	}
	<-asked // answered or cut off
	if d := time.Since(begun); d > time.Second {
		t.Errorf("the server took %v to stop", d)
	}
}

func TestMembersComeAndGo(t *testing.T) {
	b := apitest.Switch()
	c := dial(t, serve(t, b))
	group, ip := b.GroupList[1].IP, netip.MustParseAddr("fd77::3")
	m := &api.AddMember{RegisterMember: api.RegisterMember{IP: ip, QPN: 0x20}}
	if err := c.AddMember(t.Context(), group, m); err != nil {
		t.Fatal(err)
	}
	var e *api.Error
	if err := c.AddMember(t.Context(), group, m); !errors.As(err, &e) {
		t.Errorf("twice: %v", err)
	}
	m.Replace = true
	if err := c.AddMember(t.Context(), group, m); err != nil {
		t.Error(err)
	}
	if err := c.RemoveMember(t.Context(), group, ip); err != nil {
		t.Error(err)
	}
	if err := c.RemoveMember(t.Context(), group, ip); !errors.As(err, &e) || e.Reason != api.ReasonUnknownMember {
		t.Errorf("removed twice: %v", err)
	}
}
