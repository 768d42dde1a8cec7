// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"testing"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/copycases"
)

// The worker's copies of the common table's packets, byte for byte. Those of the XDP programs
// are compared with the same table (bpf, TestFastCopies).
func TestCopies(t *testing.T) {
	if copycases.AckEvery != mcast.DefaultAckEvery {
		t.Fatal("the table has another AckEvery than the core")
	}
	w := bareWorker(t, copycases.Ports)
	for _, c := range copycases.Copied() {
		g := groupTable{ip: c.Group.IP, qpn: c.Group.QPN}
		for i := range c.Group.Legs {
			l := &c.Group.Legs[i]
			p := w.ports[l.Port]
			if p.mac = l.PortMAC; l.IP.IsValid() {
				g.legs = append(g.legs, leg{kind: mcast.Connected, port: l.Port, mac: l.MAC, vlan: l.VLAN, ip: rocev2.KeyOf(l.IP), qpn: l.QPN})
				continue
			}
			p.neighbour = neighbour{id: 7, mac: l.MAC}
			g.legs = append(g.legs, leg{kind: mcast.Forwarded, port: l.Port, neighbour: 7, vlan: l.VLAN})
		}
		w.groups[0] = g
		addr, _ := w.pool.TakeOne()
		at := addr + 256
		frame := w.umem.Data(at, uint32(copy(w.umem.Data(at, uint32(len(c.Frame))), c.Frame)))
		if r := rocev2.Decode(frame, &w.frame); r != rocev2.OK {
			t.Fatalf("%s: %v", c.Name, r)
		}
		ds := []xsk.Desc{{Addr: at, Len: uint32(len(frame))}}
		for i := range c.Group.Legs {
			l := &c.Group.Legs[i]
			o := mcast.Copy{Leg: mcast.LegID(i), PSN: (c.PSN + l.PSN) & rocev2.PSNMask}
			if c.RETH && l.IP.IsValid() {
				o.Flags, o.VA, o.RKey = mcast.SetRETH, c.VA+l.VA, l.RKey
			}
			if c.Sets && l.IP.IsValid() {
				o.Flags |= mcast.SetAckReq
			}
			w.copy(&o, &w.frame, ds, false)
			p := w.ports[l.Port]
			if len(p.staged) != 1 {
				t.Fatalf("%s, leg %d: %d copies; drops %v", c.Name, i, len(p.staged), w.count.drops())
			}
			if got := w.umem.Data(p.staged[0].Addr, p.staged[0].Len); !bytes.Equal(got, c.Copies[i]) {
				t.Errorf("%s, leg %d\n got %x\nwant %x", c.Name, i, got, c.Copies[i])
			}
			w.pool.GiveOne(p.staged[0].Addr)
			p.staged = p.staged[:0]
		}
		w.pool.GiveOne(addr)
	}
}
