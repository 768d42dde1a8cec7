// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/envelope"
)

// BenchmarkRenew is the CPU time of the control loop for a master's Renew, to the Accept that leaves, of 1,000 groups in
// turn. No envelope is authenticated.
func BenchmarkRenew(b *testing.B) {
	const groups, batch = 1000, 16
	f := newFakeSwitchWith(b, 4, 1, "group_prefixes: [10.78.0.0/16]\nlimits: {groups: 65536}\npsn_probe: 0s\nstate: "+b.TempDir()+"\nenvelope: {insecure: true}\n")
	f.control.do(func() {
		f.control.dir.hosts.FollowKernel(true)
		f.know(4)
	})
	f.registerMany(0, groups, 4)
	heads := make([]envelope.Header, groups)
	for i := range heads {
		heads[i] = envelope.Header{Epoch: 1, Transaction: 1, Total: 1, Group: manyGroup(i), ReplyTo: netip.AddrPortFrom(fakeHost(0), 4797)}
		heads[i].Instance, heads[i].Epoch = f.challenge(heads[i], &envelope.Renew{})
	}
	n, accepted := 0, 0
	f.control.do(func() {
		f.onLeft = func(p *envelope.Packet) {
			if m, err := envelope.Open(p.Data, nil, true); err == nil && m.Type == envelope.TypeAccept {
				accepted++
			}
		}
	})
	begin := cpuTime(b)
	for b.Loop() {
		f.control.do(func() {
			c := f.control
			for range batch {
				h := &heads[n%groups]
				h.Transaction++
				text, err := envelope.Append(nil, &envelope.Message{Header: *h, Body: &envelope.Renew{}}, nil, 0)
				if err != nil {
					b.Fatal(err)
				}
				c.dir.cameFrom = f.placeOf(h.ReplyTo.Addr())
				c.registrar.Input(c.now(), h.ReplyTo, text, &c.out)
				c.sendOutput()
				n++
			}
			f.left = nil
		})
	}
	b.ReportMetric(float64((cpuTime(b)-begin).Nanoseconds())/float64(n), "cpu-ns/Renew")
	f.control.do(func() {
		if accepted < n-batch {
			b.Errorf("%d Accepts for %d Renews", accepted, n)
		}
	})
}
