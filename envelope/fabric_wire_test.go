// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"time"
)

// What a fabric's hosts and switches send: it flies to where it goes, is lost, or waits for a state file.

func (f *fabric) fly(d time.Duration, x fabricFlight) {
	f.seq++
	x.at, x.seq = f.now+d, f.seq
	f.net = append(f.net, x)
}

func (f *fabric) hostDid(a netip.AddrPort, out *Output) {
	f.events[a] = append(f.events[a], out.Events...)
	for i := range out.Events {
		if e := &out.Events[i]; e.Kind == Updated {
			f.checkUpdated(e)
		}
	}
	for _, p := range out.Packets {
		if f.hosts[p.Dst] != nil {
			f.fly(hop, fabricFlight{to: -1, packet: p})
		} else {
			f.fly(hop, fabricFlight{to: f.at[a.Addr()], packet: p})
		}
	}
}

func (f *fabric) switchDid(i int, out *Output) {
	s := f.switches[i]
	checkBooks(f.t, s.sw)
	s.events = append(s.events, out.Events...)
	for _, p := range out.Packets {
		send := func() { f.fly(hop, fabricFlight{to: -1, packet: p}) }
		if s.full && p.Promises {
			s.waiting = append(s.waiting, send)
		} else {
			send()
		}
	}
	for k := range out.Events {
		if out.Events[k].Kind == Registered {
			f.checkTree(i, out.Events[k].Group)
		}
	}
	for _, x := range out.Relays {
		p := s.peers[x.To-1]
		f.captured = append(f.captured, capturedRelay{i, p, x.Data})
		if f.silent[i] || f.silent[p] {
			continue
		}
		if s.full && x.Promises {
			s.waiting = append(s.waiting, func() {
				if s.sw.Reseal(&x) {
					f.sendRelay(i, p, &x)
				}
			})
		} else {
			f.sendRelay(i, p, &x)
		}
	}
}

// sendRelay has a relay fly from switch i to switch p.
func (f *fabric) sendRelay(i, p int, x *Relay) {
	for _, d := range f.fault(i, p, x.Data) {
		f.fly(d, fabricFlight{to: p, from: f.reverse(i, x.To), packet: Packet{Data: x.Data}})
	}
}

// setFull has the disk of switch i be full, or not any more.
func (f *fabric) setFull(i int, full bool) {
	s := f.switches[i]
	if s.full = full; full {
		return
	}
	for _, send := range s.waiting {
		send()
	}
	s.waiting = nil
}
