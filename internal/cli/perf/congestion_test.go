// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"strings"
	"testing"
)

// mbit is what a bandwidth takes of a link with path MTU 1024, in Mbit/s: 1024
// bytes of payload in a WRITE MIDDLE take 1106.
func mbit(b *Bandwidth) float64 { return b.Avg * (1 << 20) * 8 / 1e6 * 1106 / 1024 }

// TestDCQCN: a group with one receiver behind a slow port, which marks, settles at
// that port's rate without a loss.
func TestDCQCN(t *testing.T) {
	n := newNet4With(t, "    rate: 40mbit\n")
	s, rs := n.run(deadline(t), trial{test: WriteBW, send: n.group("-D", "3", "--dcqcn", "--rate", "200mbit", "-u", "18", "-o", "json")})
	r := ok(t, s, rs)
	z := r.Sizes[0]
	t.Logf("%.1f Mbit/s, %d CNPs, rate at the end %d, %d retransmitted", mbit(z.All.Bandwidth), z.CNPs, z.Rate, z.Retransmitted)
	if got := mbit(z.All.Bandwidth); got < 20 || got > 42 || z.CNPs == 0 || z.Rate <= 0 || z.Rate > 200e6 || z.Retransmitted > 0 {
		t.Errorf("%.1f Mbit/s through a port of 40: %+v", got, z)
	}
	if !r.Congestion || r.Rate != 200e6 {
		t.Errorf("%+v", r.Params)
	}
}

// TestRate: --rate is not exceeded, nor missed by more than a busy machine makes
// it; host/endpoint/soft has the exact test. And the table says so.
func TestRate(t *testing.T) {
	n := newNet4(t)
	s, rs := n.run(deadline(t), trial{test: SendBW, send: n.group("-D", "2", "--rate", "30mbit", "-u", "18", "-o", "json")})
	z := ok(t, s, rs).Sizes[0]
	t.Logf("%.1f Mbit/s, %d retransmitted", mbit(z.All.Bandwidth), z.Retransmitted)
	if got := mbit(z.All.Bandwidth); got < 20 || got > 31 || z.Rate != 30e6 || z.CNPs != 0 {
		t.Errorf("%.1f Mbit/s: %+v", got, z)
	}
	s, _ = n.run(deadline(t), trial{test: WriteBW, send: n.group("-n", "100", "--dcqcn"), receivers: 1})
	if out := s.stdout.String(); !strings.Contains(out, " Congestion      : DCQCN\n") || !strings.Contains(out, " CNPs            : 0\n Final rate      : 1000.0 Mbit/s\n") {
		t.Errorf("%s%s", out, s.stderr.String())
	}
}
