// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/rocev2"
)

// maxSources bounds the hosts with a stream to send.
const maxSources = 2

// frame is one packet of a source's stream, as it must arrive.
type frame struct {
	op      rocev2.Opcode
	payload []byte
	msg     int // message it belongs to
	off     int // offset of its payload in the message
	dmaLen  uint32
	end     bool
}

// stream is all data of one source: its work requests and their packets.
type stream struct {
	wrs    []rc.WR
	frames []frame
	starts []int // index of each message's first frame
	ends   []int // indices one above each message's last frame
}

// messagesIn returns how many messages end within the first n packets.
func (s *stream) messagesIn(n int) int {
	m := 0
	for m < len(s.ends) && s.ends[m] <= n {
		m++
	}
	return m
}

// startFrom returns the first packet, from n on, that begins a message.
func (s *stream) startFrom(n int) int {
	for _, at := range s.starts {
		if at >= n {
			return at
		}
	}
	return len(s.frames)
}

// newStream makes messages of the given numbers of packets. The last packet of a message
// is not full; the bytes of every packet are different.
func newStream(host int, messages []int, write bool) stream {
	var s stream
	for m, packets := range messages {
		data := make([]byte, (packets-1)*pmtu+10+m)
		wr := rc.WR{ID: uint64(m), Data: data, Signaled: true}
		if write {
			wr.Op, wr.RKey, wr.VA = rc.WRWrite, groupKey, groupVA+uint64(m)*4*pmtu
		}
		s.wrs = append(s.wrs, wr)
		s.starts = append(s.starts, len(s.frames))
		for i := range packets {
			part := data[i*pmtu : min((i+1)*pmtu, len(data))]
			for j := range part {
				part[j] = byte(0x40*host + len(s.frames) + 1 + j*7)
			}
			s.frames = append(s.frames, frame{
				op: opcode(i, packets, write), payload: part, msg: m, off: i * pmtu, dmaLen: uint32(len(data)), end: i == packets-1,
			})
		}
		s.ends = append(s.ends, len(s.frames))
	}
	return s
}

func opcode(i, packets int, write bool) rocev2.Opcode {
	op := rocev2.SendMiddle
	switch {
	case packets == 1:
		op = rocev2.SendOnly
	case i == 0:
		op = rocev2.SendFirst
	case i == packets-1:
		op = rocev2.SendLast
	}
	if write {
		op = map[rocev2.Opcode]rocev2.Opcode{
			rocev2.SendOnly: rocev2.WriteOnly, rocev2.SendFirst: rocev2.WriteFirst,
			rocev2.SendMiddle: rocev2.WriteMiddle, rocev2.SendLast: rocev2.WriteLast,
		}[op]
	}
	return op
}
