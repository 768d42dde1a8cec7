// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/control"
	"github.com/gleam-rdma/gleam/endpoint"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/libgleam/join"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
	"github.com/gleam-rdma/gleam/tools/lab"
)

// world is a star with a switch inside this process. The sessions are in this
// process too: they have to follow their callers' threads into the namespaces.
type world struct {
	*lab.Star
	t   *testing.T
	ctx context.Context
}

var auth = envelope.Auth{Keys: envelope.Keys{1: []byte("a libgleam lab's key of 32 bytes")}, Send: 1}

func newWorld(t *testing.T, hosts int) *world {
	t.Helper()
	w := &world{t: t, Star: labtest.Star(t, lab.StarConfig{Hosts: hosts})}
	text := w.Config() + fmt.Sprintf("umem: {frames: 8192}\nrings: {rx: 512, tx: 512, fill: 512, completion: 512}\n"+
		"envelope: {keys: [{id: 1, secret: \"hex:%x\"}]}\n", auth.Keys[1])
	cfg, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var engine *control.Engine
	quiet := func(bool, string, ...any) {}
	if err := w.Switch.Do(func() (err error) { engine, err = control.Open(cfg, quiet); return err }); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Switch.Do(func() error { return engine.Run(running) }) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, engine.Close()); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	w.ctx = ctx
	return w
}

// session makes a session; group is "" at a member.
func (w *world) session(port int, group string, members int) *join.Session {
	w.t.Helper()
	cfg := join.Config{
		Exchange: fmt.Sprintf("%s:%d", w.Hosts[0].IPv4, port),
		Host:     endpoint.HostConfig{Auth: auth, Deadline: 3 * time.Second},
	}
	if group != "" {
		cfg.Master = &endpoint.MasterConfig{GroupIP: netip.MustParseAddr(group), Members: members}
	}
	s, err := join.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return s
}

// begin joins at host i with a queue pair of that number.
func (w *world) begin(s *join.Session, i int, qpn rocev2.QPN) (to endpoint.Remote, err error) {
	err = w.Hosts[i].NS.Do(func() (err error) {
		to, err = s.Join(w.ctx, endpoint.QPInfo{IP: w.Hosts[i].IPv4, QPN: qpn, SQPSN: 1, RQPSN: 2}, &join.Memory{Addr: 4096, Len: 4096, RKey: 7})
		return err
	})
	return to, err
}

// together joins all sessions, one for each host, and waits for the group.
func (w *world) together(qpn rocev2.QPN, sessions ...*join.Session) {
	w.t.Helper()
	results := make(chan error, len(sessions))
	for i, s := range sessions {
		go func() {
			_, err := w.begin(s, i, qpn)
			if err == nil {
				err = s.Connected(nil)
			}
			if err == nil {
				_, err = s.Wait(w.ctx)
			}
			results <- err
		}()
	}
	for range sessions {
		if err := <-results; err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) next(s *join.Session, want endpoint.EventKind) {
	w.t.Helper()
	if e, err := s.Next(w.ctx); err != nil || e.Kind != want {
		w.t.Errorf("event %+v (%v), want %v", e, err, want)
	}
}

// TestTwoGroupsAtOnce: one address in two groups of one process, which end one
// after the other; then the address is free for other settings.
func TestTwoGroupsAtOnce(t *testing.T) {
	w := newWorld(t, 2)
	one := []*join.Session{w.session(7000, "10.77.254.1", 1), w.session(7000, "", 0)}
	two := []*join.Session{w.session(7001, "10.77.254.2", 1), w.session(7001, "", 0)}
	w.together(0x20, one...)
	w.together(0x21, two...)
	for i := range two {
		w.next(one[i], endpoint.Joined)
		w.next(two[i], endpoint.Joined)
	}

	other, err := join.New(join.Config{Exchange: "10.77.0.1:7002", Host: endpoint.HostConfig{Auth: auth, Deadline: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := w.begin(other, 1, 0x22); err == nil || !strings.Contains(err.Error(), "with another key, port or timeout") {
		t.Errorf("other settings for an address in use: %v", err)
	}

	if err := one[0].Leave(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.next(one[1], endpoint.Ended)
	if _, err := one[1].Next(w.ctx); !errors.Is(err, join.ErrNoMore) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := w.begin(two[1], 1, 0x22); !errors.Is(err, join.ErrOrder) {
		t.Errorf("joining twice: %v", err)
	}
	// The first two sessions may join again, the group that was.
	w.together(0x23, one...)
	w.next(one[1], endpoint.Joined)
	if err := two[1].Leave(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.next(two[1], endpoint.Ended)
	w.next(two[0], endpoint.MemberLeft)

	for _, s := range append(one, two...) {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	short, cancel := context.WithTimeoutCause(w.ctx, 50*time.Millisecond, errors.New("enough"))
	defer cancel()
	w.ctx = short
	if _, err := w.begin(other, 1, 0x22); err == nil || !strings.Contains(err.Error(), "enough; the master describes") {
		t.Errorf("other settings for an address that is free again: %v", err)
	}
}

// TestLeaveWhileConnecting gives up while the application connects its queue
// pair: everybody is told.
func TestLeaveWhileConnecting(t *testing.T) {
	w := newWorld(t, 2)
	master, member := w.session(7000, "10.77.254.1", 1), w.session(7000, "", 0)
	result := make(chan error, 1)
	go func() {
		_, err := w.begin(master, 0, 0x20)
		if err == nil {
			err = master.Connected(nil)
		}
		if err == nil {
			_, err = master.Wait(w.ctx)
		}
		result <- err
	}()
	to, err := w.begin(member, 1, 0x21)
	if err != nil || to.IP != netip.MustParseAddr("10.77.254.1") || to.QPN != endpoint.DefaultVirtualQPN || to.PathMTU != 1024 || to.RQPSN != 2 {
		t.Fatalf("%+v, %v", to, err)
	}
	if err := member.Leave(w.ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err == nil || !strings.Contains(err.Error(), "10.77.0.2") || !strings.Contains(err.Error(), "it left before the group was registered") {
		t.Errorf("the master was told %v", err)
	}
	w.next(master, endpoint.Failed)
	if err := member.Connected(nil); err == nil || !strings.Contains(err.Error(), "had not connected its queue pair") {
		t.Errorf("connected after leaving: %v", err)
	}
	if _, err := member.Wait(w.ctx); err == nil {
		t.Error("a wait after leaving succeeds")
	}
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  join.Config
		want string
	}{
		"no address": {join.Config{}, "no address for the exchange"},
		"no group":   {join.Config{Exchange: "x:1", Master: &endpoint.MasterConfig{Members: 1}}, "want a unicast address"},
		"class D":    {join.Config{Exchange: "x:1", Master: &endpoint.MasterConfig{Members: 1, GroupIP: netip.MustParseAddr("224.0.0.1")}}, "want a unicast address"},
		"nobody":     {join.Config{Exchange: "x:1", Master: &endpoint.MasterConfig{GroupIP: netip.MustParseAddr("10.0.0.1")}}, "0 members"},
	} {
		if _, err := join.New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
