// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/docs"
	"github.com/gleam-rdma/gleam/rocev2"
)

// TestStatusTable checks that the table of docs/APPLICATIONS.md is that of the code, row by row.
func TestStatusTable(t *testing.T) {
	b, err := os.ReadFile("../../docs/APPLICATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, m := range Statuses {
		row := fmt.Sprintf("| %d | `%s` | %s | %s |\n", m.Code, m.Name, m.Cause, m.LookAt)
		if is := strings.Contains(string(b), row); is != m.Common {
			t.Errorf("docs/APPLICATIONS.md has this row: %v, want %v\n%s", is, m.Common, row)
		}
		if m.Common {
			rows++
		}
	}
	if n := len(regexp.MustCompile("(?m)^\\| \\d+ \\| `IBV_WC_").FindAll(b, -1)); n != rows {
		t.Errorf("docs/APPLICATIONS.md has %d statuses, the code %d of them", n, rows)
	}
}

// TestStatusesAreComplete checks that all codes of enum ibv_wc_status, and all errors and final events
// of gleam.h, have a meaning.
func TestStatusesAreComplete(t *testing.T) {
	for i, m := range Statuses {
		if m.Code != i {
			t.Errorf("%s has the code %d, and place %d", m.Name, m.Code, i)
		}
	}
	if len(Statuses) != 24 {
		t.Errorf("%d statuses", len(Statuses))
	}
	b, err := os.ReadFile("../../host/libgleam/gleam.h")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^ \*   -(E[A-Z]+) `).FindAllStringSubmatch(string(b), -1)
	names = append(names, []string{"", "GLEAM_EVICTED"}, []string{"", "GLEAM_FAILED"}, []string{"", "GLEAM_ENDED"})
	if len(names) < 7 {
		t.Fatalf("%d errors in gleam.h", len(names))
	}
	for _, n := range names {
		if _, err := meaningOf(n[1]); err != nil {
			t.Error(err)
		}
	}
	for _, m := range allMeanings() {
		if m.Cause == "" || m.LookAt == "" || m.Try == "" {
			t.Errorf("%s lacks a text: %+v", m.Name, m)
		}
		if got, err := meaningOf(m.Name); err != nil || got.Name != m.Name {
			t.Errorf("%s is found as %+v, %v", m.Name, got, err)
		}
	}
}

// TestSyndromes checks that each of the 256 syndromes has a meaning, and that rules in it exist.
func TestSyndromes(t *testing.T) {
	rules := docs.Rules()
	for s := range 256 {
		m := meaningOfSyndrome(rocev2.Syndrome(s))
		if m.Name == "" || m.Text == "" || (m.Status != 0) != (rocev2.Syndrome(s).Kind() == rocev2.KindFatal) {
			t.Errorf("syndrome 0x%02x: %+v", s, m)
		}
		for _, r := range regexp.MustCompile(`R\d+`).FindAllString(m.Text, -1) {
			if _, err := findRule(rules, r); err != nil {
				t.Errorf("syndrome 0x%02x: %v", s, err)
			}
		}
	}
}

// frameOf builds a frame of a member to a group.
func frameOf(t testing.TB, k *rocev2.Packet, payload int) []byte {
	t.Helper()
	path := rocev2.Path{Src: netip.MustParseAddr("10.77.0.1"), Dst: netip.MustParseAddr("10.77.254.1"), SrcMAC: rocev2.MAC{2}, DstMAC: rocev2.MAC{4}, SrcPort: 0xC001}
	b := make([]byte, 5000)
	n := rocev2.BuildPacket(b, &path, k, make([]byte, payload))
	if n == 0 {
		t.Fatal("no frame")
	}
	return b[:n]
}

// TestPacketsOfFrames reads packets from a capture and from hexadecimal digits.
func TestPacketsOfFrames(t *testing.T) {
	write := frameOf(t, &rocev2.Packet{Op: rocev2.WriteOnly, AckReq: true, DestQP: 0x4711, PSN: 0x10, VA: 0x1000, RKey: 7, DMALen: 64}, 64)
	nak := frameOf(t, &rocev2.Packet{Op: rocev2.Acknowledge, DestQP: 0x4711, PSN: 0x20, Syndrome: 0x60, MSN: 3}, 0)
	bad := bytes.Clone(write)
	bad[len(bad)-1]++
	file := filepath.Join(t.TempDir(), "x.pcap")
	if err := os.WriteFile(file, pcapOf(t, layers.LinkTypeEthernet, write, nak, bad), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags packetFlags
		want  string // a part of the query; "" for an error with the words below
		err   string
	}{
		{packetFlags{pcap: file, frame: 1}, "ack_req=true&dma_len=0x40&from=10.77.0.1&op=write-only&payload=0x40&psn=0x10&qpn=0x4711&rkey=0x7&va=0x1000", ""},
		{packetFlags{pcap: file, frame: 2, port: "p1"}, "from=10.77.0.1&msn=0x3&op=acknowledge&payload=0x0&port=p1&psn=0x20&qpn=0x4711&syndrome=0x60", ""},
		{packetFlags{pcap: file, frame: 3}, "ack_req=true&bad_icrc=true&dma_len=0x40&from=10.77.0.1&op=write-only&payload=0x40&psn=0x10&qpn=0x4711&rkey=0x7&va=0x1000", ""},
		{packetFlags{pcap: file, frame: 4}, "", "there is no frame 4: it has 3"},
		{packetFlags{pcap: file}, "ack_req=true&dma_len=0x40&from=10.77.0.1&op=write-only&payload=0x40&psn=0x10&qpn=0x4711&rkey=0x7&va=0x1000", ""},
		{packetFlags{pcap: file, frame: -1}, "", "numbered from 1"},
		{packetFlags{pcap: file, frame: 1, psn: "3"}, "", "a frame has all its fields"},
		{packetFlags{hex: fmt.Sprintf("%x", nak)}, "from=10.77.0.1&msn=0x3&op=acknowledge&payload=0x0&psn=0x20&qpn=0x4711&syndrome=0x60", ""},
		{packetFlags{hex: fmt.Sprintf("% X\n", nak)}, "from=10.77.0.1&msn=0x3&op=acknowledge&payload=0x0&psn=0x20&qpn=0x4711&syndrome=0x60", ""},
		{packetFlags{hex: "-"}, "from=10.77.0.1&msn=0x3&op=acknowledge&payload=0x0&psn=0x20&qpn=0x4711&syndrome=0x60", ""},
		{packetFlags{hex: strings.Repeat("00", maxHex)}, "", "more than"},
		{packetFlags{from: "10.77.0.1", op: "cnp", psn: "0x10", va: "1"}, "from=10.77.0.1&op=cnp&psn=0x10&va=0x1", ""},
	} {
		p, group, _, err := c.flags.packet(strings.NewReader(fmt.Sprintf("0x%x\n", nak)), netip.Addr{})
		if err != nil || c.err != "" {
			if err == nil || c.err == "" || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v: %v, want %q", c.flags, err, c.err)
			}
			continue
		}
		if got := p.Query().Encode(); got != c.want {
			t.Errorf("%+v:\n%s, want\n%s", c.flags, got, c.want)
		}
		if frame := c.flags.from == ""; frame != group.IsValid() {
			t.Errorf("%+v: group %v", c.flags, group)
		}
	}
}

// taken fails the test if the API does not take a packet of an input.
func taken(t *testing.T, p *api.ExplainPacket) {
	if _, err := api.ParseExplainPacket(p.Query()); err != nil && !strings.Contains(err.Error(), "payload") && !strings.Contains(err.Error(), "no opcode") {
		t.Fatalf("%+v: %v", p, err)
	}
}

// FuzzExplainInput reads hexadecimal digits and flags: what is accepted is a packet that the API
// takes.
func FuzzExplainInput(f *testing.F) {
	frame := frameOf(f, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: 0x4711, PSN: 5}, 64)
	f.Add(fmt.Sprintf("%x", frame), "10.77.0.1", "write-middle", "0x10", "0x60", "1024")
	f.Add("0", "fd00::1", "cnp", "-1", "", "")
	f.Fuzz(func(t *testing.T, digits, from, op, psn, syndrome, payload string) {
		if b, err := parseHex(digits, strings.NewReader(digits)); err == nil {
			if p, _, err := packetOfFrame(b, nil); err == nil {
				taken(t, p)
			}
		}
		if p, err := (&packetFlags{from: from, op: op, psn: psn, syndrome: syndrome, payload: payload}).fields(); err == nil {
			taken(t, p)
		}
	})
}

// TestWrap checks that texts are wrapped and indented.
func TestWrap(t *testing.T) {
	var b strings.Builder
	wrap(&b, "R18 R24 R27 R99", 4, strings.Repeat("word ", 30))
	for i, line := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
		if len(line) > textWidth || i > 0 && !strings.HasPrefix(line, "    word") || line != strings.TrimRight(line, " ") {
			t.Errorf("line %q", line)
		}
	}
}
