// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/rocev2"

// maxEnds is how many message ends of the source are recorded between acked and nxt.
// rdma_rxe has at most 128 PSNs in flight (RXE_MAX_UNACKED_PSNS), so for it the count is
// exact.
const maxEnds = 128

// minEnds is the least size of a ring of message ends: one cache line.
const minEnds = 8

// messages counts the source's messages whose last PSN is acknowledged: the
// MSN of the group's ACK (R20). When more than maxEnds messages are in flight
// the youngest ones share an entry and are counted together, with the last of
// them: the MSN is then too low for a while. That is harmless with syndrome
// 0x1F, which makes the requester ignore credits, the only use of a MSN.
type messages struct {
	completed rocev2.MSN   // messages that end at or before acked
	first     uint16       // index in ends of the oldest entry
	count     uint16       // number of entries
	ends      []messageEnd // ring in PSN order; its length grows with the messages in flight, from minEnds to maxEnds
	spare     *pool[messageEnd]
}

type messageEnd struct {
	psn   rocev2.PSN
	count uint32 // messages that are complete when psn is acknowledged, at least 1
}

func (m *messages) at(i uint16) *messageEnd { return &m.ends[m.place(i)] }

func (m *messages) place(i uint16) uint16 { return (m.first + i) & uint16(len(m.ends)-1) }

// grow makes room for one more entry. There are fewer than maxEnds.
func (m *messages) grow() {
	if int(m.count) < len(m.ends) {
		return
	}
	ends := m.spare.get(max(minEnds, 2*len(m.ends)))
	for i := range m.count {
		ends[i] = *m.at(i)
	}
	m.spare.put(m.ends)
	m.ends, m.first = ends, 0
}

// reset begins a turn of a source that has completed done messages before.
func (m *messages) reset(done rocev2.MSN) { m.completed, m.first, m.count = done, 0, 0 }

// addEnd records that psn, the highest so far, ends a message.
func (m *messages) addEnd(psn rocev2.PSN) {
	if m.count < maxEnds {
		m.grow()
		*m.at(m.count) = messageEnd{psn, 1}
		m.count++
		return
	}
	e := m.at(m.count - 1)
	e.psn = psn
	e.count++
}

// correctEnd corrects the entry of a retransmitted psn: its first passage may have been
// lost before the switch, or have been a corrupted frame, which is forwarded unverified. It returns how
// many more messages it counts.
func (m *messages) correctEnd(psn rocev2.PSN, ends bool) (more int32) {
	i := uint16(0)
	for i < m.count && m.at(i).psn.Less(psn) {
		i++
	}
	found := i < m.count && m.at(i).psn == psn
	switch {
	case found && !ends && m.at(i).count == 1:
		for ; i+1 < m.count; i++ {
			*m.at(i) = *m.at(i + 1)
		}
		m.count--
		return -1
	case !found && ends && m.count < maxEnds && (i == m.count || m.at(i).count == 1):
		m.grow()
		for j := m.count; j > i; j-- {
			*m.at(j) = *m.at(j - 1)
		}
		*m.at(i) = messageEnd{psn, 1}
		m.count++
		return 1
	}
	return 0
}

// completedBy returns how many of the source's messages end at or before psn, which is
// not below acked. exact is false if some of them are counted together with later ones.
func (m *messages) completedBy(psn rocev2.PSN) (count rocev2.MSN, exact bool) {
	count, exact = m.completed, true
	for i := uint16(0); i < m.count; i++ {
		switch e := m.at(i); {
		case e.psn.LessEq(psn):
			count = count.Add(int32(e.count))
		case e.count > 1:
			return count, false
		}
	}
	return count, exact
}

// advance counts the messages that end at or before a.
func (m *messages) advance(a rocev2.PSN) {
	for m.count > 0 && m.at(0).psn.LessEq(a) {
		m.completed = m.completed.Add(int32(m.at(0).count))
		m.first = m.place(1)
		m.count--
	}
}

// last returns the MSN when all messages in flight are complete.
func (m *messages) last() rocev2.MSN {
	n := m.completed
	for i := range m.count {
		n = n.Add(int32(m.at(i).count))
	}
	return n
}
