// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
)

// BenchmarkUpdate is the time from a master's update of one group to the Accept that leaves. The state file is in a
// temporary folder.
func BenchmarkUpdate(b *testing.B) {
	for _, groups := range []int{1, 32} {
		for _, file := range []bool{false, true} {
			b.Run(fmt.Sprintf("groups=%d/file=%v", groups, file), func(b *testing.B) { benchmarkUpdate(b, groups, file) })
		}
	}
}

// benchmarkUpdate updates several groups at a time.
func benchmarkUpdate(b *testing.B, groups int, file bool) {
	config := "psn_probe: 1ms\nenvelope: {insecure: true}\n"
	if file {
		config += "state: " + b.TempDir() + "\n"
	}
	f := newFakeSwitchWith(b, 3, 1, config)
	left, waiting := make(chan struct{}, 1), 0
	known := func() {
		f.control.dir.hosts.FollowKernel(true)
		f.know(3)
		f.onLeft = func(p *envelope.Packet) {
			if m, err := envelope.Open(p.Data, nil, true); err == nil && m.Type == envelope.TypeAccept {
				if waiting--; waiting == 0 {
					left <- struct{}{}
				}
			}
		}
		f.left = nil
	}
	heads, bodies := make([]envelope.Header, groups), make([]envelope.GroupBody, groups)
	for n := range groups {
		head := &heads[n]
		*head = envelope.Header{Epoch: 1, Transaction: 1, Total: 1, Group: fakeGroup(n), ReplyTo: netip.AddrPortFrom(fakeHost(0), 4797)}
		body := &bodies[n]
		*body = envelope.GroupBody{GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024, Policy: mcast.Strict}, NoRepair: true, Lease: time.Minute}
		for i := range 2 {
			m := f.record(i, api.QPN(0x100+16*n+i))
			body.Members = append(body.Members, record(&m))
		}
		head.Instance, head.Epoch = f.challenge(*head, &envelope.Register{GroupBody: *body})
	}
	step := func(i int) {
		f.control.do(func() { waiting = groups })
		for n := range groups {
			head, body := &heads[n], bodies[n]
			if i > 0 {
				body.Base = head.Epoch
			}
			if i%2 == 1 {
				m := f.record(2, api.QPN(0x10000+64*i+n))
				m.SQPSN, m.RQPSN = api.PSN(i*16&0xFFFFFF), api.PSN(i*16&0xFFFFFF)
				body.Members = append(slices.Clone(body.Members), record(&m))
			}
			head.Epoch, head.Transaction, body.TotalMembers = head.Epoch+1, head.Transaction+1, len(body.Members)
			f.give(*head, &envelope.Register{GroupBody: body}, known)
		}
		<-left
	}
	step(0)
	for i := 1; b.Loop(); i++ {
		step(i)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*groups), "µs/update")
}
