// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Attribute is the kind of a message, the attribute ID of its MAD (IBTA §16.7.2).
type Attribute uint16

// Messages of a connection.
const (
	ConnectRequest      Attribute = 0x10 // REQ
	MsgReceived         Attribute = 0x11 // MRA: wait
	ConnectReject       Attribute = 0x12 // REJ
	ConnectReply        Attribute = 0x13 // REP
	ReadyToUse          Attribute = 0x14 // RTU
	DisconnectRequest   Attribute = 0x15 // DREQ
	DisconnectReply     Attribute = 0x16 // DREP
	firstAttribute                = ConnectRequest
	lastAttribute                 = DisconnectReply
	attributesOfMessage           = lastAttribute - firstAttribute + 1
)

var attributeNames = [attributesOfMessage]string{"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP"}

// String returns IBTA's name of a.
func (a Attribute) String() string {
	if a >= firstAttribute && a <= lastAttribute {
		return attributeNames[a-firstAttribute]
	}
	return "unknown"
}

// CommID is a communication ID: the name that one end has given to a connection.
type CommID uint32

// GUID names a channel adapter.
type GUID uint64

func (g GUID) bytes() (b [8]byte) {
	binary.BigEndian.PutUint64(b[:], uint64(g))
	return b
}

// Message is a message of a connection. Of the bodies it has the one that Attribute names;
// RTU and DREP have none.
type Message struct {
	Attribute Attribute
	TID       uint64 // transaction: that of the REQ in all messages of an exchange
	LocalID   CommID // the sender's
	RemoteID  CommID // the receiver's; not in a REQ, 0 in a REJ of a connection without one
	Request   Request
	Reply     Reply
	Reject    Reject
	MRA       MRA
	DREQ      DREQ
	Data      []byte // private data, padded with zeros to the length that the kind has
}

// Request is the body of a REQ. Local and Remote are written as GIDs and as addresses of
// the program (annex A11): Linux makes both of one address.
type Request struct {
	ServiceID           uint64
	GUID                GUID
	QKey                uint32
	QPN                 rocev2.QPN
	ResponderResources  uint8
	InitiatorDepth      uint8
	RemoteTimeout       Timeout
	Service             TransportService
	FlowControl         bool
	PSN                 rocev2.PSN // the PSN that the answering side has to begin with
	LocalTimeout        Timeout
	RetryCount          uint8 // 3 bits
	PKey                uint16
	MTU                 uint8 // IBTA's code: 1 is 256 bytes, 5 is 4096
	RNRRetry            uint8 // 3 bits
	MaxRetries          uint8 // the most repetitions of REQ and REP, 4 bits
	SRQ                 bool
	LocalGID, RemoteGID netip.Addr // IPv4 addresses as such
	FlowLabel           uint32     // 20 bits
	TrafficClass        uint8
	HopLimit            uint8
	SubnetLocal         bool
	AckTimeout          Timeout
	SrcPort             uint16 // the port of the program
	Src, Dst            netip.Addr
}

// Reply is the body of a REP.
type Reply struct {
	QKey               uint32
	QPN                rocev2.QPN
	PSN                rocev2.PSN // the PSN that the asking side has to begin with
	ResponderResources uint8
	InitiatorDepth     uint8
	AckDelay           Timeout
	Failover           uint8 // 2 bits
	FlowControl        bool
	RNRRetry           uint8 // 3 bits
	SRQ                bool
	GUID               GUID
}

// Reject is the body of a REJ.
type Reject struct {
	Of     Rejected
	Reason RejectReason
	ARI    []byte // additional reject information, at most 72 bytes
}

// MRA is the body of an MRA.
type MRA struct {
	Of      Rejected
	Timeout Timeout
}

// DREQ is the body of a DREQ.
type DREQ struct {
	QPN rocev2.QPN // the receiver's
}

// TransportService is the type of the queue pairs.
type TransportService uint8

// rc is the only service that groups have.
const rc TransportService = 0

// Rejected is the message that a REJ or an MRA is about.
type Rejected uint8

// Messages that are rejected or delayed.
const (
	RejectedREQ   Rejected = 0
	RejectedREP   Rejected = 1
	RejectedOther Rejected = 2
)

// Timeout is a time of 4.096 us * 2^t, 5 bits. Linux takes it for 2^(t-8) ms.
type Timeout uint8

// Duration returns t as Linux counts it.
func (t Timeout) Duration() time.Duration {
	if t < 8 {
		return time.Millisecond
	}
	return time.Millisecond << (t - 8)
}

// servicePrefix begins the service IDs of type RDMA_PS_TCP (annex A11).
const servicePrefix = 0x01060000

// Port returns the port of r's service ID; ok is false if it is none of RDMA_PS_TCP.
func (r *Request) Port() (port uint16, ok bool) {
	return uint16(r.ServiceID), r.ServiceID&^0xFFFF == servicePrefix
}
