// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// ACKs that the programs count (fast_ack.h; R113). They do while the group's words are open.

// Layout of the words of fast_ack.h.
const (
	ackOn          = 1 << 24
	ackIncarnation = 25 // 14 bits
	ackCount       = 39 // 25 bits
	ackCountMask   = ACKCountMask
)

// ACKCountMask is that of ACKWord.Count.
const ACKCountMask = 1<<25 - 1

// ACKSpec is the group's ACK to its source. The zero value is none: the programs count no ACKs.
type ACKSpec struct {
	Port       int // index of the source's port
	PortMAC    rocev2.MAC
	QPN        rocev2.QPN // the source's
	SourcePort uint16     // UDP
}

// ACKWord is the word of a leg, or of the ACK to the source.
type ACKWord struct {
	PSN   rocev2.PSN // everything up to here is acknowledged; in the source's space
	Count uint32     // times that it was raised, modulo 2^25
}

func ackWordOf(word uint64) ACKWord {
	return ACKWord{PSN: rocev2.PSN(word & psnMask), Count: uint32(word >> ackCount & ackCountMask)}
}

func (g *Group) acks() *ackState { return &g.maps.acks[g.index] }

// setACK sets the group's ACK to its source. The words are closed.
func (g *Group) setACK(s *GroupSpec) error {
	x, a := g.acks(), &s.ACK
	closeWord(&x.sent)
	if a.QPN == 0 {
		return nil
	}
	if a.Port < 0 || a.Port >= g.maps.config.Ports {
		return fmt.Errorf("port %d of the source: there are ports 0 to %d", a.Port, g.maps.config.Ports-1)
	}
	if err := g.maps.setPort(a.Port, uint32(s.Source.Ifindex)); err != nil {
		return fmt.Errorf("the source: %w", err)
	}
	copy(x.eth[:6], s.Source.MAC[:])
	copy(x.eth[6:], a.PortMAC[:])
	clear(x.addresses[:])
	copy(x.addresses[copy(x.addresses[:], s.IP.AsSlice()):], s.Source.IP.AsSlice())
	x.sourcePort, x.qpn, x.port = bits.ReverseBytes16(a.SourcePort), bits.ReverseBytes32(uint32(a.QPN)), uint32(a.Port)
	x.first, x.count = uint32(g.firstLeg), uint32(len(s.Legs))
	var value [8]byte
	binary.NativeEndian.PutUint32(value[:], uint32(s.Source.Ifindex))
	binary.NativeEndian.PutUint32(value[4:], uint32(g.maps.egress.FD()))
	if err := g.maps.maps[fastMapFastSources].Put(x.port, value); err != nil {
		return fmt.Errorf("add port %d (interface %d) of the source: %w", a.Port, s.Source.Ifindex, err)
	}
	return nil
}

// closeWord ends what programs do with a word.
func closeWord(x *atomic.Uint64) { x.And(^uint64(ackOn)) }

// openWord has programs raise a word from psn on. It counts one more, so that it is none that was there before.
func (g *Group) openWord(word uint64, psn rocev2.PSN) uint64 {
	return (word>>ackCount+1)<<ackCount | g.incarnation<<ackIncarnation | ackOn | uint64(psn&psnMask)
}

// OpenACKs has the programs count ACKs: the legs, in the order of GroupSpec.Legs, have acknowledged
// everything up to acked, and the source has an ACK of sent. from is the first PSN of the grant,
// before which there were messages of the source. An ACK to the source is the worker's where the limit is
// not room packets behind it.
// The words that it has stored are reused by the next call.
func (g *Group) OpenACKs(acked []rocev2.PSN, sent, from rocev2.PSN, messages rocev2.MSN, room int) (legs []ACKWord, answered ACKWord) {
	x := g.acks()
	x.from, x.messages, x.room = uint32(from), uint32(messages), uint32(room)
	word := g.openWord(x.sent.Load(), sent)
	x.sent.Store(word)
	g.opened = g.opened[:0]
	for i, psn := range acked {
		w := &g.gate(i).acked
		is := g.openWord(w.Load(), psn)
		w.Store(is)
		g.opened = append(g.opened, ackWordOf(is))
	}
	return g.opened, ackWordOf(word)
}

// CloseACKs has the programs count no more ACKs. A program that is late finds a word closed.
func (g *Group) CloseACKs() {
	closeWord(&g.acks().sent)
	for i := range g.legs {
		closeWord(&g.gate(i).acked)
	}
}

// OpenLimit has the programs move the limit with what all legs have acknowledged, up to ceiling. Their words are open.
func (g *Group) OpenLimit(ceiling rocev2.PSN) {
	x, a := &g.state().limit, g.acks()
	a.reach, a.step = uint32(g.slots-LimitMargin(g.slots)), uint32(g.slots/16)
	g.SetCeiling(ceiling)
	word := x.Load()
	x.Store(limitAt(word, rocev2.PSN(word&psnMask)) | limitMoves)
}

// LimitMargin returns how many packets that all receivers have acknowledged stay in a ring of slots packets,
// the last one of them among these, when the programs move the limit.
func LimitMargin(slots int) int { return slots / 8 }

// SetCeiling sets the PSN beyond which the programs do not move the limit. It only grows while they do.
func (g *Group) SetCeiling(psn rocev2.PSN) { g.acks().ceiling.Store(uint32(psn & psnMask)) }

// CloseLimit has the programs move the limit no more, and returns it. A program that is late finds another word.
func (g *Group) CloseLimit() rocev2.PSN {
	x := &g.state().limit
	for {
		word := x.Load()
		psn := rocev2.PSN(word & psnMask)
		if x.CompareAndSwap(word, limitAt(word, psn)) {
			return psn
		}
	}
}

// Acked returns the word of a leg, and when it was raised last, on CLOCK_MONOTONIC; that may be the time of the
// ACK before, if another one has just come.
func (g *Group) Acked(leg int) (ACKWord, time.Duration) {
	x := g.gate(leg)
	word := x.acked.Load()
	return ackWordOf(word), time.Duration(x.ackedAt.Load())
}

// TakenACKs returns the number of ACKs of a leg that were not left to user space.
func (g *Group) TakenACKs(leg int) uint64 { return g.gate(leg).taken.Load() }

// CountsACKs reports whether the group's words are open.
func (g *Group) CountsACKs() bool {
	open := g.acks().sent.Load()&ackOn != 0
	for i := range g.legs {
		open = open || g.gate(i).acked.Load()&ackOn != 0
	}
	return open
}

// SentACK returns the word of the ACK to the source.
func (g *Group) SentACK() ACKWord { return ackWordOf(g.acks().sent.Load()) }
