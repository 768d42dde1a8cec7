// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// fakeSwitch is an Engine without a kernel under it: workers, core, directory,
// registrar and journal are the real ones, the ports have no sockets, and host i
// (10.77.0.i+1) is behind port i because the locator says so. Nothing of it needs
// root. Packets are given to the core as values.
type fakeSwitch struct {
	stop func() // ends Run; may be called again
	*Engine
	t        testing.TB
	locator  *fakeLocator
	changes  *locate.Changes
	mu       sync.Mutex
	left     []envelope.Packet      // the envelopes that have left since the last message by deliver; of the control loop
	onLeft   func(*envelope.Packet) // called by the control loop when a datagram leaves
	log      []string
	warnings []string // those of log that are warnings
}

// fakeLocator knows where the test has put hosts, and counts what it is asked.
type fakeLocator struct {
	mu    sync.Mutex
	at    map[netip.Addr]locate.Location
	err   map[netip.Addr]error
	asked map[netip.Addr]int
	mtu   map[int]int
	stuck chan struct{} // a channel, or nil: questions for host 0 wait until it is closed

	really      map[netip.Addr]locate.Location // hosts that are elsewhere than at has them
	invalidated map[netip.Addr]int

	vrfs, reallyVRFs []int // those that SetPorts has found, and those that it finds next
	vrfErr           error // result of SetPorts
	reads            int   // calls of SetPorts
}

func (l *fakeLocator) Locate(ip netip.Addr) (locate.Location, error) {
	l.mu.Lock()
	if stuck := l.stuck; stuck != nil && ip == fakeHost(0) {
		l.mu.Unlock()
		<-stuck
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	l.asked[ip]++
	return l.at[ip], l.err[ip]
}

// Invalidate has the next Locate find a host where it really is.
func (l *fakeLocator) Invalidate(ip netip.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.invalidated[ip]++
	if now, moved := l.really[ip]; moved {
		l.at[ip] = now
	}
	return nil
}

func (l *fakeLocator) LocateHop(ifindex int, hop netip.Addr) (locate.Location, error) {
	at, err := l.Locate(hop)
	if at.Links = []int{ifindex}; err == nil {
		at.Ifindex = ifindex
	}
	return at, err
}

func (l *fakeLocator) Link(ifindex int, _ string) locate.Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return locate.Link{MTU: max(l.mtu[ifindex], 68)}
}

// Recall finds the way to a host behind the port that is asked for, by the route that the locator has.
func (l *fakeLocator) Recall(ip netip.Addr, h locate.Held) (locate.Location, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := locate.Location{Ifindex: h.Ifindex, MAC: h.MAC[:], VLAN: h.VLAN, Hop: h.Hop, Links: []int{h.Ifindex}}
	if way := l.at[ip].Links; len(way) > 0 && way[0] == bridgeIndex {
		at.Links, at.Learnt = []int{bridgeIndex, h.Ifindex}, locate.Learnt{Bridge: bridgeIndex, Port: h.Ifindex}
	}
	if l.at[ip].Hop != h.Hop {
		return locate.Location{}, errors.New("another route")
	}
	return at, at.Check()
}

func (l *fakeLocator) SetPorts([]int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	if l.vrfErr == nil {
		l.vrfs = l.reallyVRFs
	}
	return l.vrfErr
}

func (l *fakeLocator) VRFs() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.vrfs
}

// questions returns how often the first hosts were asked for.
func (l *fakeLocator) questions(hosts int) []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := make([]int, hosts)
	for i := range n {
		n[i] = l.asked[fakeHost(i)]
	}
	return n
}

// set puts host i behind the port with this interface; err is what Locate says of it.
func (l *fakeLocator) set(i, ifindex int, mac byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err[fakeHost(i)] = err
	at := locate.Location{Hop: fakeHost(i), Links: []int{ifindex}}
	if err == nil {
		at.Ifindex, at.MAC = ifindex, net.HardwareAddr{2, 0, 0, 0, 0, mac}
	}
	l.at[fakeHost(i)] = at
}

// place returns where a host is.
func (l *fakeLocator) place(ip netip.Addr) locate.Location {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at[ip]
}

func (l *fakeLocator) setMTU(ifindex, mtu int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mtu[ifindex] = mtu
}
func (l *fakeLocator) Close() {}

// bridgeIndex is the interface of the bridge that hosts may be behind.
const bridgeIndex = 99

func fakeHost(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 77, byte((i + 1) >> 8), byte(i + 1)})
}

func fakeGroup(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 254, byte(i + 1)}) }

// newFakeSwitch runs a switch with a port for each of hosts, and workers, until the test
// ends.
func newFakeSwitch(t testing.TB, hosts, workers int) *fakeSwitch {
	t.Helper()
	return newFakeSwitchWith(t, hosts, workers, "psn_probe: 0s\n")
}

// newFakeSwitchWith is newFakeSwitch with more lines of configuration. What prepare does is done
// before the switch runs.
func newFakeSwitchWith(t testing.TB, hosts, workers int, more string, prepare ...func(*fakeSwitch)) *fakeSwitch {
	t.Helper()
	f := &fakeSwitch{t: t, changes: locate.NewChanges(), locator: &fakeLocator{
		at: map[netip.Addr]locate.Location{}, err: map[netip.Addr]error{}, asked: map[netip.Addr]int{}, mtu: map[int]int{},
		really: map[netip.Addr]locate.Location{}, invalidated: map[netip.Addr]int{},
	}}
	if !strings.Contains(more, "envelope:") {
		more += "envelope: {insecure: true}\n"
	}
	if !strings.Contains(more, "group_prefixes:") {
		more += "group_prefixes: [10.77.254.0/24]\n"
	}
	text := more + "umem: {frames: 4096}\n" +
		"rings: {rx: 512, tx: 512, fill: 512, completion: 512}\n" +
		"worker: {cpu: [" + strings.TrimSuffix(strings.Repeat("-1,", workers), ",") + "]}\nports:\n"
	for i := range hosts {
		text += fmt.Sprintf("  - {name: f%d}\n", i)
	}
	cfg, err := config.Parse("fake", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{cfg: cfg, notify: f.notify, started: time.Now(), guardLog: new(portGuardLog)}
	if e.plane, err = dataplane.Unattached(cfg, 1500, f.notify); err != nil {
		t.Fatal(err)
	}
	for i := range hosts {
		f.locator.set(i, i+1, byte(i), nil)
		f.locator.setMTU(i+1, 1500)
	}
	k, err := openKeeper(cfg, 0, f.notify)
	if err != nil {
		t.Fatal(err)
	}
	if e.control, err = newControl(k, e.plane, portsOf(e.plane, cfg), f.locator, cfg, [envelope.SecretLen]byte{1}, f.notify); err != nil {
		t.Fatal(err)
	}
	e.control.departures.onLeave = func(m *message) {
		if !m.Body.isRelay {
			f.left = append(f.left, m.Body.packet)
			if f.onLeft != nil {
				f.onLeft(&m.Body.packet)
			}
		}
		e.control.leave(m)
	}
	f.Engine = e
	for _, p := range prepare {
		p(f)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := e.plane.Run(func() { e.control.run(ctx, f.changes) }); err != nil {
			t.Error(err)
		}
	}()
	f.stop = func() { cancel(); <-ended }
	t.Cleanup(func() {
		f.stop()
		if err := e.plane.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *fakeSwitch) notify(warn bool, msg string, kv ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if warn {
		f.warnings = append(f.warnings, msg+" "+fmt.Sprint(kv...))
	}
	f.log = append(f.log, msg+" "+fmt.Sprint(kv...))
}

// know has the control loop, on which it runs, know where the first hosts are, so that
// a registration of them needs no other turn.
func (f *fakeSwitch) know(hosts int) {
	d := f.control.dir
	for i := range hosts {
		h := d.hosts.Candidate(fakeHost(i), d.now())
		at, err := f.locator.Locate(h.IP())
		d.hosts.Answered(h, at, err, d.now())
	}
}

// record is host i's member of a group: its PSNs begin at 1000*i.
func (f *fakeSwitch) record(i int, qpn api.QPN) api.RegisterMember {
	return api.RegisterMember{IP: fakeHost(i), QPN: qpn, SQPSN: api.PSN(1000 * i), RQPSN: api.PSN(1000 * i)}
}

// register registers group n of the first hosts, as many as the argument says, with the QPNs from qpn on.
func (f *fakeSwitch) register(n, members int, qpn api.QPN, policy string) *api.Register {
	f.t.Helper()
	r := &api.Register{Group: fakeGroup(n), QPN: 0x4711, PMTU: 1024, Policy: policy, NoRepair: true}
	for i := range members {
		r.Members = append(r.Members, f.record(i, qpn+api.QPN(i)))
	}
	if err := f.Register(r); err != nil {
		f.t.Fatal(err)
	}
	return r
}

// feed delivers packets of group n, from where their hosts are, all between two batches of
// the group's worker.
func (f *fakeSwitch) feed(n int, packets ...mcast.Packet) {
	f.t.Helper()
	f.feedTo(n, 0x4711, packets...)
}

// feedTo is feed of packets for another virtual QPN than the group's.
func (f *fakeSwitch) feedTo(n int, qpn rocev2.QPN, packets ...mcast.Packet) {
	f.t.Helper()
	frames := make([]dataplane.Frame, len(packets))
	for i := range packets {
		p := &packets[i]
		at := f.locator.place(p.Src)
		path := rocev2.Path{Src: p.Src, Dst: fakeGroup(n), SrcMAC: rocev2.MAC(at.MAC), SrcPort: 0xC123}
		b := make([]byte, 128)
		b = b[:rocev2.BuildPacket(b, &path, &rocev2.Packet{Op: p.Op, AckReq: true, DestQP: qpn, PSN: p.PSN, Syndrome: p.Syndrome}, nil)]
		frames[i] = dataplane.Frame{Port: at.Ifindex - 1, Bytes: b}
	}
	if err := f.plane.Deliver(frames...); err != nil {
		f.t.Fatal(err)
	}
}

// send and answer are packets of host i.
func send(i int, psn rocev2.PSN) mcast.Packet {
	return mcast.Packet{Src: fakeHost(i), Op: rocev2.SendOnly, PSN: psn}
}

func answer(i int, psn rocev2.PSN, s rocev2.Syndrome) mcast.Packet {
	return mcast.Packet{Src: fakeHost(i), Op: rocev2.Acknowledge, PSN: psn, Syndrome: s}
}

// events returns the journal's events of group n, without time and number.
func (f *fakeSwitch) events(n int, kinds ...string) (es []api.Event) {
	for _, e := range f.control.journal.After(ended(), 0).Events {
		if e.Group == fakeGroup(n) && slices.Contains(kinds, e.Kind) {
			es = append(es, e)
		}
	}
	return es
}

// ended is a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// eventually waits for what the control loop learns on its own time.
func (f *fakeSwitch) eventually(what string, ok func() bool) {
	f.t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.t.Errorf("not so after 5 s: %s", what)
}

// register1 is register on the control loop.
func (f *fakeSwitch) register1(n, members int) {
	f.t.Helper()
	reg := envelope.Registration{Group: fakeGroup(n), GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024}}
	for i := range members {
		m := f.record(i, api.QPN(0x100+i))
		reg.Members = append(reg.Members, record(&m))
	}
	if _, err := f.control.registrar.RegisterLocal(f.control.now(), reg, &f.control.out); err != nil {
		f.t.Fatal(err)
	}
	f.control.sendOutput()
}
