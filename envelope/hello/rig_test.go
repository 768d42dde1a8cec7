// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hello

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

func testKeys() envelope.Keys {
	k := func(b byte) []byte {
		key := make([]byte, envelope.MinKeyLen)
		key[0] = b
		return key
	}
	return envelope.Keys{1: k(1), 2: k(2)}
}

// speaker is switch n in its life i.
func speaker(n, i int) Speaker { return Speaker{SwitchID(n), uint64(1000*n + i)} }

func address(n int) Address {
	return Address{
		Port: uint32(n), MAC: rocev2.MAC{2, 0, 0, 0, 0, byte(n)}, IPv4: netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}),
		IPv6: netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 15: byte(n)}), MTU: uint32(1500 + n),
	}
}

// config is switch n in its life i.
func config(n, i int) Config {
	return Config{Speaker: speaker(n, i), Address: address(n), MaxVersion: 1, Keys: testKeys(), Send: 1, Seed: [32]byte{byte(n), byte(i)}}
}

func link(t testing.TB, now time.Duration, c Config) *Link {
	t.Helper()
	l, err := NewLink(now, c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// rig is a link of switch 9, with neighbours that are played by hand.
type rig struct {
	t    *testing.T
	l    *Link
	now  time.Duration
	out  Output
	seq  uint64
	last map[Speaker][]byte // hello of each
	own  []byte             // last hello of the link
}

func newRig(t *testing.T) *rig { return newSeededRig(t, 0) }

func newSeededRig(t *testing.T, seed byte) *rig {
	c := config(9, 1)
	c.Seed[31] = seed
	r := &rig{t: t, l: link(t, time.Hour, c), now: time.Hour, last: make(map[Speaker][]byte)}
	r.run(0)
	return r
}

// run lets time pass.
func (r *rig) run(d time.Duration) {
	for end := r.now + d; ; {
		at, ok := r.l.NextDeadline()
		if !ok || at > end {
			r.now = end
			return
		}
		r.now = max(r.now, at)
		r.l.Advance(r.now, &r.out)
		r.sent()
	}
}

func (r *rig) sent() {
	for _, p := range r.out.Packets {
		r.own = p
	}
}

// challenge is the number that the link has drawn for s, by its last hello.
func (r *rig) challenge(s Speaker) uint64 {
	r.t.Helper()
	r.run(30 * time.Millisecond) // less than it takes to send without a reason
	m, drop := Open(r.own, testKeys())
	if drop != NoDrop {
		r.t.Fatal(drop)
	}
	for _, h := range m.Neighbour {
		if h.Speaker == s {
			return h.Challenge
		}
	}
	r.t.Fatalf("%v is not among the neighbours %v", s, m.Neighbour)
	return 0
}

// hello is a hello of s, which lists this switch with that echo unless it is nil.
func (r *rig) hello(s Speaker, echo *uint64) []byte {
	r.t.Helper()
	r.seq++
	m := Message{
		KeyID: 1, MaxVersion: 3, Interval: DefaultInterval, Speaker: s, Address: address(int(s.ID)), Seq: r.seq,
	}
	if echo != nil {
		m.Neighbour = []Heard{{Speaker{77, 77}, 5, 6}, {speaker(9, 1), 1 + s.Incarnation, *echo}}
	}
	b, err := m.Append(nil, testKeys())
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// input gives the link a hello of s.
func (r *rig) input(s Speaker, b []byte) {
	r.last[s] = b
	r.l.Input(r.now, address(int(s.ID)).MAC, b, &r.out)
	r.sent()
}

func (r *rig) first(s Speaker) { r.input(s, r.hello(s, nil)) }

// echo gives the link a hello of s with the right echo.
func (r *rig) echo(s Speaker) {
	c := r.challenge(s)
	r.input(s, r.hello(s, &c))
}

// prove gives the link hellos of s until s is proved.
func (r *rig) prove(s Speaker) {
	r.first(s)
	r.echo(s)
}
