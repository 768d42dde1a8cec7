// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// watched is a watcher in a star's switch, and what it has said.
type watched struct {
	*bench
	w       *Watcher
	changes *Changes
	mu      sync.Mutex
	reports []Report
}

func newWatched(t *testing.T, filter *Filter) *watched {
	t.Helper()
	x := &watched{bench: newBench(t, lab.StarConfig{Hosts: 2}), changes: NewChanges()}
	if err := x.Switch.Do(func() (err error) { x.w, err = NewWatcher(x.changes, filter, x.report); return err }); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *watched) report(r Report) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reports = append(x.reports, r)
}

// run reads what there is from now on, until the test ends.
func (x *watched) run() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		x.w.Run(ctx)
	}()
	x.t.Cleanup(func() {
		stop()
		<-ended
		x.w.Close()
	})
}

// collect takes changes until they satisfy enough.
func (x *watched) collect(what string, enough func(*Set) bool) (all Set) {
	x.t.Helper()
	all = newSet()
	timeout := time.After(5 * time.Second)
	for {
		s := x.changes.Take()
		all.All = all.All || s.All
		for k, v := range s.Learnt {
			all.Learnt[k] = v
		}
		for k, v := range s.Neighbours {
			all.Neighbours[k] = v
		}
		for k := range s.Links {
			all.Links[k] = struct{}{}
		}
		if enough(&all) {
			return all
		}
		select {
		case <-x.changes.Bell:
		case <-timeout:
			x.t.Errorf("not within 5 s: %s", what)
			return all
		}
	}
}

// flap takes a port down and up, and fails the test unless that is noticed.
func (x *watched) flap() {
	x.t.Helper()
	for quiet := false; !quiet; {
		x.changes.Take()
		select {
		case <-x.changes.Bell:
		case <-time.After(50 * time.Millisecond):
			quiet = true
		}
	}
	p := x.link("p2")
	x.do(func(k *netlink.Handle) error { return errors.Join(k.LinkSetDown(p), k.LinkSetUp(p)) })
	x.collect("a link flap", func(s *Set) bool { _, ok := s.Links[p.Attrs().Index]; return ok })
}

func (x *watched) neigh(ip net.IP) {
	x.t.Helper()
	br := x.link(lab.StarBridge).Attrs().Index
	x.do(func(k *netlink.Handle) error {
		return k.NeighSet(&netlink.Neigh{LinkIndex: br, Family: family(ip), IP: ip, State: netlink.NUD_STALE, HardwareAddr: nowhere})
	})
}

var nowhere = net.HardwareAddr{2, 9, 9, 9, 9, 9}

// A flood of addresses that nobody has asked to hear of is not heard, and costs the
// watch no message of the others.
func TestStrangersAreNotHeard(t *testing.T) {
	filter, err := NewFilter(0)
	if errors.Is(err, unix.EPERM) {
		labtest.Unavailable(t, "needs CAP_BPF: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	defer filter.Close()
	x := newWatched(t, filter)
	const n = 100_000
	mac, gone := MAC(labtest.LearntMAC(n/2)), MAC(labtest.LearntMAC(n/3))
	four, six := netip.MustParseAddr("10.77.9.9"), netip.MustParseAddr("fd77::9:9")
	for _, err := range []error{
		filter.PassMAC(mac, true), filter.PassMAC(gone, true), filter.PassMAC(gone, false), filter.PassMAC(gone, false),
		filter.PassNeighbour(four, true), filter.PassNeighbour(six, true),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	labtest.Learn(t, x.Switch, "p1", n) // nobody reads yet
	for i := range 200 {
		x.neigh(net.IPv4(10, 77, 8, byte(i)))
		x.neigh(net.IP(netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 14: 8, 15: byte(i)}).AsSlice()))
	}
	x.neigh(four.AsSlice())
	x.neigh(six.AsSlice())
	x.run()
	s := x.collect("the entries that are heard", func(s *Set) bool {
		return s.All || len(s.Learnt) > 0 && len(s.Neighbours) > 1
	})
	if s.All || len(s.Learnt) != 1 || !s.Learnt[mac] || len(s.Neighbours) != 2 || !s.Neighbours[four].Usable || !s.Neighbours[six].Usable || x.w.Resyncs() != 0 {
		t.Errorf("heard: all %v, %d addresses, neighbours %v; %d resyncs", s.All, len(s.Learnt), s.Neighbours, x.w.Resyncs())
	}
	x.flap()
}

// Messages that are lost make everything be looked at, and the watch goes on.
func TestLostMessagesAreNotTheEnd(t *testing.T) {
	x := newWatched(t, nil)
	labtest.Learn(t, x.Switch, "p1", 100_000) // nobody reads yet
	x.run()
	x.collect("a look at everything", func(s *Set) bool { return s.All && x.w.Resyncs() > 0 })
	x.flap()
	x.neigh(net.IPv4(10, 77, 9, 9))
	x.collect("a neighbour", func(s *Set) bool { return s.Neighbours[netip.MustParseAddr("10.77.9.9")].Usable })
	x.mu.Lock()
	defer x.mu.Unlock()
	if dead := x.w.Dead(); len(dead) > 0 || len(x.reports) == 0 || x.reports[0].Lost == 0 || x.reports[0].What != "neighbours" || !errors.Is(x.reports[0].Err, unix.ENOBUFS) {
		t.Errorf("dead: %v; reports %+v", dead, x.reports)
	}
}

// A socket that breaks is replaced. Meanwhile everything is looked at now and then, and
// the operator hears of it.
func TestABrokenWatchIsReplaced(t *testing.T) {
	x := newWatched(t, nil)
	links := x.w.feeds[1]
	refused, again := 2, links.open
	links.open = func() (*os.File, error) { // by one goroutine
		if refused--; refused >= 0 {
			return nil, unix.EMFILE
		}
		return again()
	}
	x.run()
	x.changes.Take()
	links.file.Load().Close()
	x.collect("a look at everything", func(s *Set) bool { return s.All })
	if dead := x.w.Dead(); !slices.Equal(dead, []string{"links"}) {
		t.Errorf("dead: %v, want links", dead)
	}
	x.collect("another look at everything", func(s *Set) bool { return s.All })
	for range 500 {
		if len(x.w.Dead()) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	x.flap()
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.reports); n != 4 || x.reports[0].Err == nil || !errors.Is(x.reports[2].Err, unix.EMFILE) || x.reports[3] != (Report{What: "links"}) {
		t.Errorf("reports: %+v", x.reports)
	}
}
