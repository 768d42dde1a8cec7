// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// The rows of the fast path's program measure it alone: the group is FAST for ever, and
// nobody judges what it forwards. The limit is moved on by a clock, not by ACKs.

// fastSlots are the slots of the ring: enough for a window of 256 packets.
const fastSlots = 256

// limitEvery is the time after which the limit is moved on, limitAhead how far.
const (
	limitEvery = 5 * time.Millisecond
	limitAhead = 1 << 22
)

// openFastProgram attaches the program to all ports, with rings of that many slots; 0:
// packets are not stored.
func openFastProgram(slots int) func(*testbed) error {
	return func(s *testbed) error {
		maps, err := fastpath.New(fastpath.Config{
			Ports: s.benchCase.legs + 1, Sizes: []fastpath.Size{{Legs: s.benchCase.legs, Groups: 1}}, Slots: slots, LargeSlots: slots,
		})
		if err != nil {
			return err
		}
		s.onClose(maps.Close)
		steering, err := bpf.NewSteering([]netip.Prefix{netip.PrefixFrom(groupIP, 24).Masked()}, 4792, s.benchCase.legs+1)
		if err != nil {
			return err
		}
		s.onClose(steering.Close)
		steering.UseFastPath(maps)
		spec := fastpath.GroupSpec{IP: groupIP, QPN: virtualQPN, PMTU: s.benchCase.payload, Slots: slots}
		for i := range s.star.Ports {
			if err := s.addFastPort(steering, &spec, i); err != nil {
				return err
			}
		}
		g, err := lab.In(s.star.Switch, func() (*fastpath.Group, error) { return maps.Put(&spec) })
		if err != nil {
			return err
		}
		s.renew = func() error {
			next, err := s.gen.next()
			if err != nil {
				return err
			}
			g.Revoke()
			for i := range spec.Legs {
				g.Open(i, next)
			}
			g.Grant(next, false, next.Add(limitAhead))
			return nil
		}
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for t := time.NewTicker(limitEvery); ; {
				select {
				case <-stop:
					t.Stop()
					return
				case <-t.C:
					g.SetLimit(g.State().Hi.Add(limitAhead))
				}
			}
		}()
		s.onClose(func() error { close(stop); <-ended; return nil })
		return nil
	}
}

// addFastPort attaches the program to port i, and adds the host behind it to the group: host 0 as
// the source.
func (s *testbed) addFastPort(steering *bpf.Steering, spec *fastpath.GroupSpec, i int) error {
	mac, err := s.portMAC(i)
	if err != nil {
		return err
	}
	index, err := ifindex(s.star.Switch, s.star.Ports[i])
	if err != nil {
		return err
	}
	p, err := lab.In(s.star.Switch, func() (*bpf.PortProgram, error) {
		return steering.Attach(index, s.star.Ports[i], bpf.Native, s.benchCase.mtu())
	})
	if err != nil {
		return err
	}
	s.onClose(p.Close)
	if p.Frags() {
		return fmt.Errorf("port %s takes frames in several buffers: these are not replicated in XDP", s.star.Ports[i])
	}
	h := s.star.Hosts[i]
	if i == 0 {
		spec.Source = fastpath.Source{IP: h.IPv4, MAC: rocev2.MAC(h.MAC), Ifindex: index}
		return nil
	}
	want := rewritten(s, i)
	spec.Legs = append(spec.Legs, fastpath.LegSpec{
		Port: i, Ifindex: index, PortMAC: mac, MAC: want.mac, IP: want.dst, QPN: want.qpn, PSNDelta: rqPSN * rocev2.PSN(i),
	})
	return nil
}
