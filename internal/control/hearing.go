// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// A port proves itself by the first frames: the XDP program counts each packet that the interface
// receives, and a worker gets each one that the program hands on. An interface at which one of
// the two does not happen is attached and never heard.

// Packets after which a port counts as never heard, and the interval at which that is looked for.
const (
	unheardAfter    = 64 // received by the interface, none seen by the program
	undeliveredFrom = 8  // handed to sockets, none received
	hearingInterval = 5 * time.Second
)

// hearing has what ports had received when watchHearing first saw their interfaces attached.
type hearing struct {
	mu   sync.Mutex
	from map[string]heardFrom // the states of interfaces when they were attached, by port
}

// heardFrom is the state of an interface when it was attached.
type heardFrom struct {
	ifindex  int
	received uint64
}

// note notes what ports have received whose interfaces are new. It is given them with all counters.
func (h *hearing) note(list []api.Port) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.from == nil {
		h.from = make(map[string]heardFrom)
	}
	for i := range list {
		if p := &list[i]; p.State == api.PortOpen && p.Device != nil && !h.from[p.Name].isOf(p) {
			h.from[p.Name] = heardFrom{p.Ifindex, p.Device.RXPackets}
		}
	}
}

// isOf reports whether p has the same interface still.
func (from heardFrom) isOf(p *api.Port) bool {
	return from.ifindex == p.Ifindex && from.received <= p.Device.RXPackets
}

// judge adds to ports why they are never heard. It is given them with all counters.
func (h *hearing) judge(list []api.Port) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range list {
		p := &list[i]
		if p.State != api.PortOpen || p.Device == nil {
			continue
		}
		received := uint64(0)
		if from := h.from[p.Name]; from.isOf(p) {
			received = p.Device.RXPackets - from.received
		}
		p.Unheard = unheard(p, received)
	}
}

// unheard returns why frames of a port do not come to gleamd, if that is sure. received is the
// number of packets that its interface has received since it was attached.
func unheard(p *api.Port, received uint64) string {
	var seen, handed uint64
	for reason, n := range p.XDP {
		seen += n
		if strings.HasPrefix(reason, "xsk_") {
			handed += n
		}
	}
	delivered := p.RxFrames
	for i := range p.Sockets {
		k := &p.Sockets[i].Kernel
		delivered += k.RXDropped + k.RXRingFull + k.FillEmpty + k.RXInvalid
	}
	switch {
	case p.RxFrames == 0 && seen == 0 && received >= unheardAfter:
		return fmt.Sprintf("its interface has received %d packets since gleamd attached to it, and the XDP program saw none of them", received)
	case delivered == 0 && handed >= undeliveredFrom:
		return fmt.Sprintf("its XDP program has handed %d packets to AF_XDP sockets, and none has arrived", handed)
	}
	return ""
}

// watchHearing tells the operator of ports that are never heard, until ctx ends.
func (e *Engine) watchHearing(ctx context.Context) {
	tick := time.NewTicker(hearingInterval)
	defer tick.Stop()
	told := make(map[string]bool)
	for {
		if ports, err := e.Ports(); err == nil {
			e.hearing.note(ports)
			for i := range ports {
				p := &ports[i]
				if p.Unheard != "" && !told[p.Name] {
					e.notify(true, "a port is attached, and never heard: "+p.Unheard, "port", p.Name, "xdp", p.XDPMode, "remedy", "xdp: {mode: generic} at this port, if it is native; gleam doctor has more")
				}
				told[p.Name] = p.Unheard != ""
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
