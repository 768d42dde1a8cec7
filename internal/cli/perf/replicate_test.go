// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"bytes"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/internal/cli/port"
	"pgregory.net/rapid"
)

// The messages that receivers get a completion for are as many as the receives of a run, and leave
// no more of them unnoticed than the slots have room for.
func TestNoticedMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Defaults(rapid.SampledFrom(Tests).Draw(t, "test"))
		if p.replicates() {
			p.Depth = rapid.IntRange(1, 64).Draw(t, "depth")
			p.Slots = rapid.IntRange(p.Depth, recvDepth).Draw(t, "slots")
			p.Immediate = rapid.Bool().Draw(t, "imm")
		}
		p.Verify = rapid.Bool().Draw(t, "verify")
		size, n := rapid.SampledFrom(p.sizes()).Draw(t, "size"), rapid.IntRange(1, 2000).Draw(t, "messages")
		if err := p.check(); err != nil {
			t.Fatal(err)
		}
		count, silent := 0, 0
		for m := range n {
			if silent++; p.noticed(size, m, m == n-1) {
				count, silent = count+1, 0
			}
			if p.replicates() && silent >= p.slots(size) {
				t.Fatalf("%d messages without a notice, %d slots: the sender would wait for ever", silent, p.slots(size))
			}
		}
		if want := p.noticesOf(size, n); count != want {
			t.Errorf("%d messages are noticed, %d receives are posted", count, want)
		}
	})
}

// A replica that is slower than the network is not overrun: each slot has the write that belongs there when it
// is stored.
func TestSlowReplica(t *testing.T) {
	n := newNet4(t)
	for _, immediate := range []bool{false, true} {
		for _, mode := range Modes {
			local := Local{Backend: port.Soft, QPTimeout: 14, Timeout: 10 * time.Second}
			local.Host.Auth = testAuth()
			o := &SendOptions{Params: Defaults(Replicate), Local: local}
			o.Mode, o.Size, o.Iterations, o.Depth, o.Slots, o.Verify, o.Immediate = mode, 3000, 200, 4, 16, true, immediate
			if mode == Group {
				o.GroupIP = groupAddr
			}
			errs := make([]error, 2)
			stores := make([][]byte, 2)
			ctx := deadline(t)
			var wg sync.WaitGroup
			for i := range errs {
				at := netip.AddrPortFrom(n.star.Hosts[i+1].IPv4, DefaultPort).String()
				o.Receivers = append(o.Receivers, at)
				l := &ListenOptions{Params: Defaults(Replicate), Local: local, Address: at, Say: func(string) {}}
				l.onStore = func(store []byte) {
					if stores[i] = store; i == 1 {
						time.Sleep(500 * time.Microsecond)
					}
				}
				wg.Go(func() {
					errs[i] = n.star.Hosts[i+1].NS.Do(func() error { return Listen(ctx, l) })
				})
			}
			err := n.star.Hosts[0].NS.Do(func() error { _, err := Send(ctx, o); return err })
			wg.Wait()
			if err != nil || errs[0] != nil || errs[1] != nil {
				t.Errorf("%s, immediate data %v: %v; replicas: %v", mode, immediate, err, errs)
				continue
			}
			want := make([]byte, o.Size*o.Slots)
			for m := o.Iterations - o.Slots; m < o.Iterations; m++ {
				fill(want[m%o.Slots*o.Size:][:o.Size], pattern(o.Seed, 0, m))
			}
			for i, s := range stores {
				if !bytes.Equal(s, want) {
					t.Errorf("%s, immediate data %v: the store of replica %d has not the last %d writes", mode, immediate, i+1, o.Slots)
				}
			}
		}
	}
}
