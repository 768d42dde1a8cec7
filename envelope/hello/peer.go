// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hello

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"
)

// peer returns the sender of m, which is entered if it is new.
func (l *Link) peer(now time.Duration, m *Message) (*peer, Drop) {
	for _, p := range l.peers {
		if p.Speaker == m.Speaker {
			if m.Seq <= p.seq {
				return nil, Replayed
			}
			return p, NoDrop
		}
	}
	if len(l.peers) == MaxNeighbours && !l.forget() {
		return nil, TooMany
	}
	p := &peer{Neighbour: Neighbour{Speaker: m.Speaker}, challenge: l.draw()}
	l.peers = append(l.peers, p)
	l.hurry(now)
	return p, NoDrop
}

// forget removes the peer that is not proved and expires first. Hellos of former lives may
// be replayed to fill the list; none of them proves itself.
func (l *Link) forget() bool {
	first := -1
	for i, p := range l.peers {
		if !p.proved && (first < 0 || p.deadline < l.peers[first].deadline) {
			first = i
		}
	}
	if first >= 0 {
		l.peers = slices.Delete(l.peers, first, first+1)
	}
	return first >= 0
}

// believe draws conclusions from what p says that it hears. Its echo of the challenge
// proves that it has sent this hello after the challenge was drawn, and that it hears
// this switch.
func (l *Link) believe(now time.Duration, p *peer, m *Message) {
	var of Heard
	for _, h := range m.Neighbour {
		if h.Speaker == l.config.Speaker {
			of = h
		}
	}
	if of.Challenge != p.echo {
		p.echo = of.Challenge
		l.hurry(now)
	}
	switch echoes := of.Echo == p.challenge; {
	case echoes && !p.proved:
		p.proved, p.oneWay = true, false
		if !p.former {
			l.retire(p)
		}
		l.hurry(now)
	case !echoes && p.proved:
		p.proved, p.oneWay = false, true
		l.hurry(now)
	}
	if p.proved {
		p.Session = session(Heard{l.config.Speaker, p.challenge, 0}, Heard{p.Speaker, p.echo, 0})
	}
}

// session returns the number of the adjacency of two speakers by the challenges that each
// has drawn for the other, in either order.
func session(a, b Heard) uint64 {
	if a.ID > b.ID {
		a, b = b, a
	}
	h := sha256.New()
	h.Write([]byte(sessionLabel))
	for _, x := range [...]uint64{uint64(a.ID), a.Incarnation, a.Challenge, uint64(b.ID), b.Incarnation, b.Challenge} {
		h.Write(binary.BigEndian.AppendUint64(nil, x))
	}
	return max(1, binary.BigEndian.Uint64(h.Sum(nil)))
}

// sessionLabel begins what a session's number is the hash of.
const sessionLabel = "gleam: session of switches\x00"

// retire takes the proof from former lives of a switch that has proved a new one. One that
// proves itself again, by a new challenge, lives at the same time: two switches have the same
// ID. Under the former challenge, a hello could prove it that was held back on its way.
func (l *Link) retire(p *peer) {
	for _, o := range l.peers {
		if o.ID == p.ID && o != p {
			o.proved, o.former, o.challenge = false, true, l.draw()
		}
	}
}

// decide sets the state of the adjacency by the peers, and reports a change.
func (l *Link) decide(now time.Duration, out *Output) {
	state, reason, peer := l.judge()
	if peer != nil && peer.spent {
		l.renew(now, peer)
		state, reason, peer = l.judge()
	}
	var best Neighbour
	if peer != nil {
		best = peer.Neighbour
	}
	if state == l.state && reason == l.reason && best == l.best {
		return
	}
	if l.state == Up && (state != Up || best.Speaker != l.best.Speaker) {
		l.spend()
	}
	if l.state == Up && state == Up && best.Session != l.best.Session {
		why := Renewed
		if best.Speaker != l.best.Speaker {
			why = Restarted
		}
		out.Events = append(out.Events, Event{Down, why, l.best})
	}
	told := best
	if state != Up {
		told = l.best
	}
	l.state, l.reason, l.best = state, reason, best
	out.Events = append(out.Events, Event{state, reason, told})
}

// spend marks the challenge of the adjacency that ends.
func (l *Link) spend() {
	for _, p := range l.peers {
		if p.Speaker == l.best.Speaker {
			p.spent = true
		}
	}
}

// renew has p prove itself by a new challenge. The neighbour may not have noticed that the
// adjacency has ended here: the next one would have the number of the last one.
func (l *Link) renew(now time.Duration, p *peer) {
	p.proved, p.spent, p.challenge, p.Session = false, false, l.draw(), 0
	l.hurry(now)
}

// judge returns the state of the adjacency, and the peer that it is with if it is Up.
func (l *Link) judge() (State, Reason, *peer) {
	if !l.up {
		return Down, LinkDown, nil
	}
	state, reason := Down, Silent
	var best *peer
	for _, p := range l.peers {
		switch {
		case p.proved && best != nil:
			return Down, TwoNeighbours, nil
		case p.proved:
			best = p
		case p.oneWay:
			state, reason = Init, OneWay
		case state == Down:
			state, reason = Init, NotProved
		}
	}
	if best != nil {
		return Up, NoReason, best
	}
	return state, reason, nil
}
