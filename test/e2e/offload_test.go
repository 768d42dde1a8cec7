// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
)

// TestEnvelopesOfHostsWithChecksumOffload leaves the hosts' interfaces as the kernel
// makes them: the envelopes of their UDP sockets reach the switch with unfinished
// checksums. Groups are registered all the same, and the switch logs it once for each
// port.
func TestEnvelopesOfHostsWithChecksumOffload(t *testing.T) {
	t.Run("IPv4", func(t *testing.T) { envelopesWithOffload(t, false) })
	t.Run("IPv6", func(t *testing.T) { envelopesWithOffload(t, true) })
}

func envelopesWithOffload(t *testing.T, v6 bool) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, v6: v6})
	for _, h := range r.hosts {
		if err := h.NS.SetFeature(h.Interface, lab.TXChecksum, true); err != nil {
			t.Fatal(err)
		}
	}
	groups := r.joinByMaster(nil)
	h, window := r.hosts[0], groups[0].Info().Window
	r.fill(0)
	if _, err := h.qp.PostSend(endpoint.SendWR{
		Op: endpoint.Write, Local: endpoint.Segment{MR: h.mr, Len: h.mr.Len()}, RemoteAddr: window.Base, RKey: window.RKey,
	}); err != nil {
		t.Fatal(err)
	}
	r.complete(h, 1)
	r.same(0)
	s := r.stats()
	if s.EnvelopePartial == 0 || s.EnvelopePartial > s.EnvelopeIn || s.Drops["bad_udp_checksum"] != 0 {
		t.Errorf("%d of %d envelopes with a partial checksum; drops %v", s.EnvelopePartial, s.EnvelopeIn, s.Drops)
	}
	for i := len(groups) - 1; i >= 0; i-- { // members send a Leave, the master deletes
		groups[i].Close()
	}
	until(t, "end of the group", func() bool { return r.said("group ended") })
	for _, h := range r.hosts {
		if n := r.saidOffload(h.Port); n != 1 {
			t.Errorf("said %d times of port %s, want once", n, h.Port)
		}
	}

	// Complete ones are not counted as partial.
	for _, h := range r.hosts {
		if err := h.NS.SetFeature(h.Interface, lab.TXChecksum, false); err != nil {
			t.Fatal(err)
		}
	}
	s = r.stats()
	second := r.another(r.group.Next(), 0, 1, 2)
	second.joinByMaster(nil)
	if now := r.stats(); now.EnvelopeIn <= s.EnvelopeIn || now.EnvelopePartial != s.EnvelopePartial {
		t.Errorf("the second group's envelopes: %d, of them %d with a partial checksum; want some, and none", now.EnvelopeIn-s.EnvelopeIn, now.EnvelopePartial-s.EnvelopePartial)
	}
}

// saidOffload returns how often the switch has logged that hosts behind a port leave
// checksums to their interfaces.
func (r *rig) saidOffload(port string) (n int) {
	r.notes.Lock()
	defer r.notes.Unlock()
	for _, l := range r.notes.lines {
		if strings.Contains(l, "checksum offload") && strings.Contains(l, "[port "+port+" ") {
			n++
		}
	}
	return n
}
