// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"sync/atomic"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A data plane without interfaces, for tests of the control plane. Workers, core and slow
// path are the real ones; nothing of it needs a privilege.

// Unattached makes a data plane with the ports of cfg, of which none is attached to an
// interface: port i has interface index i+1 and the MAC address 02:00:00:00:01:i, and its
// interface counts as vanished. Frames come by Deliver alone.
func Unattached(cfg *config.Config, mtu int, notify Notify) (_ *Plane, err error) {
	p := &Plane{cfg: cfg, notify: notify, indexes: make([]atomic.Int64, len(cfg.Ports)+sparePorts)}
	if p.umem, err = xsk.NewUmem(cfg.UMEM.Frames, cfg.UMEM.FrameSize); err != nil {
		return nil, err
	}
	for i := range cfg.Ports {
		x := &port{
			portIdentity: portIdentity{name: cfg.Ports[i].Name, ifindex: i + 1, mac: rocev2.MAC{2, 0, 0, 0, 1, byte(i)}},
			linkState:    linkState{mtu: mtu, down: true, vanished: true},
		}
		x.prepare(&cfg.Ports[i], cfg)
		p.ports = append(p.ports, x)
		p.indexes[i].Store(int64(i + 1))
	}
	p.addEmptySlots()
	if err := p.makeWorkers(cfg); err != nil {
		return nil, err
	}
	return p, nil
}

// Frame is a frame that comes by a port.
type Frame struct {
	Port  int
	Bytes []byte
}

// Deliver makes the owner of the first frame's group, or worker 0, serve frames as if it
// had received them, all between two batches. Any goroutine may call it.
func (p *Plane) Deliver(frames ...Frame) error {
	w := p.workers.all[0]
	if k, l4, ok := peekIP(frames[0].Bytes); ok {
		if i, ok := p.workers.owners.of(w.aliases.peek(k, l4)); ok {
			w = p.workers.all[i]
		}
	}
	if !w.do(func() {
		w.readClock()
		for _, f := range frames {
			addr, ok := w.pool.TakeOne()
			if !ok {
				w.count.drop[dropNoFrame]++
				continue
			}
			addr += uint64(w.umem.FrameSize() - w.umem.MaxReceive()) // as the kernel does
			n := copy(w.umem.Data(addr, uint32(w.umem.MaxReceive())), f.Bytes)
			w.servePacket(f.Port, xsk.Desc{Addr: addr, Len: uint32(n)})
		}
	}) {
		return ErrStopped
	}
	return nil
}
