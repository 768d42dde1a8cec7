// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/cli/port"
)

// Each member is the source of the same group in turn, and the sender again at last; every other one has the bytes of
// that turn.
func TestRotate(t *testing.T) {
	n := newNet4(t)
	for _, c := range []struct {
		name     string
		flags    []string
		size     int
		messages int // messages of a turn
		rounds   bool
	}{
		{"defaults", nil, 64 << 10, 128, false},
		{"few messages, two groups", []string{"-s", "3000", "-n", "7", "-q", "2"}, 3000, 14, false},
		{"for a time", []string{"-s", "1000", "-n", "10", "-D", "0.3"}, 1000, 10, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, rs := n.run(deadline(t), trial{test: Rotate, send: n.group(append(c.flags, "-o", "json")...)})
			z := ok(t, s, rs).Sizes[0]
			if least := 5; len(z.Turns) < least || !c.rounds && len(z.Turns) > least || c.rounds && z.Seconds > 3 {
				t.Errorf("%d turns, %v s", len(z.Turns), z.Seconds)
			}
			for i, x := range z.Turns {
				if want := n.star.Hosts[i%4].IPv4.String(); x.Source != want || x.Messages != c.messages || x.Avg <= 0 {
					t.Errorf("turn %d: %+v, want %d messages of %s", i+1, x, c.messages, want)
				}
			}
			if z.Iterations != len(z.Turns)*c.messages || z.Bytes != c.size || z.All.Bandwidth.Avg <= 0 {
				t.Errorf("%+v", z)
			}
			for i, p := range rs {
				for turn := range len(z.Turns) {
					what := "verified"
					if turn%4 == i+1 {
						what = "sent"
					}
					if want := fmt.Sprintf("turn %d: %d messages of %d bytes, %s\n", turn+1, c.messages, c.size, what); !strings.Contains(p.stderr.String(), want) {
						t.Errorf("receiver %d does not say %q: %s", i+1, want, p.stderr.String())
					}
				}
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		for _, flags := range [][]string{{"--mode", "chain"}, {"-n", "129"}, {"-n", "65", "-s", "1M"}} {
			if p := n.gleam(deadline(t), 0, append(append([]string{Rotate}, n.auth()...), append(flags, "10.77.0.2")...)...); p.code != cli.ExitUsage {
				t.Errorf("%v: exit code %d, %s", flags, p.code, p.stderr.String())
			}
		}
	})
}

// A receiver whose link goes down in the middle is evicted: the others have all bytes, and the pause is as long as the
// silence that the group allows. The last receiver's eviction ends the test.
func TestGoesOnWithoutAReceiver(t *testing.T) {
	n := newNet4(t)
	local := Local{Backend: port.Soft, QPTimeout: 14, Timeout: 5 * time.Second}
	local.Host.Auth = testAuth()
	for _, test := range []string{WriteBW, SendBW, WriteLat} {
		for _, verify := range []bool{true, false} {
			h := n.star.Hosts[2]
			link, err := h.NS.Handle().LinkByName(h.Interface)
			if err != nil {
				t.Fatal(err)
			}
			o := &SendOptions{Params: Defaults(test), Local: local, GroupIP: groupAddr}
			o.Duration, o.Verify, o.DeadAfter, o.Lanes = time.Second, verify, 250*time.Millisecond, 2
			o.onStart = sync.OnceFunc(func() {
				time.AfterFunc(200*time.Millisecond, func() { _ = h.NS.Handle().LinkSetDown(netlink.Link(link)) })
			})
			ctx := deadline(t)
			errs := make([]error, 4)
			var wg sync.WaitGroup
			for i := 1; i <= 3; i++ {
				at := withPort(n.star.Hosts[i].IPv4.String(), DefaultPort)
				o.Receivers = append(o.Receivers, at)
				wg.Go(func() {
					errs[i] = n.star.Hosts[i].NS.Do(func() error {
						return Listen(ctx, &ListenOptions{Params: Defaults(test), Local: local, Address: at, Say: func(string) {}})
					})
				})
			}
			var r *Result
			err = n.star.Hosts[0].NS.Do(func() (err error) { r, err = Send(ctx, o); return err })
			if e := h.NS.SetUp(h.Interface); e != nil {
				t.Fatal(e)
			}
			wg.Wait()
			if err != nil || errs[1] != nil || errs[2] == nil || errs[3] != nil {
				t.Errorf("%s, verified %v: %v, receivers %v", test, verify, err, errs[1:])
				continue
			}
			z := r.Sizes[0]
			if want := n.star.Hosts[2].IPv4; len(z.Evicted) != 1 || z.Evicted[0] != netip.Addr(want) || len(z.Receivers) != 2 || z.Receivers[1].IP != "10.77.0.4" {
				t.Errorf("%s, verified %v: evicted %v, rows %v", test, verify, z.Evicted, z.Receivers)
			}
			if z.Pause < 0.2 || z.Pause > 3 || z.Seconds < 1 {
				t.Errorf("%s, verified %v: a pause of %v s in %v s", test, verify, z.Pause, z.Seconds)
			}
		}
	}
}

// A replica that has acknowledged all data, and dies before it answers, is evicted: the sender asks.
func TestGoesOnWithoutAnAnswer(t *testing.T) {
	n := newNet4(t)
	local := Local{Backend: port.Soft, QPTimeout: 14, Timeout: 5 * time.Second}
	local.Host.Auth = testAuth()
	h := n.star.Hosts[2]
	link, err := h.NS.Handle().LinkByName(h.Interface)
	if err != nil {
		t.Fatal(err)
	}
	o := &SendOptions{Params: Defaults(Replicate), Local: local, GroupIP: groupAddr}
	o.Iterations, o.Size, o.Depth, o.Slots, o.Immediate, o.DeadAfter = 50, 1000, 1, 1, true, 250*time.Millisecond
	ctx := deadline(t)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range errs {
		at := withPort(n.star.Hosts[i+1].IPv4.String(), DefaultPort)
		o.Receivers = append(o.Receivers, at)
		l := &ListenOptions{Params: Defaults(Replicate), Local: local, Address: at, Say: func(string) {}}
		if i == 1 {
			stored := 0
			l.onStore = func([]byte) {
				if stored++; stored == 20 {
					_ = h.NS.Handle().LinkSetDown(netlink.Link(link))
				}
			}
		}
		wg.Go(func() { errs[i] = n.star.Hosts[i+1].NS.Do(func() error { return Listen(ctx, l) }) })
	}
	var r *Result
	err = n.star.Hosts[0].NS.Do(func() (err error) { r, err = Send(ctx, o); return err })
	if e := h.NS.SetUp(h.Interface); e != nil {
		t.Fatal(e)
	}
	wg.Wait()
	if err != nil || errs[0] != nil || errs[1] == nil || len(r.Sizes[0].Evicted) != 1 || r.Sizes[0].Iterations != 50 {
		t.Errorf("%v, replicas %v, %+v", err, errs, r.Sizes)
	}
}
