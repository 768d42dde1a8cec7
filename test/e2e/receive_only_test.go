// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// from returns a tap that sends raw frames from member i's interface.
func (r *rig) from(i int) *tap { return newTap(r.t, r.hosts[i].Host) }

// TestReceiveOnlyMember: a member that is registered to receive only sends WRITEs into
// the group, whole ones and the beginning of one, while a transfer runs: no member's
// memory changes, the transfer goes on, and its packets are counted.
func TestReceiveOnlyMember(t *testing.T) {
	inNetworks(t, 3, 0, func(t *testing.T, c rigConfig) {
		r := newRig(t, c)
		r.connect()
		reg := r.registration()
		reg.Members[2].ReceiveOnly = true
		if err := r.engine.Register(reg); err != nil {
			t.Fatal(err)
		}
		w, f, wire := r.watch(), newForger(r), r.from(2)
		w.goodput(100 * time.Millisecond)
		psn := r.hosts[2].qp.Info().SQPSN
		second := uint64(groupBase + r.hosts[0].mr.Len()/2)
		for i := range 200 {
			wire.send(f.packet(2, rocev2.Packet{Op: rocev2.WriteOnly, AckReq: true, PSN: psn.Add(int32(i)), VA: second, RKey: groupRKey, DMALen: 64}, 64))
			wire.send(f.packet(2, rocev2.Packet{Op: rocev2.WriteFirst, PSN: psn.Add(int32(i)), VA: second, RKey: groupRKey, DMALen: 4096}, c.pathMTUOr(1024)))
			time.Sleep(time.Millisecond)
		}
		w.goesOn("beside the receiver's packets")
		w.end(t)
		if n := r.drops()["not_sender"]; n < 100 {
			t.Errorf("%d packets are counted as not_sender: %v", n, r.drops())
		}
		g, err := r.engine.Group(r.group)
		if err != nil || g.Members[2].Role != "receive-only" || !g.Members[2].Live || g.State == "failed" {
			t.Errorf("%+v, %v", g, err)
		}
	})
}

func (c rigConfig) pathMTUOr(none int) int {
	if c.pathMTU > 0 {
		return c.pathMTU
	}
	return none
}

// TestOneWriteFirst: a member that may send begins a WRITE and stops. No member waits
// for ever: after limits.source_timeout the group has failed (R65), the WRITE of
// another member, whose retries have no end, completes in error (R80), and an event
// names the cause.
func TestOneWriteFirst(t *testing.T) {
	for _, policy := range []string{api.PolicyEvict, api.PolicyStrict} {
		for _, v6 := range []bool{false, true} {
			t.Run(policy+map[bool]string{false: " IPv4", true: " IPv6"}[v6], func(t *testing.T) {
				r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, v6: v6, policy: policy, config: "limits: {source_timeout: 300ms}"})
				r.join()
				f := newForger(r)
				if err := r.writeOnce(4096); err != nil {
					t.Fatal(err)
				}
				r.from(2).send(f.packet(2, rocev2.Packet{Op: rocev2.WriteFirst, PSN: r.hosts[2].qp.Info().SQPSN, VA: groupBase + 8192, RKey: groupRKey, DMALen: 4096}, 1024))
				time.Sleep(50 * time.Millisecond)
				start := time.Now()
				err := r.writeOnce(4096)
				if took := time.Since(start); took > 5*time.Second {
					t.Errorf("the next WRITE took %v", took)
				}
				if err == nil {
					t.Error("the next WRITE completed: receivers are inside of another one")
				}
				var said bool
				for end := time.Now().Add(5 * time.Second); !said && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
					es, err := r.engine.Events(t.Context(), 0)
					if err != nil {
						t.Fatal(err)
					}
					for _, e := range es.Events {
						said = said || strings.Contains(e.Reason, "the source stalled")
					}
				}
				if !said {
					t.Error("no event says that the source stalled")
				}
			})
		}
	}
}

// writeOnce has host 0 write n bytes to the group, and waits for the completion.
func (r *rig) writeOnce(n int) error {
	h := r.hosts[0]
	wr := endpoint.SendWR{Op: endpoint.Write, Local: endpoint.Segment{MR: h.mr, Len: n}, RemoteAddr: groupBase, RKey: groupRKey}
	if _, err := h.qp.PostSend(wr); err != nil {
		return err
	}
	var wc [1]endpoint.Completion
	for got := 0; got == 0; {
		var err error
		if got, err = h.qp.Poll(r.ctx, wc[:]); err != nil {
			return err
		}
	}
	return wc[0].Err()
}
