// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Offsets in an untagged IPv4 frame.
const (
	offIP  = 14
	offUDP = 34
	offBTH = 42
)

// hostile is a frame that must change nothing but one counter.
type hostile struct {
	name    string
	from    int // the host that sends it
	frame   []byte
	counter string // a reason of Stats
	xdp     string // a name of the port's XDP counters, in the place of counter
	answer  rocev2.Syndrome
}

// forger makes hostile frames for a group whose source is host 0.
type forger struct {
	r     *rig
	ports []rocev2.MAC
}

func newForger(r *rig) *forger {
	r.t.Helper()
	f := &forger{r: r}
	for _, p := range r.ports() {
		var m rocev2.MAC
		if _, err := fmt.Sscanf(p.MAC, "%02x:%02x:%02x:%02x:%02x:%02x", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5]); err != nil {
			r.t.Fatal(err)
		}
		f.ports = append(f.ports, m)
	}
	return f
}

func (f *forger) path(from int) rocev2.Path {
	h := f.r.hosts[from]
	return rocev2.Path{SrcMAC: rocev2.MAC(h.MAC), DstMAC: f.ports[from], Src: h.ip, Dst: f.r.group, SrcPort: 0xC123}
}

// packet builds a RoCEv2 packet of host from, with n bytes of payload.
func (f *forger) packet(from int, k rocev2.Packet, n int, change ...func(*rocev2.Path)) []byte {
	p := f.path(from)
	for _, c := range change {
		c(&p)
	}
	if k.DestQP == 0 {
		k.DestQP = virtualQPN
	}
	b := make([]byte, 4096)
	n = rocev2.BuildPacket(b, &p, &k, bytes.Repeat([]byte{0xEE}, n))
	if n == 0 {
		f.r.t.Fatalf("no such packet: %+v", k)
	}
	return b[:n]
}

// write is a WRITE_ONLY of host from at psn, as the group would take it.
func (f *forger) write(from int, psn rocev2.PSN, change ...func(*rocev2.Path)) []byte {
	return f.packet(from, rocev2.Packet{
		Op: rocev2.WriteOnly, AckReq: true, PSN: psn, VA: groupBase, RKey: groupRKey, DMALen: 64,
	}, 64, change...)
}

// ack is an acknowledgement of host from for psn of the source's space.
func (f *forger) ack(from int, psn rocev2.PSN, s rocev2.Syndrome, change ...func(*rocev2.Path)) []byte {
	d := psn.Sub(f.r.hosts[0].qp.Info().SQPSN)
	own := f.r.hosts[from].qp.Info().RQPSN.Add(d)
	return f.packet(from, rocev2.Packet{Op: rocev2.Acknowledge, PSN: own, Syndrome: s}, 0, change...)
}

func (f *forger) envelope(from int, payload []byte) []byte {
	p := f.path(from)
	b := make([]byte, 4096)
	return b[:rocev2.BuildUDP(b, &p, envelope.DefaultPort, payload)]
}

func damaged(b []byte, change func([]byte)) []byte { b = bytes.Clone(b); change(b); return b }

// lastByte spoils the ICRC.
func lastByte(b []byte) { b[len(b)-1] ^= 1 }

// ipLen writes another IPv4 total length, with a right checksum.
func ipLen(n int) func([]byte) {
	return func(b []byte) {
		binary.BigEndian.PutUint16(b[offIP+2:], uint16(n))
		rocev2.IPv4(b[offIP : offIP+20]).UpdateChecksum()
	}
}

