// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/gleam-rdma/gleam/internal/control"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// testbed is a lab with one method to replicate in its switch, a generator at the
// first host, and sinks that count at all hosts.
type testbed struct {
	method     *method
	benchCase  benchCase
	star       *lab.Star
	sinks      *sinks
	gen        generator
	cpu        int // the CPU of the method's own thread; -1 any
	closers    []func() error
	notes      []string // the switch's log lines
	unservable string   // why the method cannot serve the case; "" if it can

	// fast, of a method with a fast path, returns the number of packets that XDP has replicated.
	fast func() (uint64, error)

	// renew, if the method needs it, readies it for a stream that begins with the
	// generator's next PSN.
	renew func() error
	// engine is gleamd's, where a row is gleamd.
	engine *control.Engine
}

// openTestbed builds everything and starts the method. On an error nothing is left.
func openTestbed(w *method, c benchCase, workerCPU, generatorCPU int) (_ *testbed, err error) {
	s := &testbed{method: w, benchCase: c, cpu: workerCPU}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s, %s: %w", w.name, c, err), s.Close())
		}
	}()
	s.star, err = lab.NewStar(lab.StarConfig{Hosts: c.legs + 1, MTU: c.mtu(), NoBridge: !w.bridge})
	if err != nil {
		return nil, err
	}
	s.onClose(s.star.Close)
	if s.sinks, err = newSinks(s.groups()); err != nil {
		return nil, err
	}
	s.onClose(s.sinks.Close)
	if err := s.attachSinks(); err != nil {
		return nil, err
	}
	if err := w.start(s); err != nil {
		return nil, err
	}
	if err := s.openGenerator(generatorCPU); err != nil {
		return nil, err
	}
	s.onClose(s.gen.Close)
	return s, nil
}

// onClose adds a function for Close, which calls them last first.
func (s *testbed) onClose(f func() error) { s.closers = append(s.closers, f) }

// Close takes everything down.
func (s *testbed) Close() error {
	var errs []error
	for _, f := range slices.Backward(s.closers) {
		errs = append(errs, f())
	}
	s.closers = nil
	return errors.Join(errs...)
}

func (s *testbed) attachSinks() error {
	frame := s.benchCase.frameLen()
	if s.method.generatorOnly {
		// The switch's own port is the sink.
		return s.attach(s.star.Switch, s.star.Ports[0], 1, frame, s.expect(0), !s.benchCase.jumbo())
	}
	for i, h := range s.star.Hosts {
		want := expectedFrame{dst: h.IPv4, qpn: memberQPN}
		if i > 0 {
			want = s.method.expected(s, i)
		}
		if err := s.attach(h.NS, h.Interface, i, frame, want, s.method.xdp && !s.benchCase.jumbo() && (i > 0 || s.method.feedback)); err != nil {
			return err
		}
	}
	return nil
}

func (s *testbed) attach(ns *lab.Namespace, name string, leg, frame int, want expectedFrame, xdp bool) error {
	index, err := ifindex(ns, name)
	if err != nil {
		return err
	}
	return ns.Do(func() error { return s.sinks.attach(ns.Handle(), index, leg, frame, want, xdp) })
}

// expect is a receiver's frame where the method rewrites none.
func (s *testbed) expect(int) expectedFrame {
	mac, dst := s.method.destination(s)
	return expectedFrame{mac: mac, dst: dst, qpn: virtualQPN}
}

func ifindex(ns *lab.Namespace, name string) (int, error) {
	l, err := ns.Handle().LinkByName(name)
	if err != nil {
		return 0, fmt.Errorf("interface %s in %s: %w", name, ns.Name(), err)
	}
	return l.Attrs().Index, nil
}

// portMAC is the address of the switch's port that leads to host i.
func (s *testbed) portMAC(i int) (rocev2.MAC, error) {
	l, err := s.star.Switch.Handle().LinkByName(s.star.Ports[i])
	if err != nil {
		return rocev2.MAC{}, fmt.Errorf("interface %s: %w", s.star.Ports[i], err)
	}
	return rocev2.MAC(l.Attrs().HardwareAddr), nil
}

// groups is the number of groups that the source sends to, of which all hosts are members.
func (s *testbed) groups() int { return max(1, s.method.groups) }

// groupAt is the address of a group, from 0.
func groupAt(k int) netip.Addr {
	a := groupIP
	for range k {
		a = a.Next()
	}
	return a
}

// dataPath is how the source addresses its packets, to the first group.
func (s *testbed) dataPath() *rocev2.Path {
	h := s.star.Hosts[0]
	mac, dst := s.method.destination(s)
	return &rocev2.Path{SrcMAC: rocev2.MAC(h.MAC), DstMAC: mac, Src: h.IPv4, Dst: dst, SrcPort: 0xC001}
}

// frames builds the frames of a group.
func (s *testbed) frames(k int) (f groupFrames, err error) {
	path := s.dataPath()
	if k > 0 {
		path.Dst = groupAt(k)
	}
	if f.data, err = s.benchCase.dataFrame(path, 0); err != nil || !s.method.feedback {
		return f, err
	}
	for i := 1; i < len(s.star.Hosts); i++ {
		path, err := s.ackPath(i, k)
		if err != nil {
			return f, err
		}
		ack, err := buildAck(&path, 0)
		if err != nil {
			return f, err
		}
		f.acks = append(f.acks, ack)
		f.acked = append(f.acked, rocev2.PSN(rqPSN*i).Prev())
	}
	return f, nil
}

func (s *testbed) openGenerator(cpu int) error {
	c := generatorConfig{arrived: s.sinks.arrived, cpu: cpu}
	for k := range s.groups() {
		f, err := s.frames(k)
		if err != nil {
			return err
		}
		c.groups = append(c.groups, f)
	}
	for _, h := range s.star.Hosts {
		index, err := ifindex(h.NS, h.Interface)
		if err != nil {
			return err
		}
		c.out = append(c.out, generatorPort{in: h.NS.Do, ifindex: index})
	}
	var err error
	if s.benchCase.jumbo() {
		s.gen, err = newPacketGenerator(c, s.star.Hosts)
	} else {
		s.gen, err = newLiveGenerator(c)
	}
	return err
}

// groupIP is the group, or the first one.
var groupIP = netip.MustParseAddr("10.77.254.1")

// counts returns the receivers' counters, each and all together.
func (s *testbed) counts() (each []seenValue, all seenValue, err error) {
	legs := s.benchCase.legs
	if s.method.generatorOnly {
		legs = 1
	}
	for i := 1; i <= legs; i++ {
		c, err := s.sinks.counts(i)
		if err != nil {
			return nil, all, err
		}
		each = append(each, c)
		all.Good += c.Good
		all.Again += c.Again
		all.Wrong += c.Wrong
		all.Acks += c.Acks
	}
	return each, all, nil
}
