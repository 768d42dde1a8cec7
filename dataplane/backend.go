// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Engine is what the API server answers from.
var _ api.Backend = (*Engine)(nil)

// Groups implements api.Backend.
func (e *Engine) Groups() ([]api.Group, error) {
	list := []api.Group{}
	if !e.control.do(func() {
		for _, g := range e.control.dir.groups {
			list = append(list, e.describe(g))
		}
	}) {
		return nil, errStopped
	}
	slices.SortFunc(list, func(a, b api.Group) int { return a.IP.Compare(b.IP) })
	return list, nil
}

// Group implements api.Backend.
func (e *Engine) Group(ip netip.Addr) (*api.Group, error) {
	var found *api.Group
	if !e.control.do(func() {
		if g := e.control.dir.groups[ip]; g != nil {
			d := e.describe(g)
			found = &d
		}
	}) {
		return nil, errStopped
	}
	if found == nil {
		return nil, unknownGroup(ip)
	}
	return found, nil
}

func unknownGroup(ip netip.Addr) error {
	return &api.Error{Reason: "unknown_group", Message: fmt.Sprintf("no group %s is registered: see `gleam group list`", ip)}
}

// Register implements api.Backend: it registers a group by hand, without a
// lease and without asking the members. Like any registration it waits for the
// members' places to be found, up to the configured locate_timeout.
func (e *Engine) Register(r *api.Register) error {
	reg := envelope.Registration{
		Group: r.Group, QPN: rocev2.QPN(r.QPN), PMTU: r.PMTU, Window: window(r.Window),
	}
	if r.Policy == "evict" {
		reg.Policy = mcast.Evict
	}
	for _, m := range r.Members {
		reg.Members = append(reg.Members, envelope.MemberRecord{
			IP: m.IP, QPN: rocev2.QPN(m.QPN), SQPSN: rocev2.PSN(m.SQPSN), RQPSN: rocev2.PSN(m.RQPSN), Window: window(m.Window),
		})
	}
	return e.control.register(reg)
}

func window(w *api.Window) mcast.Window {
	if w == nil {
		return mcast.Window{}
	}
	return mcast.Window{Base: w.VA, Len: w.Len, RKey: w.RKey}
}

// Delete implements api.Backend.
func (e *Engine) Delete(ip netip.Addr) error {
	known := false
	if !e.control.do(func() { known = e.control.remove(ip) }) {
		return errStopped
	}
	if !known {
		return unknownGroup(ip)
	}
	return nil
}

// Ports implements api.Backend.
func (e *Engine) Ports() ([]api.Port, error) {
	list := make([]api.Port, len(e.ports))
	if !e.control.do(func() {
		for i, p := range e.ports {
			list[i].Up = e.control.locator.Up(p.ifindex)
		}
	}) || !e.worker.do(func() {
		for i, p := range e.ports {
			list[i].RxFrames, list[i].TxFrames = p.rxFrames, p.txFrames
		}
	}) {
		return nil, errStopped
	}
	for i, p := range e.ports {
		a := &list[i]
		a.Name, a.Ifindex, a.MAC, a.MTU, a.VLAN = p.name, p.ifindex, p.mac.String(), p.mtu, p.vlan
		a.XDPMode, a.ZeroCopy, a.Queues = p.prog.Mode().String(), p.socks[0].ZeroCopy(), len(p.socks)
		c, err := p.prog.Counters()
		if err != nil {
			return nil, err
		}
		a.XDP = make(map[string]uint64)
		for r, n := range c {
			if n > 0 {
				a.XDP[bpf.Reason(r).String()] = n
			}
		}
	}
	return list, nil
}

// Stats implements api.Backend.
func (e *Engine) Stats() (*api.Stats, error) {
	s := &api.Stats{Uptime: time.Since(e.started).Seconds(), Frames: e.cfg.UMEM.Frames}
	if !e.control.do(func() { s.Groups = len(e.control.dir.groups) }) || !e.worker.do(func() {
		c := &e.worker.count
		s.Rx, s.Copies, s.FeedbackIn, s.FeedbackOut = c.dataIn, c.copies, c.feedbackIn, c.feedbackOut
		s.Neighbour, s.EnvelopeIn, s.EnvelopeOut = c.neighbour, c.envelopeIn, c.envelopeOut
		s.FramesFree = e.worker.pool.Len()
		s.Drops = c.drops()
	}) {
		return nil, errStopped
	}
	return s, nil
}

// describe makes the API's view of g. It runs on the control loop.
func (e *Engine) describe(g *group) api.Group {
	var st mcast.GroupStatus
	e.worker.do(func() { e.worker.sw.Snapshot(g.id, &st) })
	a := api.Group{
		IP: g.reg.Group, QPN: uint32(g.reg.QPN), PMTU: g.reg.PMTU, Epoch: g.reg.Epoch,
		Policy: policyName(g.reg.Policy), Origin: "api", State: "idle",
		Counters: api.Counters{DataIn: st.Counters.DataIn, Copies: st.Counters.Copies,
			FeedbackIn: st.Counters.FeedbackIn, FeedbackOut: st.Counters.FeedbackOut},
	}
	if g.reg.Master.IsValid() {
		a.Origin, a.Master = "envelope", g.reg.Master.String()
		a.LeaseLeft = e.control.leaseLeft(g.reg.Group).Seconds()
	}
	if st.HasSource {
		a.State = "running"
		a.AckPSN, a.NextPSN = uint32(st.Acked), uint32(st.Next)
	}
	if st.Failed {
		a.State = "failed"
	}
	for i := range st.Members {
		m, r := &st.Members[i], &g.reg.Members[i]
		am := api.Member{
			IP: r.IP, QPN: uint32(r.QPN), Role: "receiver", Live: m.Live, Window: r.Window.Len > 0,
			Pending: pendingName(m.Pending), AckPSN: uint32(m.Acked), Lag: int(m.Lag), VLAN: g.places[i].VLAN,
		}
		if pi := e.worker.portOf(g.places[i].Ifindex); pi >= 0 {
			am.Port, am.MAC = e.ports[pi].name, g.places[i].MAC.String()
			am.VLAN = cmp.Or(am.VLAN, e.ports[pi].vlan)
		}
		if m.Source {
			am.Role = "source"
			a.Source = r.IP
		}
		if m.Holds && !a.HeldBy.IsValid() {
			a.HeldBy = r.IP
		}
		a.Members = append(a.Members, am)
	}
	return a
}

// pendingName names a NAK that waits to be sent.
func pendingName(s rocev2.Syndrome) string {
	switch s.Kind() {
	case rocev2.KindSequence:
		return "sequence"
	case rocev2.KindRNR:
		return "rnr"
	case rocev2.KindFatal:
		return fmt.Sprintf("fatal 0x%02x", uint8(s))
	}
	return ""
}

func policyName(p mcast.Policy) string {
	if p == mcast.Evict {
		return "evict"
	}
	return "strict"
}