// malformed lists IPv4 frames with wrong headers.
func (f *forger) malformed(psn rocev2.PSN) []hostile {
	good := f.write(0, psn)
	three := slices.Concat(good[:12], bytes.Repeat([]byte{0x81, 0, 0, 7}, 3), good[12:])
	fix := func(change func([]byte)) []byte {
		return damaged(good, func(b []byte) { change(b); rocev2.IPv4(b[offIP : offIP+20]).UpdateChecksum() })
	}
	return []hostile{
		{name: "only an Ethernet header and some", frame: good[:offIP+10], xdp: "pass_truncated"},
		{name: "IHL 4", frame: damaged(good, func(b []byte) { b[offIP] = 0x44 }), xdp: "pass_truncated"},
		{name: "ends inside UDP", frame: good[:offUDP+4], xdp: "drop_group_truncated"},
		{name: "fragment", frame: fix(func(b []byte) { b[offIP+6] = 0x20 }), xdp: "drop_group_fragment"},
		{name: "three tags", frame: three, xdp: "pass_vlan_depth"},
		{name: "not UDP", frame: fix(func(b []byte) { b[offIP+9] = 6 }), xdp: "pass_group_other"},
		{name: "other UDP port", frame: damaged(good, func(b []byte) { b[offUDP+3]++ }), xdp: "pass_group_other"},
		{name: "ends inside BTH", frame: good[:offBTH+6], counter: "decode_truncated"},
		{name: "last byte missing", frame: good[:len(good)-1], counter: "decode_truncated"},
		{name: "IP length lies upwards", frame: damaged(good, ipLen(len(good)-offIP+4)), counter: "decode_truncated"},
		{name: "IP length lies downwards", frame: damaged(good, ipLen(len(good)-offIP-4)), counter: "decode_bad_udp_length"},
		{name: "IP length 65535", frame: damaged(good, ipLen(0xFFFF)), counter: "decode_truncated"},
		{name: "IP length below its header", frame: damaged(good, ipLen(19)), counter: "decode_bad_ip_header"},
		{name: "UDP length lies", frame: damaged(good, func(b []byte) { b[offUDP+5]++ }), counter: "decode_bad_udp_length"},
		{name: "IPv4 checksum", frame: damaged(good, func(b []byte) { b[offIP+8]-- }), counter: "decode_ip_checksum"},
		{name: "opcode 0x15", frame: damaged(good, func(b []byte) { b[offBTH] = 0x15 }), counter: "decode_unknown_opcode"},
		{name: "opcode of UD", frame: damaged(good, func(b []byte) { b[offBTH] = 0x64 }), counter: "decode_unknown_opcode"},
		{name: "transport version 1", frame: damaged(good, func(b []byte) { b[offBTH+1] |= 1 }), counter: "decode_bad_tver"},
		{name: "pad beyond the payload", frame: damaged(f.packet(0, rocev2.Packet{Op: rocev2.SendOnly, PSN: psn}, 0), func(b []byte) { b[offBTH+1] |= 0x10 }), counter: "decode_bad_pad"},
		{name: "ACK with payload", frame: damaged(good, func(b []byte) { b[offBTH] = 0x11 }), counter: "decode_bad_bth_length"},
	}
}

