// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"testing"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
)

// send posts n SENDs of host 0, of size bytes each.
func (r *rig) send(n, size int) {
	r.t.Helper()
	h := r.hosts[0]
	for i := range n {
		if _, err := h.qp.PostSend(endpoint.SendWR{
			ID: uint64(i), Op: endpoint.Send, Local: endpoint.Segment{MR: h.mr, Offset: i * size, Len: size},
		}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// receive posts n receives at h, behind the ones before.
func (r *rig) receive(h *rigHost, from, n, size int) {
	r.t.Helper()
	for i := from; i < from+n; i++ {
		if _, err := h.qp.PostRecv(endpoint.RecvWR{ID: uint64(i), Local: endpoint.Segment{MR: h.mr, Offset: i * size, Len: size}}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// A receiver that posts its receives late makes the source wait, and has no other
// effect: RNR NAKs reach the source, every SEND completes once, in order. In the mean
// time no other member may become the source.
func TestLateReceives(t *testing.T) {
	const n, size = 20, 5000
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, memory: n * size})
	r.join()
	r.fill(0)
	f := newForger(r)
	r.receive(r.hosts[1], 0, n, size)
	r.receive(r.hosts[2], 0, 3, size) // the rest comes late
	r.send(n, size)
	until(t, "RNR at the source", func() bool { return r.hosts[0].qp.Stats().RNRs > 2 })
	until(t, "the group to wait for "+r.hosts[2].ip.String(), func() bool {
		g, err := r.engine.Group(r.group)
		return err == nil && g.WaitsFor == r.hosts[2].ip
	})
	before := r.drops()["not_source"]
	newTap(t, r.star.Hosts[1]).send(f.write(1, r.hosts[1].qp.Info().SQPSN))
	until(t, "not_source", func() bool { return r.drops()["not_source"] == before+1 })
	r.receive(r.hosts[2], 3, n-3, size)
	r.complete(r.hosts[0], n)
	for _, h := range r.hosts[1:] {
		r.complete(h, n)
	}
	r.same(0)
}

// One receiver's window is registered with an R_Key that it does not have.
func TestWrongRKey(t *testing.T) {
	const n, size = 6, 3000
	post := func(r *rig) {
		h := r.hosts[0]
		for i := range n {
			wr := endpoint.SendWR{ID: uint64(i), Op: endpoint.Write, Local: endpoint.Segment{MR: h.mr, Offset: i * size, Len: size}, RemoteAddr: groupBase + uint64(i*size), RKey: groupRKey}
			if i < 2 {
				wr.Op, wr.RemoteAddr, wr.RKey = endpoint.Send, 0, 0 // these are right everywhere
			}
			if _, err := h.qp.PostSend(wr); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	build := func(t *testing.T, policy string) *rig {
		r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 4}, memory: n * size, policy: policy})
		r.connect()
		g := r.registration()
		g.Members[2].Window.RKey ^= 0x5500
		if err := r.engine.Register(g); err != nil {
			t.Fatal(err)
		}
		r.fill(0)
		for _, h := range r.hosts[1:] {
			r.receive(h, 0, 2, size)
		}
		return r
	}
	t.Run("strict", func(t *testing.T) {
		r := build(t, "strict")
		post(r)
		// Two messages are complete; not every receiver has the third, and later ones are
		// flushed.
		var got []endpoint.Completion
		for len(got) < n {
			var wc [n]endpoint.Completion
			k, err := r.hosts[0].qp.Poll(r.ctx, wc[:])
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, wc[:k]...)
		}
		for i, c := range got {
			want := endpoint.WRFlushErr
			switch {
			case i < 2:
				want = endpoint.Success
			case i == 2:
				want = endpoint.RemoteAccessErr
			}
			if c.ID != uint64(i) || c.Status != want {
				t.Errorf("completion %d: of %d with %v, want %v", i, c.ID, c.Status, want)
			}
		}
		until(t, "the switch says so", func() bool { return r.said("true group failed") })
		if g, err := r.engine.Group(r.group); err != nil || g.State != "failed" {
			t.Errorf("the group is %q, want failed (%v)", g.State, err)
		}
		r.hosts[2].dev.Stats()
		if b := r.hosts[2].mr.Bytes()[2*size:]; !bytes.Equal(b, make([]byte, len(b))) {
			t.Error("memory was written without its R_Key")
		}
	})
	t.Run("evict", func(t *testing.T) {
		r := build(t, "evict")
		post(r)
		r.complete(r.hosts[0], n)
		until(t, "the switch says so", func() bool { return r.said("true member evicted") })
		want := r.hosts[0].mr.Bytes()
		for _, i := range []int{1, 3} {
			if !bytes.Equal(r.hosts[i].mr.Bytes(), want) {
				t.Errorf("%s does not have the source's bytes", r.hosts[i].Name)
			}
		}
		if b := r.hosts[2].mr.Bytes()[2*size:]; !bytes.Equal(b, make([]byte, len(b))) {
			t.Error("the evicted member's memory was written without its R_Key")
		}
	})
}
