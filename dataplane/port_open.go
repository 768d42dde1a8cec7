// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"sync"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
	"github.com/gleam-rdma/gleam/dataplane/ntuple"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// attachment is what was opened for a port, and close closes. Remote views have none.
type attachment struct {
	xdp      *bpf.PortProgram
	mode     bpf.Mode         // the mode that xdp runs in
	nicRules *ntuple.Table    // used by Group; nil: steering by NIC rules is off or not supported
	sockets  []xsk.BoundQueue // one for each RX queue; the first one also transmits
}

// foundPort is a configured port with its interface.
type foundPort struct {
	config *config.Port
	iface.Found
}

// openPort has the XDP program attached to the interface of f and binds an AF_XDP socket to
// each of its receive queues.
func openPort(f *foundPort, cfg *config.Config, umem *xsk.Umem, attach func(ifindex, mtu int) (*bpf.PortProgram, error)) (_ *port, err error) {
	c, a := f.config, f.Link.Attrs()
	p := &port{
		portIdentity: portIdentity{
			name: c.Name, ifindex: a.Index, driver: iface.Driver(c.Name), mac: rocev2.MAC(a.HardwareAddr),
			vlan: uint16(c.VLAN), ownECN: c.HasOwnECN(), bridge: a.MasterIndex,
		},
		linkState: linkState{mtu: a.MTU, down: !iface.Running(a)},
	}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.xdp, err = attach(p.ifindex, p.mtu); err != nil {
		return nil, err
	}
	p.mode = p.xdp.Mode()
	p.native = p.mode == bpf.Native
	p.frags = p.xdp.Frags()
	p.clones, p.noClones = p.xdp.Clones()
	p.multiBuffer = p.frags || p.mtu+rocev2.EthernetLen+2*rocev2.VLANLen > umem.MaxReceive()
	if !p.multiBuffer {
		p.maxMTU = umem.MaxReceive() - rocev2.EthernetLen - 2*rocev2.VLANLen
	}
	for _, q := range f.Queues {
		s, err := xsk.Open(umem, xsk.Config{
			Ifindex: p.ifindex, Ifname: p.name, Queue: q,
			RxSize: cfg.Rings.RX, TxSize: cfg.Rings.TX, FillSize: cfg.Rings.Fill, CompSize: cfg.Rings.Completion,
			ZeroCopy: xskMode(cfg.XDP.ZeroCopy), MultiBuffer: p.multiBuffer,
		})
		if err != nil {
			return nil, err
		}
		p.sockets = append(p.sockets, s)
		if err := p.xdp.SetSocket(q, s.FD()); err != nil {
			return nil, err
		}
	}
	p.prepare(c, cfg)
	return p, nil
}

// close detaches the port, and then releases the sockets.
func (a *attachment) close() {
	a.detach()
	a.closeSockets()
}

// detach detaches the program, so that the port forwards like any other interface again. The
// program stays loaded.
func (a *attachment) detach() {
	if a.nicRules != nil {
		a.nicRules.Close() // a failure was reported: the interface is gone, or its driver has lost the rules
	}
	if a.xdp != nil {
		_ = a.xdp.Detach() // an error: the interface is gone
	}
}

func (a *attachment) closeSockets() {
	var closing sync.WaitGroup
	for _, s := range a.sockets { // each waits for an RCU grace period
		closing.Go(func() { s.Close() }) // the file descriptor is closed whatever Close returns
	}
	closing.Wait()
}

func bpfMode(m config.XDPMode) bpf.Mode {
	switch m {
	case config.XDPNative:
		return bpf.Native
	case config.XDPGeneric:
		return bpf.Generic
	}
	return bpf.Auto
}

func xskMode(z config.ZeroCopy) xsk.Mode {
	switch z {
	case config.ZeroCopyNever:
		return xsk.Copy
	case config.ZeroCopyAlways:
		return xsk.ZeroCopy
	}
	return xsk.Auto
}
