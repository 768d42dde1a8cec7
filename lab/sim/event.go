// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Time is a simulated time in picoseconds.
type Time = topology.Time

// event is the arrival of a packet at a node, or a timer of a node. It has no pointers, so
// that millions of them cost the garbage collector nothing.
//
// at, in and key are its place in the order of events. Two packets never arrive at the same
// port at the same time, and the timers of a node differ in key: the order is the same
// whatever the order was in which events were made.
type event struct {
	at      Time
	key     uint64 // a number by kind: of a message's last packet: Flow.Key; of the first one of a WRITE: its length; of a timer: what it is for; of a train: setTrain
	in      uint32 // the port of arrival; of a timer: a number beyond those of all ports
	src     uint32 // the host that a packet comes from; of feedback between switches: the source that it is for
	dst     uint32 // a number by kind
	psn     uint32 // opcode<<24 | PSN
	aux     uint32 // payload length; of feedback: syndrome<<24 | MSN
	channel uint16 // the channel of a connection between two hosts
	kind    eventKind
	flags   eventFlags
}

// eventKind is the kind of an event.
type eventKind uint8

const (
	unicast      eventKind = iota // a packet of a connection between two hosts; dst is a host
	toSwitch                      // a packet of a group, to a switch; dst is the group's number there
	toMember                      // a packet of a group, to a member; dst is the connection's number there
	report                        // a token message between switches; aux is its place in the pool, dst the group's number there
	flowTimer                     // the start of a flow; aux is its place in the pool
	receiveTimer                  // a receive is posted again; dst is the number of the connection
	connTimer                     // the deadline of a connection; dst is the connection's number
	nicTimer                      // a host's port is free
	coreTimer                     // the deadline of a switch's core
	pause                         // PFC: the port of arrival pauses if aux is 1, and goes on if it is 0
	portTimer                     // PFC: a port has sent a packet
	linkTimer                     // the link of port dst has failed if aux is 0, and is back if it is 1
	routesTimer                   // the routes after failure aux are there
	installTimer                  // a group's new tree comes to a switch; aux is its place in installs
)

type eventFlags uint8

const (
	ackReq  eventFlags = 1 << iota
	becn               // feedback: the source is to slow down
	ce                 // congestion was experienced
	corrupt            // the ICRC is wrong
	inTrain            // key has the packets that follow
)

func (e *event) opcode() rocev2.Opcode     { return rocev2.Opcode(e.psn >> 24) }
func (e *event) seq() rocev2.PSN           { return rocev2.PSN(e.psn) & rocev2.PSNMask }
func (e *event) syndrome() rocev2.Syndrome { return rocev2.Syndrome(e.aux >> 24) }
func (e *event) msn() rocev2.MSN           { return rocev2.MSN(e.aux) & rocev2.PSNMask }

// setSeq sets opcode and PSN.
func (e *event) setSeq(op rocev2.Opcode, psn rocev2.PSN) { e.psn = uint32(op)<<24 | uint32(psn) }

// setAck sets the fields of AETH.
func (e *event) setAck(s rocev2.Syndrome, m rocev2.MSN) { e.aux = uint32(s)<<24 | uint32(m) }

// isPacket reports whether an event is the arrival of a packet.
func (e *event) isPacket() bool { return e.kind <= report || e.kind == pause }

// isFeedback reports whether a packet is an ACK, a NAK or a CNP.
func (e *event) isFeedback() bool {
	op := e.opcode()
	return op == rocev2.Acknowledge || op == rocev2.CNP
}

// frameBytes is the length on a link of a packet without payload and extension headers: preamble
// and gap 20, Ethernet with FCS 18, IPv4 20, UDP 8, BTH 12, ICRC 4.
const frameBytes = 82

// reportBytes is the length on a link of a token message.
const reportBytes = 220

// pauseBytes is the length on a link of a PFC frame: the shortest Ethernet frame, preamble and gap.
const pauseBytes = 84

// wireBytes returns the length of a packet on a link.
func (e *event) wireBytes() int64 {
	switch {
	case e.kind == report:
		return reportBytes
	case e.kind == pause:
		return pauseBytes
	case e.opcode() == rocev2.Acknowledge:
		return frameBytes + rocev2.AETHLen
	case e.opcode() == rocev2.CNP:
		return frameBytes + int64(len(rocev2.CNPPayload))
	}
	return frameBytes + int64(e.opcode().ExtLen()) + (int64(e.aux)+3)&^3
}

// dmaLen returns the length of the message that a packet with a RETH begins.
func (e *event) dmaLen() uint32 {
	if e.opcode().Is(rocev2.OpFirst) {
		return uint32(e.key)
	}
	return e.aux
}

// mix is the finaliser of splitmix64.
func mix(z uint64) uint64 {
	z += 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
