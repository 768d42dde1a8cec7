// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"math"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

func TestConfigRefused(t *testing.T) {
	for want, c := range map[string]Config{
		"no interface given":    {},
		"personality 8":         {Interface: "x", Personality: 8},
		"VLAN 4095 priority 0":  {Interface: "x", VLAN: &VLAN{ID: 4095}},
		"VLAN 1 priority 8":     {Interface: "x", VLAN: &VLAN{ID: 1, PCP: 8}},
		"loss 1":                {Interface: "x", Loss: 1},
		"loss -0.1":             {Interface: "x", Loss: -0.1},
		"loss NaN":              {Interface: "x", Loss: math.NaN()},
		"window of -1 packets":  {Interface: "x", MaxUnacked: -1},
		"want neither below 0":  {Interface: "x", ReceiveBuffer: -1},
		`open soft device on "`: {Interface: "no-such-interface"},
	} {
		if _, err := Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", c, err, want)
		}
	}
}

func TestPathMTUFor(t *testing.T) {
	for _, c := range []struct{ mtu, want int }{
		{1500, 1024}, {2200, 2048}, {4200, 4096}, {9000, 4096}, {4096 + maxHeaders, 4096},
		{4095 + maxHeaders, 2048}, {256 + maxHeaders, 256}, {255 + maxHeaders, 0},
	} {
		if got := pathMTUFor(c.mtu); got != c.want {
			t.Errorf("MTU %d: path MTU %d, want %d", c.mtu, got, c.want)
		}
	}
}

// TestSourcePort has values of Linux's 0xC000 + hash_32(qpn, 14), computed with
// GOLDEN_RATIO_32 0x61C88647 by hand.
func TestSourcePort(t *testing.T) {
	// 0x11 * 0x61C88647 = 0x67E50EAB7 -> low 32 bits 0x7E50EAB7, upper 14: 0x1F94
	if got := sourcePort(0x11); got != 0xC000+0x1F94 {
		t.Errorf("source port of QP 0x11 is 0x%x", got)
	}
	// 1 * 0x61C88647 -> upper 14 bits: 0x1872
	if got := sourcePort(1); got != 0xC000+0x1872 {
		t.Errorf("source port of QP 1 is 0x%x", got)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	l := labtest.New(t)
	a, err := l.Namespace("a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Namespace("b")
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Veth(lab.End{NS: a, Name: "eth0"}, lab.End{NS: b, Name: "eth0"}, 0); err != nil {
		t.Fatal(err)
	}
	if err := lab.Veth(lab.End{NS: a, Name: "small"}, lab.End{NS: b, Name: "small"}, 300); err != nil {
		t.Fatal(err)
	}
	if err := lab.Veth(lab.End{NS: a, Name: "down"}, lab.End{NS: b, Name: "down"}, 0); err != nil {
		t.Fatal(err)
	}
	if err := a.SetDown("down"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"eth0": "it has no IP address", "small": "its MTU of 300 bytes has no room", "down": "it is down: ip link set down up",
		"lo": "", "gone": "not found",
	} {
		err := a.Do(func() error { _, err := Open(Config{Interface: name}); return err })
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("open %s: %v, want %q", name, err, want)
		}
	}
}

func TestEveryStatusOfTheMachineIsTranslated(t *testing.T) {
	seen := make(map[endpoint.Status]rc.Status)
	for s := rc.Success; !strings.HasPrefix(s.String(), "Status("); s++ {
		e, ok := statuses[s]
		if o, twice := seen[e]; !ok || twice {
			t.Errorf("%v becomes %v (%v), as does %v", s, e, ok, o)
		}
		seen[e] = s
	}
	if len(seen) != len(statuses) {
		t.Errorf("%d statuses translated, the machine has %d", len(statuses), len(seen))
	}
}
