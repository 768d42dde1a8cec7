// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// Each PSN goes to all groups, one after the other, a sink counts it once for each, and a receiver acknowledges each
// group by itself. A generator that was stopped between two groups goes on with the next PSN.
func TestGenerateGroups(t *testing.T) {
	labtest.Enter(t)
	sinks, err := newSinks(2)
	if err != nil {
		t.Fatal(err)
	}
	defer sinks.Close()
	var groups []groupFrames
	for k := range 2 {
		to, from := *path, *back
		to.Dst, from.Dst = groupAt(k), groupAt(k)
		data, err := benchCase{payload: 64}.dataFrame(&to, 0)
		if err != nil {
			t.Fatal(err)
		}
		ack, err := buildAck(&from, 0)
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, groupFrames{data: data, acks: [][]byte{ack}, acked: []rocev2.PSN{999}})
	}
	lo := generatorPort{in: func(f func() error) error { return f() }, ifindex: 1}
	g, err := newLiveGenerator(generatorConfig{groups: groups, out: []generatorPort{lo, lo}, arrived: sinks.arrived, cpu: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	h := &harness{g, sinks}
	for i, want := range []struct {
		psn   rocev2.PSN
		group int
	}{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}} {
		_, out := h.step(t)
		var f rocev2.Frame
		if r := rocev2.Decode(out, &f); r != rocev2.OK || !f.VerifyICRC() || f.BTH().PSN() != want.psn || f.Dst() != groupAt(want.group) {
			t.Fatalf("frame %d: %v, PSN %d to %v; want %+v", i, r, f.BTH().PSN(), f.Dst(), want)
		}
	}
	if next, err := h.next(); err != nil || next != 3 {
		t.Errorf("it goes on with PSN %d, %v; want 3", next, err)
	}
	if _, out := h.step(t); !bytes.Equal(out[50:54], []byte{0, 0, 0, 3}) {
		t.Errorf("it went on with %x", out[50:54])
	}

	if err := sinks.load(1, benchCase{payload: 64}.frameLen(), expectedFrame{mac: path.DstMAC, dst: groupIP, qpn: memberQPN + 1}, true); err != nil {
		t.Fatal(err)
	}
	for _, qpn := range []rocev2.QPN{memberQPN + 1, memberQPN + 1 + groupQPNs, memberQPN + 2, memberQPN + 1 + 2*groupQPNs} {
		frame, err := build(path, &rocev2.Packet{Op: dataOp, DestQP: qpn, PSN: 7}, make([]byte, 64))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, _, err := sinks.programs[0].Test(frame); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, err := sinks.counts(1); err != nil || got != (seenValue{Good: 2, Again: 2, Wrong: 4}) {
		t.Errorf("counted %+v, %v; want 2 good, 2 again, 4 wrong", got, err)
	}

	h.set(t, func(c *controlValue) { c.Interval, c.Due, c.Left, c.AckEvery, c.Jump = 1<<62, 1<<62, 0, 1, 100 })
	for k := range 2 {
		if err := sinks.setLast(sinkIndex(1, k), lastValue{PSN: uint32(1000 + k)}); err != nil {
			t.Fatal(err)
		}
	}
	acked := make(map[netip.Addr]rocev2.PSN)
	for range 12 {
		if v, out := h.step(t); v == xdpRedirect {
			var f rocev2.Frame
			if r := rocev2.Decode(out, &f); r != rocev2.OK || !f.VerifyICRC() {
				t.Fatalf("%v: %x", r, out)
			}
			acked[f.Dst()] = f.BTH().PSN()
		}
	}
	if len(acked) != 2 || acked[groupAt(0)] != 1000 || acked[groupAt(1)] != 1001 {
		t.Errorf("acknowledged %v; want 1000 and 1001", acked)
	}
}
