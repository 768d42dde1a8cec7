// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
)

// slow lets a port of the bridge send no more than rate bytes a second. Its queue then
// holds frames that the switch has sent by the bridge, and with them their slots in the
// UMEM and the completion ring, as a congested port does.
func (r *rig) slow(port string, rate uint64) {
	r.t.Helper()
	h := r.star.Switch.Handle()
	link, err := h.LinkByName(port)
	if err == nil {
		const burst = 4000
		err = h.QdiscReplace(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate:       rate, Limit: 1 << 20, Buffer: uint32(netlink.Xmittime(rate, burst)),
		})
	}
	if err != nil {
		r.t.Fatalf("slow down %s: %v", port, err)
	}
}

// With few frames, or a small ring, for the backlog of slow receivers, copies wait in
// the store: no packet is dropped for all receivers, and frames are left for all
// packets.
func TestExhaustion(t *testing.T) {
	for name, rings := range map[string]string{
		"UMEM":    "umem: {frames: 256}\nrings: {rx: 64, tx: 256, fill: 64, completion: 256}\n",
		"TX ring": "umem: {frames: 4096}\nrings: {rx: 64, tx: 64, fill: 64, completion: 64}\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 5}, oneArm: true, rings: rings, memory: 512 << 10})
			r.join()
			for _, p := range []string{"p3", "p4", "p5"} {
				r.slow(p, 2<<20)
			}
			r.fill(0)
			var e api.Egress
			for range 10 { // until the receivers' backlog was in the switch once, and not in the queues behind it
				r.write(0, 50_000)
				r.same(0)
				if e = r.ports()[0].Egress; e.Deferred > 0 {
					break
				}
			}
			s := r.stats()
			if e.Deferred == 0 || s.Drops["umem_exhausted"] != 0 {
				t.Errorf("%d copies put off; drops %v", e.Deferred, s.Drops)
			}
			if g, err := r.engine.Group(r.group); err != nil || g.Counters.Copies != s.Copies {
				t.Errorf("the group counts %d copies, the switch %d (%v)", g.Counters.Copies, s.Copies, err)
			}
			until(t, "all frames are back", func() bool { s := r.stats(); return s.FramesFree >= s.Frames/2 })
		})
	}
}

// A group whose packets could never be served for all members is refused when it is
// registered, not starved.
func TestGroupBeyondTheRings(t *testing.T) {
	r := newRig(t, rigConfig{
		star:  lab.StarConfig{Hosts: 64, Rack: 63},
		rings: "umem: {frames: 1024}\nrings: {rx: 64, tx: 64, fill: 64, completion: 64}\n",
	})
	reg := r.registration()
	var refused *api.Error
	if err := r.engine.Register(reg); !asError(err, &refused) || refused.Reason != "too many members" {
		t.Errorf("63 members behind a TX ring of 64: %v", err)
	}
	reg.Members = reg.Members[:40]
	if err := r.engine.Register(reg); err != nil {
		t.Errorf("39 members behind a TX ring of 64: %v", err)
	}
}
