// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab/fabric"
)

const sample = `
switches: [l1, l2, s1]
hosts: [h1, h2]
links:
  - {a: l1, b: s1, mtu: 4200, loss: 0.5%, rate: 1gbit, delay: 100us}
  - {a: l2, b: s1, loss: 0.25}
  - {a: l1, b: h1}
  - {a: h2, b: l2}
`

func TestParse(t *testing.T) {
	got, err := fabric.Parse([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	want := &fabric.Topology{Switches: []string{"l1", "l2", "s1"}, Hosts: []string{"h1", "h2"}, Links: []fabric.Link{
		{A: "l1", B: "s1", MTU: 4200, Loss: 0.005, Rate: 1e9, Delay: 100 * time.Microsecond},
		{A: "l2", B: "s1", Loss: 0.25}, {A: "l1", B: "h1"}, {A: "h2", B: "l2"},
	}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestParseErrors changes one place of the sample each.
// TestParseByteOrderMark: a file that an editor has saved with a byte order mark, or with line ends of Windows, is the same
// network.
func TestParseByteOrderMark(t *testing.T) {
	want, err := fabric.Parse([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"\ufeff" + sample, "\ufeff" + strings.ReplaceAll(sample, "\n", "\r\n")} {
		if got, err := fabric.Parse([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%.20q: %+v, %v", text, got, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ name, old, new, want string }{
		{"unknown key", "mtu: 4200", "mut: 4200", "mut"},
		{"no YAML", "hosts: [h1, h2]", "hosts: [h1", "topology"},
		{"loss of a word", "loss: 0.25", "loss: much", `loss "much"`},
		{"loss of all", "loss: 0.25", "loss: 100%", "loss 1; want at least 0 and less than 1"},
		{"negative loss", "loss: 0.25", "loss: -1%", "want at least 0"},
		{"loss is no number", "loss: 0.25", "loss: nan", "want at least 0"},
		{"rate", "rate: 1gbit", "rate: fast", `rate "fast"`},
		{"rate too low", "rate: 1gbit", "rate: 1bit", "rate"},
		{"delay", "delay: 100us", "delay: 100", `delay "100"`},
		{"negative delay", "delay: 100us", "delay: -1s", "delay -1s"},
		{"long delay", "delay: 100us", "delay: 11s", "delay 11s"},
		{"small mtu", "mtu: 4200", "mtu: 1279", "mtu 1279"},
		{"large mtu", "mtu: 4200", "mtu: 65536", "mtu 65536"},
		{"unknown node", "b: h1", "b: h3", `no node "h3"`},
		{"itself", "a: l2, b: s1", "a: s1, b: s1", "with itself"},
		{"two hosts", "a: l1, b: h1", "a: h2, b: h1", "joins two hosts"},
		{"twice", "a: l2, b: s1", "a: s1, b: l1", "is there twice"},
		{"host without link", "  - {a: l1, b: h1}\n", "", "host h1 has 0 links"},
		{"host with two links", "  - {a: l1, b: h1}\n", "  - {a: l1, b: h1}\n  - {a: l2, b: h1}\n", "host h1 has 2 links"},
		{"node twice", "hosts: [h1, h2]", "hosts: [h1, h2, l1]", "node l1 is there twice"},
		{"long name", "s1]", "a234567890123]", "a234567890123"},
		{"capital", "s1]", "S1]", "S1"},
		{"reserved", "hosts: [h1, h2]", "hosts: [h1, h2, br0]", "br0"},
		{"shell", "s1]", "'s1;reboot']", "reboot"},
		{"not connected", "l2, s1]", "l2, s1, x]", "no way from switch l1 to switch x"},
		{"over a host", "  - {a: l2, b: s1, loss: 0.25}\n", "", "no way from switch l1 to switch l2"},
		{"no switch", sample[1:], "hosts: []", "0 nodes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(sample, tt.old, tt.new, 1)
			if text == sample {
				t.Fatal("nothing changed")
			}
			if _, err := fabric.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("switches: [a]"))
	f.Add([]byte("switches: !x 1")) // a panic of the YAML library
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := fabric.Parse(text)
		if err != nil {
			return
		}
		if err := got.Validate(); err != nil {
			t.Errorf("an accepted topology is not valid: %v", err)
		}
		for _, n := range slices.Concat(got.Switches, got.Hosts) {
			if strings.Trim(n, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || len(n) > 12 {
				t.Errorf("node %q accepted", n)
			}
		}
	})
}

func TestShapes(t *testing.T) {
	tree, err := fabric.FatTree(4)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name                   string
		t                      *fabric.Topology
		switches, hosts, links int
		sample                 []fabric.Link
	}{
		{"leaf-spine", fabric.LeafSpine(4, 2, 3), 6, 12, 4*2 + 12, []fabric.Link{{A: "l1", B: "s2"}, {A: "l4", B: "h12"}}},
		{"fat-tree", tree, 20, 16, 16 + 16 + 16, []fabric.Link{{A: "a1-1", B: "c2"}, {A: "a4-2", B: "c3"}, {A: "e4-2", B: "a4-1"}, {A: "e4-2", B: "h16"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.t.Validate(); err != nil {
				t.Error(err)
			}
			if len(tt.t.Switches) != tt.switches || len(tt.t.Hosts) != tt.hosts || len(tt.t.Links) != tt.links {
				t.Errorf("%d switches, %d hosts, %d links", len(tt.t.Switches), len(tt.t.Hosts), len(tt.t.Links))
			}
			ports := make(map[string]int)
			for _, l := range tt.t.Links {
				ports[l.A]++
				ports[l.B]++
			}
			for _, s := range tt.t.Switches {
				if tt.name == "fat-tree" && ports[s] != 4 {
					t.Errorf("%s has %d ports", s, ports[s])
				}
			}
			for _, l := range tt.sample {
				if !slices.Contains(tt.t.Links, l) {
					t.Errorf("no link %v", l)
				}
			}
		})
	}
	for _, k := range []int{-2, 0, 1, 3, 18} {
		if _, err := fabric.FatTree(k); err == nil {
			t.Errorf("fat-tree with %d ports accepted", k)
		}
	}
}