// impostors lists packets that are well formed and not to be believed. psn is
// the next that the source will use.
func (f *forger) impostors(psn rocev2.PSN) []hostile {
	stranger, noGroup := netip.MustParseAddr("10.77.0.99"), netip.MustParseAddr("10.77.254.9")
	if f.r.c.v6 {
		stranger, noGroup = netip.MustParseAddr("fd77::99"), netip.MustParseAddr("fd77::6c65:9")
	}
	as := func(a netip.Addr) func(*rocev2.Path) { return func(p *rocev2.Path) { p.Src = a } }
	to := func(a netip.Addr) func(*rocev2.Path) { return func(p *rocev2.Path) { p.Dst = a } }
	data := func(k rocev2.Packet, n int) []byte { k.PSN = psn; return f.packet(0, k, n) }
	read := rocev2.Packet{Op: rocev2.ReadRequest, VA: groupBase, RKey: groupRKey, DMALen: 64}
	outside := rocev2.Packet{Op: rocev2.WriteOnly, VA: groupBase + uint64(f.r.c.memory) - 32, RKey: groupRKey, DMALen: 64}
	wrongKey := rocev2.Packet{Op: rocev2.WriteOnly, VA: groupBase, RKey: groupRKey + 1, DMALen: 64}
	second := f.r.hosts[1].qp.Info().SQPSN
	const invalid, access = rocev2.SyndromeNAKInvalid, rocev2.SyndromeNAKAccess
	return []hostile{
		{name: "unknown group", frame: f.write(0, psn, to(noGroup)), counter: "unknown_group"},
		{name: "wrong QPN", frame: f.packet(0, rocev2.Packet{Op: rocev2.SendOnly, PSN: psn, DestQP: virtualQPN + 1}, 8), counter: "wrong_qpn"},
		{name: "wrong QPN in an ACK", from: 1, frame: f.packet(1, rocev2.Packet{Op: rocev2.Acknowledge, DestQP: 1, Syndrome: rocev2.SyndromeACK}, 0), counter: "wrong_qpn"},
		{name: "data of a stranger", from: 2, frame: f.write(2, psn, as(stranger)), counter: "not_member"},
		{name: "ACK of a stranger", from: 1, frame: f.ack(1, psn.Prev(), rocev2.SyndromeACK, as(stranger)), counter: "not_member"},
		{name: "NAK of a stranger", from: 1, frame: f.ack(1, psn, access, as(stranger)), counter: "not_member"},
		// From host 2's wire, under the address of another one, and its MAC too.
		{name: "ACK for another host", from: 2, frame: f.ack(1, psn.Prev(), rocev2.SyndromeACK), counter: "source_guard"},
		{name: "fatal NAK for another host", from: 2, frame: f.ack(1, psn.Prev(), access), counter: "source_guard"},
		{name: "data for the source", from: 2, frame: f.write(0, psn), counter: "source_guard"},
		{name: "data for a member", from: 2, frame: f.write(1, second), counter: "source_guard"},
		{name: "ACK from another MAC", from: 1, frame: f.ack(1, psn.Prev(), rocev2.SyndromeACK, func(p *rocev2.Path) { p.SrcMAC[5]++ }), counter: "source_guard"},
		{name: "ACK of the source", frame: f.ack(0, psn.Prev(), rocev2.SyndromeACK), counter: "from_source"},
		{name: "ACK above hi with bad ICRC", from: 1, frame: damaged(f.ack(1, psn, rocev2.SyndromeACK), lastByte), counter: "bad_icrc"}, // a right one ends the member: R54
		{name: "fatal NAK above hi", from: 1, frame: f.ack(1, psn, access), counter: "feedback_ahead"},
		{name: "stale ACK", from: 1, frame: f.ack(1, psn.Add(-20), rocev2.SyndromeACK), counter: "feedback_stale"},
		{name: "stale fatal NAK", from: 1, frame: f.ack(1, psn.Add(-20), access), counter: "feedback_stale"},
		{name: "ACK of an other age", from: 1, frame: f.ack(1, psn.Add(-(1<<22)-9), rocev2.SyndromeACK), counter: "psn_out_of_range"},
		{name: "ACK with bad ICRC", from: 1, frame: damaged(f.ack(1, psn.Prev(), rocev2.SyndromeACK), lastByte), counter: "bad_icrc"},
		{name: "fatal NAK with bad ICRC", from: 1, frame: damaged(f.ack(1, psn.Prev(), access), lastByte), counter: "bad_icrc"},
		{name: "reserved syndrome 0x40", from: 1, frame: f.ack(1, psn.Prev(), 0x40), counter: "reserved_syndrome"},
		{name: "reserved syndrome 0x65", from: 1, frame: f.ack(1, psn.Prev(), 0x65), counter: "reserved_syndrome"},
		{name: "READ response", from: 1, frame: f.packet(1, rocev2.Packet{Op: rocev2.ReadRespOnly, PSN: psn, Syndrome: rocev2.SyndromeACK}, 64), counter: "response_to_group"},
		{name: "ATOMIC response", from: 1, frame: f.packet(1, rocev2.Packet{Op: rocev2.AtomicAck, PSN: psn, Syndrome: rocev2.SyndromeACK}, 8), counter: "response_to_group"},
		{name: "another source begins with bad ICRC", from: 1, frame: damaged(f.write(1, second), lastByte), counter: "bad_icrc"},
		{name: "READ with bad ICRC", frame: damaged(data(read, 0), lastByte), counter: "bad_icrc"},
		{name: "WRITE outside of the window with bad ICRC", frame: damaged(data(outside, 64), lastByte), counter: "bad_icrc"},
		// Only the source's own QP gets the answers; it has sent no such PSN and
		// does not mind. What it sends next takes the refusals back.
		{name: "READ", frame: data(read, 0), counter: "not_multicastable", answer: invalid},
		{name: "ATOMIC", frame: data(rocev2.Packet{Op: rocev2.FetchAdd, VA: groupBase, RKey: groupRKey}, 0), counter: "not_multicastable", answer: invalid},
		{name: "FLUSH", frame: data(rocev2.Packet{Op: rocev2.Flush, VA: groupBase, RKey: groupRKey}, 0), counter: "not_multicastable", answer: invalid},
		{name: "WRITE outside of the window", frame: data(outside, 64), counter: "window_violation", answer: access},
		{name: "WRITE with another R_Key", frame: data(wrongKey, 64), counter: "window_violation", answer: access},
		{name: "payload beyond the path MTU", frame: data(rocev2.Packet{Op: rocev2.SendOnly}, f.r.c.pathMTU+4), counter: "bad_length", answer: invalid},
		{name: "short SEND_FIRST", frame: data(rocev2.Packet{Op: rocev2.SendFirst}, 8), counter: "bad_length", answer: invalid},
		{name: "old data", frame: f.packet(0, rocev2.Packet{Op: rocev2.SendOnly, PSN: psn.Add(-(1 << 22) - 9)}, 8), counter: "psn_out_of_range"}, // the last: R68
	}
}

