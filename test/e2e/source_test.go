// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Any member may be the source once the one before it is quiescent, whatever
// PSNs the queue pairs began with, and no host does anything for it.
func TestC58_SourceChangesWithoutHostAction(t *testing.T) {
	random := func(int) (sq, rq rocev2.PSN) {
		return rocev2.PSN(rand.Uint32()) & rocev2.PSNMask, rocev2.PSN(rand.Uint32()) & rocev2.PSNMask
	}
	wrapping := func(i int) (sq, rq rocev2.PSN) { return rocev2.PSNMask - 20, rocev2.PSN(0xFFFFFF - 7*i) }
	for name, c := range map[string]rigConfig{
		"random PSNs":    {psns: random},
		"PSNs that wrap": {psns: wrapping},
		"with loss":      {psns: random, device: func(_ int, d *soft.Config) { d.Loss = 0.01 }},
		"IPv6":           {psns: random, v6: true},
	} {
		t.Run(name, func(t *testing.T) {
			c.star, c.memory = lab.StarConfig{Hosts: 3}, 200_000
			r := newRig(t, c)
			r.join()
			for i, from := range []int{0, 1, 0, 2, 1, 0} {
				b := r.fill(from)
				b[0] ^= byte(i) // differs from the bytes that are there already
				r.write(from, 30_000)
				r.same(from)
				g, err := r.engine.Group(r.group)
				if err != nil || g.Source != r.hosts[from].ip {
					t.Errorf("the source is %v, want %v (%v)", g.Source, r.hosts[from].ip, err)
				}
			}
		})
	}
}

// Two groups of the same hosts, each with queue pairs of its own, transfer at
// the same time, with different sources.
func TestTwoGroupsAtOnce(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}})
	o := r.another(otherGroup, 2, 0, 1)
	r.join()
	o.join()
	r.fill(0)
	b := o.fill(0)
	b[0] ^= 0xFF
	for range 3 {
		n, m := r.post(0, 30_000), o.post(0, 30_000)
		r.complete(r.hosts[0], n)
		o.complete(o.hosts[0], m)
	}
	r.same(0)
	o.same(0)
	for _, x := range []*rig{r, o} {
		if g, err := r.engine.Group(x.group); err != nil || g.Source != x.hosts[0].ip || g.Counters.Copies == 0 {
			t.Errorf("group %v: %+v, %v", x.group, g, err)
		}
	}
}

// While one member's data is in flight, another one's is not forwarded and not
// lost: it is sent again, and both arrive in the order in which they complete.
func TestC59_SecondSourceWaits(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, memory: 400_000})
	r.join()
	// Each writes its own half.
	half := r.hosts[0].mr.Len() / 2
	want := bytes.Clone(r.fill(0)[:half])
	copy(r.hosts[1].mr.Bytes()[half:], want)
	slices.Reverse(r.hosts[1].mr.Bytes()[half:])
	want = append(want, r.hosts[1].mr.Bytes()[half:]...)
	part := func(from int) {
		h := r.hosts[from]
		const message = 20_000
		for i := range half / message {
			off := from*half + i*message
			if _, err := h.qp.PostSend(endpoint.SendWR{
				ID: uint64(i), Op: endpoint.Write, Local: endpoint.Segment{MR: h.mr, Offset: off, Len: message},
				RemoteAddr: groupBase + uint64(off), RKey: groupRKey,
			}); err != nil {
				t.Error(err)
			}
		}
	}
	var wg sync.WaitGroup
	for from := range 2 {
		wg.Go(func() { part(from) })
	}
	wg.Wait()
	for from := range 2 {
		r.complete(r.hosts[from], half/20_000)
	}
	for _, h := range r.hosts {
		if !bytes.Equal(h.mr.Bytes(), want) {
			t.Errorf("%s does not have both sources' bytes", h.Name)
		}
	}
}
