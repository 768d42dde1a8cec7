// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Reports between switches: who may send in a group (docs/TREES.md). The core makes and
// takes them, at the worker that owns the group; they do not pass the control plane.

// reportLabel is covered by the MAC of a report, before the MAC addresses of sender and
// receiver and the report itself. The addresses keep a report from being sent back.
const reportLabel = "gleam: token between switches\x00"

// reportAuth authenticates a worker's reports by the keys of switches.
type reportAuth struct {
	keys    []hash.Hash // HMAC-SHA-256; the first one makes MACs, all are accepted
	message [token.MessageLen]byte
	sum     [sha256.Size]byte
	label   []byte
}

func newReportAuth(keys []config.SwitchKey) reportAuth {
	a := reportAuth{label: []byte(reportLabel)}
	for i := range keys {
		a.keys = append(a.keys, hmac.New(sha256.New, keys[i].Secret.Bytes()))
	}
	return a
}

// SetSwitchKeys replaces the keys of switches.
func (p *Plane) SetSwitchKeys(keys []config.SwitchKey) error {
	if !p.workers.do(func(w *worker) { w.reports = newReportAuth(keys) }) {
		return ErrStopped
	}
	return nil
}

// mac returns the MAC of a report without its own, by key k. It is good until the next
// call.
func (a *reportAuth) mac(k hash.Hash, from, to rocev2.MAC, report []byte) []byte {
	k.Reset()
	k.Write(a.label)
	k.Write(from[:])
	k.Write(to[:])
	k.Write(report)
	return k.Sum(a.sum[:0])
}

// verifies reports whether a report has the right MAC.
func (a *reportAuth) verifies(from, to rocev2.MAC, b []byte) bool {
	at := len(b) - token.MACLen
	for _, k := range a.keys {
		if hmac.Equal(a.mac(k, from, to, b[:at]), b[at:]) {
			return true
		}
	}
	return false
}

// isReport reports whether a datagram of a neighbour is a report.
func isReport(b []byte) bool { return len(b) == token.MessageLen && !envelope.IsRelay(b) }

// serveReport gives the core a report of neighbour n, which came by port pi.
func (w *worker) serveReport(pi int, n mcast.Neighbor) {
	f := &w.frame
	b := f.UDPPayload()
	if !w.reports.verifies(f.Eth().Src(), w.ports[pi].mac, b) {
		w.count.drop[dropBadReport]++
		return
	}
	m, err := token.ParseMessage(b)
	if err != nil || m.Group != f.Dst() {
		w.count.drop[dropBadReport]++
		return
	}
	id, ok := w.core.Lookup(m.Group)
	if !ok {
		w.count.core[mcast.UnknownGroup]++
		return
	}
	w.reportBefore(id)
	w.coreCalls++
	w.out.MaxResends = -1
	w.core.InputReport(w.now, id, n, &m, &w.out)
	if w.out.NeedRevoke {
		w.takeBack(w.fast.of(id), whyInput)
		w.coreCalls++
		w.core.InputReport(w.now, id, n, &m, &w.out)
	}
	if w.out.Drop != mcast.None {
		w.count.core[w.out.Drop]++
	}
	w.sendOwn()
}

// sendOwn sends what the core has had to say without a packet of the group.
func (w *worker) sendOwn() {
	w.sendFeedback(nil)
	w.retained.forgetDecoded()
	w.fast.refused = w.fast.refused[:0]
	for i := range w.out.Copies {
		w.copyRetained(&w.out.Copies[i])
	}
	w.retained.release(w.out.Freed, w.pool)
	w.obeyOrders(false)
}

// sendReport stages a report for a neighbour.
func (w *worker) sendReport(r *mcast.Report) {
	pi := w.portOf(r.Neighbor)
	if pi < 0 || len(w.reports.keys) == 0 {
		w.count.drop[dropNeighbourDown]++
		return
	}
	p := w.ports[pi]
	buf, ok := w.beginFrame(pi)
	if !ok {
		return
	}
	a := &w.reports
	b := r.Message.AppendBinary(a.message[:0])
	copy(b[len(b)-token.MACLen:], a.mac(a.keys[0], p.mac, p.neighbour.mac, b[:len(b)-token.MACLen]))
	w.endFrame(pi, w.buildRelay(buf, p, r.Message.Group, b))
}

// portOf returns the port of a neighbour that is up, or -1.
func (w *worker) portOf(n mcast.Neighbor) int {
	if pi, ok := w.neighbourPorts[n]; ok {
		return pi
	}
	return -1
}

// edgeSession returns the session of a group's edge to a neighbour: another one with each
// session of the neighbours, and with each layout of the tree, since an edge may be made anew with
// it at one end alone.
func edgeSession(session uint64, layout uint32) uint64 {
	x := session ^ uint64(layout)*0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	return max(1, x^x>>27)
}

// setSessions tells the core the present sessions with the neighbours of a group; those
// that it knows already change nothing.
func (w *worker) setSessions(id mcast.GroupID) {
	if !w.groups[id].forwards {
		return
	}
	w.reportFast(id)
	for i := range w.groups[id].legs {
		l := &w.groups[id].legs[i]
		if l.kind != mcast.Forwarded {
			continue
		}
		session := uint64(0)
		if p := w.ports[l.port]; l.isUp(p) {
			session = edgeSession(p.neighbour.session, w.groups[id].layout)
		}
		w.coreCalls++
		w.out.MaxResends = -1
		if err := w.core.SetSession(w.readClock(), id, l.neighbour, session, &w.out); err == nil {
			w.sendOwn()
		}
	}
}