// envelopes lists what the control plane must not believe.
func (f *forger) envelopes() []hostile {
	h := f.r.hosts[1]
	message := func(group netip.Addr) *envelope.Message {
		return &envelope.Message{Header: envelope.Header{
			Epoch: 1 << 60, Transaction: 1, Total: 1, Group: group, ReplyTo: netip.AddrPortFrom(h.ip, envelope.DefaultPort),
		}, Body: &envelope.Delete{}}
	}
	sealed := func(keys envelope.Keys, id envelope.KeyID, m *envelope.Message) []byte {
		b, err := envelope.Append(nil, m, keys, id)
		if err != nil {
			f.r.t.Fatal(err)
		}
		return b
	}
	ours := testAuth().Keys
	good := sealed(ours, 1, message(f.r.group))
	wrong := envelope.Keys{1: bytes.Repeat([]byte{9}, 32), 2: bytes.Repeat([]byte{9}, 32)}
	liar := message(f.r.group)
	liar.ReplyTo = netip.AddrPortFrom(f.r.hosts[2].ip, envelope.DefaultPort)
	list := []hostile{
		{name: "empty", frame: f.envelope(1, nil), counter: "envelope_truncated"},
		{name: "cut", frame: f.envelope(1, good[:len(good)-40]), counter: "envelope_truncated"},
		{name: "no envelope at all", frame: f.envelope(1, bytes.Repeat([]byte("gleam"), 20)), counter: "envelope_bad_magic"},
		{name: "version 9", frame: f.envelope(1, damaged(good, func(b []byte) { b[4] = 9 })), counter: "envelope_bad_version"},
		{name: "unknown type", frame: f.envelope(1, damaged(good, func(b []byte) { b[5] = 77 })), counter: "envelope_bad_format"},
		{name: "not authenticated", frame: f.envelope(1, sealed(nil, 0, message(f.r.group))), counter: "envelope_unauthenticated"},
		{name: "key nobody knows", frame: f.envelope(1, sealed(wrong, 2, message(f.r.group))), counter: "envelope_unknown_key"},
		{name: "wrong key", frame: f.envelope(1, sealed(wrong, 1, message(f.r.group))), counter: "envelope_bad_mac"},
		{name: "changed on its way", frame: f.envelope(1, damaged(good, func(b []byte) { b[20] ^= 1 })), counter: "envelope_bad_mac"},
		{name: "answer to another host", frame: f.envelope(1, sealed(ours, 1, liar)), counter: "envelope_wrong_source"},
		{name: "of another life of the switch", frame: f.envelope(1, good), counter: "envelope_wrong_instance"},
		{name: "UDP checksum", frame: damaged(f.envelope(1, good), lastByte), counter: "bad_udp_checksum"},
	}
	for i := range list {
		list[i].from = 1
	}
	return list
}

// solicitation is one for the group's address with a wrong checksum.
func (f *forger) solicitation() hostile {
	p := f.path(0)
	b := make([]byte, 128)
	n := rocev2.BuildNeighborSolicitation(b, &p, f.r.group)
	return hostile{name: "solicitation with a wrong checksum", frame: damaged(b[:n], lastByte), counter: "decode_icmpv6_checksum"}
}

// drops returns the switch's drop counters.
// drops returns how many packets were not served, by reason, normal ones included.
func (r *rig) drops() map[string]uint64 {
	s := r.stats()
	maps.Copy(s.Drops, s.Normal)
	return s.Drops
}

// TestHostilePackets puts frames on the wire that must not do anything: each
// moves its own counter by one and no other, no receiver's memory changes, and
// transfers before, during and after are right.
func TestHostilePackets(t *testing.T) {
	t.Run("IPv4", func(t *testing.T) { hostilePackets(t, rigConfig{star: lab.StarConfig{Hosts: 3}}) })
	t.Run("IPv6", func(t *testing.T) { hostilePackets(t, rigConfig{star: lab.StarConfig{Hosts: 3}, v6: true}) })
}

