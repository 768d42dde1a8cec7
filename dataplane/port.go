// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/locate"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// port is one port of the switch. Its identity is fixed; the counters and the
// state below the line belong to the worker.
type port struct {
	name    string
	ifindex int
	mac     rocev2.MAC
	mtu     int
	vlan    uint16 // VID of group frames sent here; 0 untagged
	prog    *bpf.PortProgram
	socks   []*xsk.Socket // one for each RX queue; the first one transmits
	saidUp  bool          // what the operator was last told; the control loop's
	// ---- the worker's
	down     bool       // no carrier, disabled, or gone
	gone     bool       // the interface has vanished, and the sockets are closed
	tx       []xsk.Desc // staged in this batch; never more than the TX ring has room for
	rxFrames uint64
	txFrames uint64
	// What a host may bring of packets that cost others something.
	naks, envelopes, neighbours bucket
}

// openPort attaches the XDP program to the interface named in c and binds an
// AF_XDP socket to each of its receive queues.
func openPort(c *config.Port, cfg *config.Config, steering *bpf.Steering, umem *xsk.Umem) (_ *port, err error) {
	link, queues, err := findPort(c)
	if err != nil {
		return nil, err
	}
	a := link.Attrs()
	p := &port{
		name: c.Name, ifindex: a.Index, mac: rocev2.MAC(a.HardwareAddr), mtu: a.MTU, vlan: uint16(c.VLAN),
		down: !locate.Running(a),
	}
	p.saidUp = !p.down
	p.naks, p.envelopes, p.neighbours = newBucket(cfg.Limits.NAKs), newBucket(cfg.Limits.Envelopes), newBucket(cfg.Limits.Neighbours)
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.prog, err = steering.Attach(p.ifindex, p.name, bpfMode(cfg.XDP.Mode)); err != nil {
		return nil, err
	}
	for _, q := range queues {
		s, err := xsk.Open(umem, xsk.Config{
			Ifindex: p.ifindex, Ifname: p.name, Queue: q,
			RxSize: cfg.Rings.RX, TxSize: cfg.Rings.TX, FillSize: cfg.Rings.Fill, CompSize: cfg.Rings.Completion,
			ZeroCopy: xskMode(cfg.XDP.ZeroCopy),
		})
		if err != nil {
			return nil, err
		}
		p.socks = append(p.socks, s)
		if err := p.prog.SetSocket(q, s.FD()); err != nil {
			return nil, err
		}
	}
	p.tx = make([]xsk.Desc, 0, cfg.Rings.TX)
	return p, nil
}

// close detaches the program, so that the port forwards like any other
// interface again, and then releases the sockets.
func (p *port) close() {
	if p.prog != nil {
		p.prog.Close()
	}
	for _, s := range p.socks {
		s.Close()
	}
}

// lose gives up the sockets of an interface that has vanished and returns to the
// pool the frames that the kernel had for them. It runs on the worker, between
// batches. Should an interface of the same name appear, it is another one, and
// gleamd has to be started again to serve it.
func (w *worker) lose(p *port) {
	p.gone, p.down = true, true
	for _, s := range p.socks {
		s.Close() // the descriptor is gone whatever it returns
		for {
			n := s.Reclaim(w.addrs)
			if n == 0 {
				break
			}
			w.pool.Give(w.addrs[:n])
		}
	}
}

// txRoom returns how many more frames can be staged for p in this batch.
func (p *port) txRoom() int { return p.socks[0].TxRoom() - len(p.tx) }
