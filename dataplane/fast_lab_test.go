// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// fastLab is a switch with the fast path, whose workers run, and hosts with software queue
// pairs that are members of one group.
type fastLab struct {
	*testing.T
	star   *lab.Star
	plane  *Plane
	group  *Group
	spec   mcast.GroupSpec
	table  Table
	ctx    context.Context
	hosts  []*fastHost // hosts by MemberID
	window uint64      // bytes
	loss   float64
	round  int
	// personalities are those of the hosts in turn; none: all are as rxe.
	personalities []soft.Personality
}

// fastHost is a member of the group.
type fastHost struct {
	host   lab.Host
	port   int
	device *soft.Device
	qp     endpoint.QP
	send   endpoint.MR
	recv   endpoint.MR
}

type fastLabConfig struct {
	hosts   int
	behind  []int // further members behind these ports
	v6      bool
	workers int
	pathMTU int
	loss    float64 // the loss at every host, in both directions
	more    string  // more lines of the configuration
	// personalities are those of the hosts in turn; none: all are as rxe.
	personalities []soft.Personality
	change        func(*fastLab)
}

const (
	fastWindowVA  = 0x10_0000_0000
	fastWindowKey = 0x4242
	fastGroupQPN  = 0x4711
)

func newFastLab(t *testing.T, c fastLabConfig) *fastLab {
	t.Helper()
	x := &fastLab{T: t, star: labtest.Star(t, lab.StarConfig{Hosts: c.hosts, MTU: 3000}), window: 1 << 20, loss: c.loss, personalities: c.personalities}
	for _, h := range x.star.Hosts {
		if err := h.NS.SetFeature(h.Interface, lab.GRO, true); err != nil { // or redirected frames are dropped there
			t.Fatal(err)
		}
	}
	cpus := "-1" + string(bytes.Repeat([]byte(", -1"), max(c.workers, 1)-1))
	cfg, err := config.Parse("fast", []byte(x.star.Config()+"envelope: {insecure: true}\nfast_path: require\numem: {frames: 8192}\nworker: {cpu: ["+cpus+"]}\n"+c.more))
	if err != nil {
		t.Fatal(err)
	}
	if err := x.star.Switch.Do(func() (err error) {
		x.plane, err = Open(cfg, func(warn bool, msg string, kv ...any) {
			if warn {
				t.Log(append([]any{msg}, kv...)...)
			}
		}, nothing)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.plane.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, p := range x.plane.Ports()[:len(cfg.Ports)] {
		if err := p.Program.SetPolicy(&bpf.Policy{}); err != nil {
			t.Fatal(err)
		}
	}
	started, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { ended <- x.plane.Run(func() { close(started); <-end }) }()
	<-started
	t.Cleanup(func() {
		close(end)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	x.ctx = ctx
	ip := lab.StarGroupsIPv4.Addr().Next()
	if c.v6 {
		ip = lab.StarGroupsIPv6.Addr().Next()
	}
	x.table = Table{IP: ip, QPN: fastGroupQPN, PMTU: max(c.pathMTU, 1024)}
	if c.pathMTU != 0 {
		x.table.PMTU = c.pathMTU
	}
	x.spec = mcast.GroupSpec{
		IP: ip, GroupParams: mcast.GroupParams{QPN: fastGroupQPN, PathMTU: x.table.PMTU}, Repair: x.plane.RepairSpec(), PSNProbe: 2 * time.Millisecond,
		Window: mcast.Window{Base: fastWindowVA, Len: x.window, RKey: fastWindowKey},
	}
	for _, i := range c.behind {
		x.addAddress(i)
	}
	for i, h := range x.star.Hosts {
		ip := h.IPv4
		if c.v6 {
			ip = h.IPv6
		}
		x.addMember(i, ip, nil)
	}
	for _, i := range c.behind {
		x.addMember(i, secondAddress(i), x.hosts[i].device)
	}
	if c.change != nil {
		c.change(x)
	}
	x.group = x.plane.NewGroup(0, ip)
	if err := x.group.Install(x.spec, &x.table, &GroupState{}); err != nil {
		t.Fatal(err)
	}
	for _, h := range x.hosts {
		x.connect(h)
	}
	return x
}

// secondAddress is another address of host i.
func secondAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 7, byte(i + 1)}) }

func (x *fastLab) addAddress(i int) {
	x.Helper()
	h := x.star.Hosts[i]
	link, err := h.NS.Handle().LinkByName(h.Interface)
	if err == nil {
		err = h.NS.Handle().AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: secondAddress(i).AsSlice(), Mask: net.CIDRMask(16, 32)}})
	}
	if err != nil {
		x.Fatal(err)
	}
}