func hostilePackets(t *testing.T, c rigConfig) {
	r := newRig(t, c)
	r.join()
	want := bytes.Clone(r.fill(0))
	r.write(0, 20_000)
	r.same(0)
	taps := []*tap{newTap(t, r.star.Hosts[0]), newTap(t, r.star.Hosts[1]), newTap(t, r.star.Hosts[2])}
	f := newForger(r)
	psn := r.quiet()

	all := append(f.impostors(psn), f.envelopes()...)
	if r.c.v6 {
		all = append(all, f.solicitation())
	} else {
		all = append(all, f.malformed(psn)...)
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) { r.refuse(t, taps, c, psn) })
	}
	r.unchanged(want)
	if g, err := r.engine.Group(r.group); err != nil || g.State != "running" || g.Source != r.hosts[0].ip || rocev2.PSN(g.NextPSN) != psn {
		t.Fatalf("the group is not as it was: %+v, %v", g, err)
	}

	// And all of them again while data flows.
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				// An answered one is the source's own fault. Feedback that was ahead of the
				// data is the member's word once the data has come so far. Old data has the
				// source not served for a while.
				if c := all[i%len(all)]; c.answer == 0 && c.counter != "feedback_ahead" && c.name != "old data" {
					taps[c.from].send(c.frame)
				}
				time.Sleep(50 * time.Microsecond)
			}
		}
	})
	for range 3 {
		r.fill(0)
		r.write(0, 20_000)
	}
	close(stop)
	wg.Wait()
	r.same(0)
}

// refuse sends c and waits for its counter.
func (r *rig) refuse(t *testing.T, taps []*tap, c hostile, psn rocev2.PSN) {
	t.Helper()
	own, before, portBefore := unreachables(t, r.star.Hosts[c.from]), r.drops(), r.ports()[c.from].XDP
	taps[c.from].send(c.frame)
	if c.xdp != "" {
		until(t, c.xdp, func() bool { return r.ports()[c.from].XDP[c.xdp] > portBefore[c.xdp] })
		n := r.ports()[c.from].XDP[c.xdp] - portBefore[c.xdp]
		if own = unreachables(t, r.star.Hosts[c.from]) - own; n < 1 || n > 1+own {
			t.Errorf("%s moved by %d, %d of them by what the host's kernel said of ports that are closed there", c.xdp, n, own)
		}
	} else {
		until(t, c.counter, func() bool { return r.drops()[c.counter] > before[c.counter] })
		before[c.counter]++
	}
	if after := r.drops(); !maps.Equal(before, after) {
		t.Errorf("drops are %v, want %v", after, before)
	}
	if c.answer == 0 {
		return
	}
	h := r.hosts[0]
	taps[0].expect(fmt.Sprintf("NAK 0x%02x", uint8(c.answer)), func(f *captured) bool {
		return f.Kind == rocev2.KindRoCE && f.Op == rocev2.Acknowledge && f.Src() == r.group && f.Dst() == h.ip &&
			f.AETH().Syndrome() == c.answer && f.BTH().PSN() == psn && f.BTH().DestQP() == h.qp.Info().QPN && f.VerifyICRC()
	})
}

// unreachables returns how often a host's kernel has answered an envelope to a port that is closed by now. The answer
// goes to the group.
func unreachables(t *testing.T, h lab.Host) (n uint64) {
	t.Helper()
	err := h.NS.Do(func() error {
		b, err := os.ReadFile("/proc/thread-self/net/snmp")
		m := regexp.MustCompile(`Icmp: (.*)\nIcmp: (.*)\n`).FindStringSubmatch(string(b))
		if err != nil || m == nil {
			return fmt.Errorf("no counters of ICMP: %w", err)
		}
		i := slices.Index(strings.Fields(m[1]), "OutDestUnreachs")
		n, err = strconv.ParseUint(strings.Fields(m[2])[i], 10, 64)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// quiet waits until all that host 0 sent is acknowledged by all, and returns
// the next PSN.
func (r *rig) quiet() (next rocev2.PSN) {
	r.t.Helper()
	until(r.t, "quiet", func() bool {
		g, err := r.engine.Group(r.group)
		if err != nil {
			r.t.Fatal(err)
		}
		next = rocev2.PSN(g.NextPSN)
		return rocev2.PSN(g.AckPSN).Next() == next
	})
	return next
}

// unchanged checks that every host but 0 has these bytes, after all that the
// switch has sent so far has reached it.
func (r *rig) unchanged(want []byte) {
	r.t.Helper()
	for _, h := range r.hosts[1:] {
		h.dev.Stats() // passes through the device's loop, behind what it has received
		if !bytes.Equal(h.mr.Bytes(), want) {
			r.t.Errorf("the memory of %s has changed", h.Name)
		}
	}
}
