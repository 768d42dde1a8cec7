// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"encoding/binary"
	"net/netip"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Header of a MAD (IBTA §13.4.2).
//
//	0 base version  1 class  2 class version  3 method  4 status(16)  6 class specific(16)
//	8 TID(64)  16 attribute(16)  18 reserved(16)  20 modifier(32)  24 message
const (
	headerLen    = 24
	baseVersion  = 1
	classCM      = 7
	classVersion = 2
	methodSend   = 3
)

// Offsets of private data in the message, by attribute, and of what else several functions
// use.
var dataAt = [attributesOfMessage]int{
	ConnectRequest - firstAttribute: 176, MsgReceived - firstAttribute: 10, ConnectReject - firstAttribute: 84, ConnectReply - firstAttribute: 36,
	ReadyToUse - firstAttribute: 8, DisconnectRequest - firstAttribute: 12, DisconnectReply - firstAttribute: 8,
}

// Bounds of a REJ's additional information.
const (
	ariAt  = 12
	ariMax = 72
)

// Decode reads a MAD. m.Data and m.Reject.ARI refer to b. If the MAD is refused, m is the
// zero Message.
func Decode(b []byte, m *Message) Drop {
	*m = Message{}
	d := m.decode(b)
	if d != OK {
		*m = Message{}
	}
	return d
}

func (m *Message) decode(b []byte) Drop {
	switch {
	case len(b) != rocev2.MADLen:
		return BadLength
	case b[0] != baseVersion || b[1] != classCM || b[2] != classVersion:
		return BadClass
	case b[3] != methodSend || b[4]|b[5] != 0:
		return BadMethod
	}
	m.TID = binary.BigEndian.Uint64(b[8:])
	m.Attribute = Attribute(binary.BigEndian.Uint16(b[16:]))
	if m.Attribute < firstAttribute || m.Attribute > lastAttribute {
		return UnknownAttribute
	}
	b = b[headerLen:]
	m.LocalID = CommID(binary.BigEndian.Uint32(b))
	m.Data = b[dataAt[m.Attribute-firstAttribute]:]
	if m.Attribute == ConnectRequest {
		return m.Request.decode(b)
	}
	m.RemoteID = CommID(binary.BigEndian.Uint32(b[4:]))
	switch m.Attribute {
	case ConnectReply:
		m.Reply.decode(b)
	case ConnectReject:
		return m.Reject.decode(b)
	case MsgReceived:
		m.MRA = MRA{Rejected(b[8] >> 6), Timeout(b[9] >> 3)}
		if m.MRA.Of > RejectedOther {
			return BadField
		}
	case DisconnectRequest:
		m.DREQ.QPN = rocev2.QPN(uint24(b[8:]))
	}
	return OK
}

// decode reads the message of a REQ:
//
//	0 local ID  5 ECE vendor(24)  8 service ID(64)  16 GUID(64)  28 Q_Key  32 QPN(24)  35 responder resources
//	36 EECN(24)  39 initiator depth  43 remote timeout(5)|service(2)|flow control  44 PSN(24)
//	47 local timeout(5)|retry count(3)  48 P_Key  50 MTU(4)|RDC|RNR retry(3)  51 max retries(4)|SRQ|..
//	52 LIDs  56 local GID  72 remote GID  88 flow label(20)|..|rate(6)  92 traffic class  93 hop limit
//	94 SL(4)|subnet local  95 ack timeout(5)  96 alternate path  140 RDMA-CM: version, IP version(4)
//	142 port  144 source  160 destination  176 private data
func (r *Request) decode(b []byte) Drop {
	*r = Request{
		ServiceID: binary.BigEndian.Uint64(b[8:]), GUID: GUID(binary.BigEndian.Uint64(b[16:])), QKey: binary.BigEndian.Uint32(b[28:]),
		QPN: rocev2.QPN(uint24(b[32:])), ResponderResources: b[35], InitiatorDepth: b[39],
		RemoteTimeout: Timeout(b[43] >> 3), Service: TransportService(b[43] >> 1 & 3), FlowControl: b[43]&1 != 0, PSN: rocev2.PSN(uint24(b[44:])),
		LocalTimeout: Timeout(b[47] >> 3), RetryCount: b[47] & 7, PKey: binary.BigEndian.Uint16(b[48:]),
		MTU: b[50] >> 4, RNRRetry: b[50] & 7, MaxRetries: b[51] >> 4, SRQ: b[51]&8 != 0,
		LocalGID: netip.AddrFrom16([16]byte(b[56:72])).Unmap(), RemoteGID: netip.AddrFrom16([16]byte(b[72:88])).Unmap(),
		FlowLabel: binary.BigEndian.Uint32(b[88:]) >> 12, TrafficClass: b[92], HopLimit: b[93], SubnetLocal: b[94]&8 != 0, AckTimeout: Timeout(b[95] >> 3),
		SrcPort: binary.BigEndian.Uint16(b[142:]),
	}
	if b[140] != 0 || !ipOf(b[141]>>4, b[144:160], &r.Src) || !ipOf(b[141]>>4, b[160:176], &r.Dst) || r.LocalGID.Is4() != r.Src.Is4() || r.RemoteGID.Is4() != r.Src.Is4() {
		return BadAddress
	}
	if r.QPN < 2 || r.MTU < 1 || r.MTU > 5 {
		return BadField
	}
	return OK
}

// ipOf reads an address of RDMA-CM: of IPv4 it is the last 4 of 16 bytes, and the others are 0.
func ipOf(version uint8, b []byte, a *netip.Addr) bool {
	switch version {
	case 4:
		*a = netip.AddrFrom4([4]byte(b[12:16]))
		return binary.BigEndian.Uint64(b)|uint64(binary.BigEndian.Uint32(b[8:])) == 0
	case 6:
		*a = netip.AddrFrom16([16]byte(b))
		return !a.Is4In6()
	}
	return false
}

// decode reads the message of a REP:
//
//	8 Q_Key  12 QPN(24)  16 EECN  20 PSN(24)  24 responder resources  25 initiator depth
//	26 ack delay(5)|failover(2)|flow control  27 RNR retry(3)|SRQ  28 GUID(64)  36 private data
func (r *Reply) decode(b []byte) {
	*r = Reply{
		QKey: binary.BigEndian.Uint32(b[8:]), QPN: rocev2.QPN(uint24(b[12:])), PSN: rocev2.PSN(uint24(b[20:])),
		ResponderResources: b[24], InitiatorDepth: b[25],
		AckDelay: Timeout(b[26] >> 3), Failover: b[26] >> 1 & 3, FlowControl: b[26]&1 != 0, RNRRetry: b[27] >> 5, SRQ: b[27]&0x10 != 0,
		GUID: GUID(binary.BigEndian.Uint64(b[28:])),
	}
}

// decode reads the message of a REJ:
//
//	8 message(2)  9 length(7)  10 reason(16)  12 additional information  84 private data
func (r *Reject) decode(b []byte) Drop {
	n := int(b[9] >> 1)
	if n > ariMax || b[8]>>6 > uint8(RejectedOther) {
		return BadField
	}
	*r = Reject{Of: Rejected(b[8] >> 6), Reason: RejectReason(binary.BigEndian.Uint16(b[10:])), ARI: b[ariAt : ariAt+n]}
	return OK
}

func uint24(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }
