// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"cmp"
	"errors"
	"slices"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// The control plane's operations on ports. A port is named by its index in the
// configuration.

// Port is a port as it was opened. The zero value is that of a slot without a port.
type Port struct {
	Name    string
	Ifindex int
	MAC     rocev2.MAC
	VLAN    uint16 // VID of group frames sent here; 0: untagged
	MTU     int    // the MTU of the interface; later ones are told by SetMTU
	MaxMTU  int    // the largest MTU that the buffers allow; 0: no limit
	Up      bool   // later changes are told by SetUp
	Queues  int    // number of receive queues with a socket
	Bridge  int    // ifindex of the bridge that the interface is a port of; 0: none
	Program *bpf.PortProgram
}

// Ports returns the ports as they were opened, by slot, before Run.
func (p *Plane) Ports() []Port {
	list := make([]Port, len(p.ports))
	for i, x := range p.ports {
		list[i] = describePort(x)
	}
	return list
}

func describePort(x *port) Port {
	return Port{x.name, x.ifindex, x.mac, x.vlan, x.mtu, x.maxMTU, !x.down, len(x.sockets), x.bridge, x.xdp}
}

// Presence says whether the interface of a port exists.
type Presence int

// Present interfaces exist. A Lost one has vanished since the last call of SetUp, and the
// port is closed now; a Gone one vanished before.
const (
	Present Presence = iota
	Lost
	Gone
)

// SetUp tells the workers whether port pi can send. A port whose interface has vanished is
// closed and stays down.
func (p *Plane) SetUp(pi int, up bool) (at Presence, err error) {
	c := p.workers
	if !c.all[c.txWorker(pi)].do(func() {
		switch x := p.ports[pi]; {
		case x.vanished:
			at = Gone
		case len(x.rxSockets) > 0 && errors.Is(x.rxSockets[0].State(), xsk.ErrGone):
			at = Lost
		}
	}) {
		return at, ErrStopped
	}
	ok := true
	switch at {
	case Lost:
		return at, p.detach(pi, false)
	case Present:
		ok = c.do(func(w *worker) {
			w.disturbFast()
			w.ports[pi].down = !up
		})
	}
	if !ok {
		return at, ErrStopped
	}
	return at, nil
}

// SetMTU tells the workers the MTU of port pi.
func (p *Plane) SetMTU(pi, mtu int) error {
	if !p.workers.do(func(w *worker) {
		w.disturbFast()
		w.ports[pi].mtu = mtu
	}) {
		return ErrStopped
	}
	return nil
}

// SetMAC tells the workers the MAC address of port pi's interface.
func (p *Plane) SetMAC(pi int, mac rocev2.MAC) error {
	if !p.workers.do(func(w *worker) {
		w.disturbFast()
		w.ports[pi].mac = mac
	}) {
		return ErrStopped
	}
	return nil
}

// SetIsolated tells the workers whether port pi is an isolated one of its bridge: nothing
// goes from it to another isolated one. Any goroutine may call it.
func (p *Plane) SetIsolated(pi int, isolated bool) {
	p.workers.do(func(w *worker) { w.ports[pi].isolated = isolated })
}

// PresetIsolated is SetIsolated before Run.
func (p *Plane) PresetIsolated(pi int, isolated bool) {
	for _, w := range p.workers.all {
		w.ports[pi].isolated = isolated
	}
}

// SetRate sets the rate of port pi in bit/s; 0: no limit. Any goroutine may call it.
func (p *Plane) SetRate(pi int, rate int64) error {
	c := p.workers
	if !c.all[c.txWorker(pi)].do(func() { p.ports[pi].queue.setRate(rate) }) ||
		!c.do(func(w *worker) {
			w.disturbFast()
			w.setPortDelay(pi, rate)
		}) {
		return ErrStopped
	}
	return nil
}

// DescribePorts adds the state of each port, and of its queue, sockets and program, to the
// entry of that index. Any goroutine may call it.
func (p *Plane) DescribePorts(list []api.Port) error {
	xdp := make([]*bpf.PortProgram, len(p.ports))
	if !p.workers.do(func(w *worker) {
		for i, x := range w.ports {
			x.addTo(&list[i], w.index)
			if x.remoteTX == nil {
				xdp[i] = x.xdp
			}
		}
	}) {
		return ErrStopped
	}
	for i := range p.ports {
		a := &list[i]
		slices.SortFunc(a.Sockets, func(x, y api.Socket) int { return cmp.Compare(x.Queue, y.Queue) })
		a.Worker = p.workers.txWorker(i)
		if xdp[i] == nil {
			continue // not attached
		}
		c, err := xdp[i].Counters()
		if err != nil {
			return err
		}
		a.XDP = make(map[string]uint64)
		for r, n := range c {
			if n > 0 {
				a.XDP[bpf.Reason(r).String()] = n
			}
		}
	}
	return p.describeFast(list)
}

// addTo adds to the API's view of p the state that belongs to p's worker. It runs on that
// worker.
func (p *port) addTo(a *api.Port, worker int) {
	a.RxFrames += p.rxFrames
	a.RxBytes += p.rxBytes + p.rxFrames*linkOverhead
	for _, s := range p.rxSockets {
		used, size := s.Occupancy(), s.Sizes()
		a.Sockets = append(a.Sockets, api.Socket{
			Queue: s.Number(), Worker: worker,
			RX: api.Ring{Used: used.RX, Size: size.RX}, Fill: api.Ring{Used: used.Fill, Size: size.Fill},
			TX: api.Ring{Used: used.TX, Size: size.TX}, Completion: api.Ring{Used: used.Completion, Size: size.Completion},
			Kernel: socketCounters(s),
		})
	}
	if p.remoteTX == nil {
		a.TxFrames, a.TxBytes, a.MTU = p.ring.packets, p.ring.sent, p.mtu
		e := p.egressView()
		e.Bytes, e.Frames, e.Dropped, e.Deferred = e.Bytes+a.Egress.Bytes, e.Frames+a.Egress.Frames, e.Dropped+a.Egress.Dropped, e.Deferred+a.Egress.Deferred
		a.Rate, a.Egress = linkrate.Rate(p.queue.rate), e
		a.Name, a.Ifindex, a.MAC, a.VLAN, a.Driver = p.name, p.ifindex, p.mac.String(), p.vlan, p.driver
		if a.Queues = len(p.sockets); a.Queues > 0 {
			a.XDPMode, a.ZeroCopy = p.mode.String(), p.sockets[0].ZeroCopy()
		}
		return
	}
	a.Egress.Bytes += int(p.remoteTX.handedBytes - p.remoteTX.takenBytes.Load())
	a.Egress.Frames += p.remoteTX.ring.Published()
	a.Egress.Dropped += p.refusedFrames
	a.Egress.Deferred += p.deferred
}

// socketCounters reads what the kernel counts at a socket; zeros if its interface is gone.
func socketCounters(s xsk.BoundQueue) api.SocketCounters {
	k, err := s.Stats()
	if err != nil {
		return api.SocketCounters{}
	}
	return api.SocketCounters{
		RXDropped: k.RxDropped, RXRingFull: k.RxRingFull, FillEmpty: k.RxFillEmpty,
		RXInvalid: k.RxInvalid, TXInvalid: k.TxInvalid, TXRingEmpty: k.TxRingEmpty,
	}
}

// egressView makes the API's view of p's queue. It runs on the worker.
func (p *port) egressView() api.Egress {
	e := api.Egress{
		Bytes: p.depth(), Frames: p.queue.len() + p.ring.frames(), MaxDepthBytes: p.maxDepth,
		MaxBytes: p.queue.maxBytes, MaxFrames: p.queue.maxFrames, Dropped: p.refusedFrames, Deferred: p.deferred, CEMarked: p.ceMarked,
	}
	if m := &p.ecn; m.kmax > 0 {
		e.ECNKMin, e.ECNKMax, e.ECNPMax = m.kmin, m.kmax, m.pmax
	}
	return e
}
