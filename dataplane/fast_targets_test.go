// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
)

// targetRig is a fastStream whose ports are looked at.
type targetRig struct {
	*fastStream
	targets *fastTargets
	now     time.Duration
	changes []int
	log     []string
}

func newTargetRig(t *testing.T) *targetRig {
	r := &targetRig{fastStream: newFastStream(t, 1<<7, 1, 2)}
	if err := r.x.Switch.Do(func() error {
		r.targets = newFastTargets(r.x.maps, 4, true, func(warn bool, msg string, kv ...any) {
			r.log = append(r.log, fmt.Sprint(append([]any{warn, " ", msg, " "}, kv...)...))
		})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.targets.close)
	r.targets.changed = func(pi int) { r.changes = append(r.changes, pi) }
	for i, name := range r.x.Ports {
		r.targets.setPort(i, &portIdentity{name: name, driver: "veth", native: true, ifindex: r.x.ifindex[i]})
	}
	r.look(0)
	return r
}

// look looks at the ports after a while. These may not be used then, and these have changed.
func (r *targetRig) look(after time.Duration, changes ...int) {
	r.t.Helper()
	r.changes, r.log = nil, nil
	r.now += after
	r.targets.look(r.now)
	if !slices.Equal(r.changes, changes) || len(r.log) != len(changes) {
		r.t.Fatalf("ports %v have changed, want %v; the log: %q", r.changes, changes, r.log)
	}
}

// barred fails unless port 2, and no other, is off the fast path for this reason; "": none is.
func (r *targetRig) barred(reason string) {
	r.t.Helper()
	for pi := range r.targets.ports {
		off, why := r.targets.isBarred(pi), r.targets.why(pi)
		if want := reason != "" && pi == 2; off != want || want && !strings.Contains(why, reason) || !want && why != "" {
			r.t.Fatalf("port %d is off the fast path: %v, %q; want %q", pi, off, why, reason)
		}
	}
}

func (r *targetRig) gro(on bool) {
	r.t.Helper()
	h := r.x.Hosts[2]
	if err := h.NS.SetFeature(h.Interface, lab.GRO, on); err != nil {
		r.t.Fatal(err)
	}
}

// A port whose peer takes no redirected frames is off the fast path until it does.
func TestFastTargetWithoutGRO(t *testing.T) {
	r := newTargetRig(t)
	if r.targets.redirects == nil {
		t.Skip("this kernel does not say which ports take redirected frames")
	}
	r.barred("")
	r.gro(false)
	r.look(time.Second, 2)
	r.barred("the veth's peer takes no redirected frames: turn on GRO at the interface's peer")
	if !strings.Contains(r.log[0], "port is off the fast path") || !strings.Contains(r.log[0], r.x.Ports[2]) {
		t.Errorf("the log has %q", r.log[0])
	}
	r.look(time.Second)
	r.gro(true)
	r.look(time.Second, 2)
	r.barred("")
	// The kernel leaves out a port that takes none: the gate does not move.
	r.gro(false)
	r.send(fastFirst, 0)
	r.gate(0, fastFirst.Next(), 1, false)
	r.gate(1, fastFirst, 0, false)
	r.targets.setPort(2, &portIdentity{})
	r.look(time.Second)
	r.barred("")
}

// A port in generic mode has that for its reason, and no other.
func TestFastTargetInGenericMode(t *testing.T) {
	r := newTargetRig(t)
	if r.targets.redirects == nil {
		t.Skip("this kernel does not say which ports take redirected frames")
	}
	r.gro(false)
	r.targets.setPort(2, &portIdentity{name: r.x.Ports[2], driver: "veth", ifindex: r.x.ifindex[2]})
	r.look(time.Second)
	r.barred("")
}

// A port whose driver loses all copies is off the fast path, and tried again later.
func TestFastTargetLosesCopies(t *testing.T) {
	r := newTargetRig(t)
	h := r.x.Hosts[2]
	link, err := h.NS.Handle().LinkByName(h.Interface)
	if err != nil {
		t.Fatal(err)
	}
	// The kernel does not notice a change of an interface that is down.
	if err := h.NS.Handle().LinkSetDown(link); err != nil {
		t.Fatal(err)
	}
	r.gro(false)
	if err := h.NS.Handle().LinkSetUp(link); err != nil {
		t.Fatal(err)
	}
	if r.targets.redirects != nil {
		if taken, err := r.targets.redirects.Taken(r.x.ifindex[2]); err != nil || !taken {
			t.Skip("this kernel does notice")
		}
	}
	psn := fastFirst
	lose := func(n int) {
		t.Helper()
		was := r.x.maps.Transmitted(2).Lost
		for range n {
			r.send(psn, 0)
			psn = psn.Next()
		}
		r.until("the losses are counted", func() bool { return r.x.maps.Transmitted(2).Lost == was+uint64(n) })
	}
	lose(63)
	r.look(100 * time.Millisecond)
	lose(1)
	r.look(100*time.Millisecond, 2)
	r.barred("the driver lost 64 of 64 copies (no such device or address): turn on GRO")
	if !strings.Contains(r.log[0], "tried_again_in") || !strings.Contains(r.log[0], "10s") {
		t.Errorf("the log has %q", r.log[0])
	}
	r.look(10*time.Second, 2)
	r.barred("")
	lose(8)
	r.look(100*time.Millisecond, 2)
	r.barred("the driver lost 8 of 8 copies")
	r.gro(true)
	r.look(20*time.Second, 2)
	for range 8 {
		r.send(psn, 0, 1)
		psn = psn.Next()
	}
	r.until("the copies are counted", func() bool { return r.x.maps.Transmitted(2).Sent == 8 })
	r.look(9 * time.Second) // a window without copies begins
	r.look(time.Second)
	r.barred("")
}

// A port at which no copy comes out is off the fast path, also where the kernel says nothing.
func TestFastTargetSkipped(t *testing.T) {
	r := newTargetRig(t)
	for range 4 {
		r.targets.skipped(2)
	}
	r.look(100*time.Millisecond, 2)
	r.barred("no copy came to the port")
	// Another interface in its place has not lost any.
	r.targets.setPort(2, &portIdentity{name: "another", driver: "veth", native: true, ifindex: r.x.ifindex[2]})
	r.look(100 * time.Millisecond)
	r.barred("")
}