// addMember makes a queue pair with an address of host i, whose memory is somewhere else than
// that of the others, and adds it to the group.
func (x *fastLab) addMember(i int, ip netip.Addr, device *soft.Device) {
	x.Helper()
	h := &fastHost{host: x.star.Hosts[i], port: i, device: device}
	if device == nil {
		var personality soft.Personality
		if n := len(x.personalities); n > 0 {
			personality = x.personalities[i%n]
		}
		if err := h.host.NS.Do(func() (err error) {
			h.device, err = soft.Open(soft.Config{Interface: h.host.Interface, Seed: uint64(len(x.hosts)), Loss: x.loss, Personality: personality})
			return err
		}); err != nil {
			x.Fatal(err)
		}
		x.Cleanup(func() { h.device.Close() })
	}
	var err error
	if h.qp, err = h.device.CreateQP(endpoint.QPConfig{LocalIP: ip, SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN()}); err != nil {
		x.Fatal(err)
	}
	if h.send, err = h.device.RegisterMemory(make([]byte, x.window), 0, 0); err != nil {
		x.Fatal(err)
	}
	va := uint64(0x7000_0000_0000 + 0x1_0000_1000*len(x.hosts))
	if h.recv, err = h.device.RegisterMemory(make([]byte, x.window), va, endpoint.RemoteWrite); err != nil {
		x.Fatal(err)
	}
	info := h.qp.Info()
	x.spec.Legs = append(x.spec.Legs, mcast.LegSpec{Port: mcast.Port(i)})
	x.spec.Members = append(x.spec.Members, mcast.MemberSpec{
		MemberRecord: mcast.MemberRecord{IP: info.IP, QPN: info.QPN, SQPSN: info.SQPSN, RQPSN: info.RQPSN, Window: mcast.Window{Base: va, Len: x.window, RKey: h.recv.RKey()}}, Leg: mcast.LegID(len(x.hosts)),
	})
	x.table.Destinations = append(x.table.Destinations, Destination{
		Origin: Origin{Port: i, MAC: rocev2.MAC(h.host.MAC)}, IP: info.IP, QPN: info.QPN, Leg: mcast.LegID(len(x.hosts)),
	})
	x.hosts = append(x.hosts, h)
}

func (x *fastLab) connect(h *fastHost) {
	x.Helper()
	if err := h.qp.Connect(x.ctx, endpoint.Remote{IP: x.spec.IP, QPN: fastGroupQPN, PathMTU: x.spec.PathMTU, RQPSN: h.qp.Info().RQPSN}); err != nil {
		x.Fatal(err)
	}
}

// lose makes a host lose that part of the frames that it receives.
func (x *fastLab) lose(i int, rate float64) {
	x.Helper()
	if err := x.hosts[i].device.SetInboundLoss(soft.LossModel{Rate: rate, Seed: uint64(i)}); err != nil {
		x.Fatal(err)
	}
}

// send has member from write its window in messages of that size, several times, and
// compares the bytes at these receivers each time.
func (x *fastLab) send(from, times, size int, to ...int) {
	x.Helper()
	if err := x.trySend(from, times, size, to...); err != nil {
		x.Fatal(err)
	}
}

func (x *fastLab) trySend(from, times, size int, to ...int) error {
	h := x.hosts[from]
	for range times {
		x.round++
		b := h.send.Bytes()
		for i := range b {
			b[i] = byte(i*7 + i>>8*13 + i>>16 + x.round*31 + from)
		}
		if err := x.write(h, size); err != nil {
			return fmt.Errorf("round %d: %w", x.round, err)
		}
		for _, i := range to {
			if !bytes.Equal(x.hosts[i].recv.Bytes(), b) {
				return fmt.Errorf("round %d: member %d has other bytes", x.round, i)
			}
		}
	}
	return nil
}

// write writes the whole window of h's group.
func (x *fastLab) write(h *fastHost, size int) error {
	posted, done := 0, 0
	cs := make([]endpoint.Completion, 64)
	total := (int(x.window) + size - 1) / size
	for done < total {
		for posted < total && posted-done < 64 {
			at := posted * size
			if _, err := h.qp.PostSend(endpoint.SendWR{
				ID: uint64(posted), Op: endpoint.Write, Local: endpoint.Segment{MR: h.send, Offset: at, Len: min(size, int(x.window)-at)},
				RemoteAddr: fastWindowVA + uint64(at), RKey: fastWindowKey,
			}); err != nil {
				return err
			}
			posted++
		}
		n, err := h.qp.Poll(x.ctx, cs)
		if err != nil {
			return fmt.Errorf("after %d of %d completions: %w", done, total, err)
		}
		for _, c := range cs[:n] {
			if err := c.Err(); err != nil {
				return err
			}
		}
		done += n
	}
	return nil
}

// state reads the state of the group.
func (x *fastLab) state() *GroupState {
	x.Helper()
	s := &GroupState{}
	if err := x.group.Read(s); err != nil {
		x.Fatal(err)
	}
	return s
}

// steady repeats run until 95 % of the packets of a run were replicated by the programs. On a
// busy machine a pause of a host can be so long that the group is taken back.
func (x *fastLab) steady(from int, run func()) {
	x.Helper()
	machine := labtest.Watch()
	for range 10 {
		before := x.state()
		run()
		after := x.state()
		fast := after.Fast.Packets - before.Fast.Packets
		all := after.Status.Counters.DataIn - before.Status.Counters.DataIn
		x.Logf("member %d: %d of %d packets took the fast path: %+v", from, fast, all, after.Fast)
		if float64(fast) >= 0.95*float64(all) && all > 0 {
			return
		}
	}
	machine.Timing(x.T, "member %d: never were 95 %% of the packets forwarded by the programs; of the core: %+v", from, x.state().Status.Counters)
}

func (x *fastLab) all(but ...int) (list []int) {
	skip := make(map[int]bool)
	for _, i := range but {
		skip[i] = true
	}
	for i := range x.hosts {
		if !skip[i] {
			list = append(list, i)
		}
	}
	return list
}

// while runs f while other things are done, and ends it.
func while(f func(stop <-chan struct{}), other func()) {
	stop := make(chan struct{})
	var w sync.WaitGroup
	w.Go(func() { f(stop) })
	other()
	close(stop)
	w.Wait()
}
