// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import "fmt"

// A packet that is longer than a frame of the Umem is a chain: several
// descriptors, one after the other in the ring, of which all but the last have
// PktContd set. Only a socket opened with Config.MultiBuffer has any.

// MaxChain is the largest number of buffers of one packet. In copy mode it is what fits
// an skb: one buffer in the linear part and 17 in pages (CONFIG_MAX_SKB_FRAGS is at least
// that); the kernel would leak the frames of a longer packet. In zero-copy mode a driver
// may support fewer, which it reports as xdp-zc-max-segs (netlink family netdev).
//
// A frame for an MTU of 9000 takes 3 buffers of 4 KiB or 6 of 2 KiB.
const MaxChain = 18

// Torn in Desc.Options marks a buffer of a packet that cannot be returned whole. The
// packet's beginning and end are unknown, so such a buffer can only be freed. The kernel
// does not use this bit.
const Torn = 1 << 31

// ChainLen returns how many of the first descriptors in d make up one packet. d holds
// whole packets, as Receive returns them, and is not empty.
func ChainLen(d []Desc) int {
	n := 1
	for d[n-1].Options&PktContd != 0 {
		n++
	}
	return n
}

// receiveChains is Receive for sockets that may receive chains.
func (s *Socket) receiveChains(d []Desc) int {
	n := min(len(d), s.rx.available(len(d)))
	longest := min(MaxChain, len(d), len(s.rx.entries))
	whole := 0 // d[:whole] holds whole packets
	for i := range n {
		p := s.rx.get(i)
		more := p.Options&PktContd != 0
		switch {
		case s.dropChain:
			p.Options = Torn
			s.dropChain = more
			whole = i + 1
		case !more:
			whole = i + 1
		case i+1-whole == longest:
			for k := whole; k < i; k++ {
				d[k].Options = Torn
			}
			p.Options = Torn
			s.dropChain = true
			whole = i + 1
		}
		d[i] = p
	}
	if whole == 0 {
		s.wakeFill()
		return 0
	}
	for i := range whole {
		s.umem.Move(d[i].Addr, s.id, OwnedByWorker)
	}
	s.rx.release(whole)
	return whole
}

// sendChains is Send for sockets that may send chains.
func (s *Socket) sendChains(d []Desc) int {
	if last := len(d) - 1; last >= 0 && d[last].Options&PktContd != 0 {
		panic(fmt.Sprintf("xsk: cannot send %d buffers that end in the middle of a packet", len(d)))
	}
	n := min(len(d), s.tx.room(len(d)), len(s.completion.entries)-s.inFlight)
	for n > 0 && d[n-1].Options&PktContd != 0 {
		n--
	}
	if n <= 0 {
		return 0
	}
	length := 0 // buffers of the current packet so far
	for i, p := range d[:n] {
		least := uint32(1)
		if length == 0 {
			least = minFrame
		}
		length++
		if p.Len < least || int(p.Len) > s.umem.Room(p.Addr) || p.Options&^PktContd != 0 || length > MaxChain {
			badDesc(p)
		}
		if p.Options == 0 {
			length = 0
		}
		s.umem.Move(p.Addr, OwnedByWorker, s.id)
		s.tx.put(i, p)
	}
	s.tx.publish(n)
	s.inFlight += n
	return n
}
