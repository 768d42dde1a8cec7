// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"net/netip"
)

// Target messages. An application that writes to different memory each time names that
// memory to the switch, by a WRITE_ONLY with immediate that changes no receiver's memory:
// its R_Key is the group's target key, its address TargetMessageVA, and its payload these
// records. Receivers get a WRITE of no bytes in its place (docs/AGGREGATION.md, R41).
//
//	0  'G' 'T'  2 version (1)  3 IP family (4 or 6)
//	4  records: IP (4 or 16 bytes) | virtual address (8) | R_Key (4)
//
// All fields are in network byte order.

// TargetMessageVA is the virtual address of target messages.
const TargetMessageVA = ^uint64(0)

const (
	targetsHeader  = 4
	targetsVersion = 1
)

// TargetRecord is the start of one member's memory for the following WRITEs.
type TargetRecord struct {
	IP   netip.Addr
	VA   uint64
	RKey uint32
}

// targetLen is the length in bytes of a record.
func targetLen(v4 bool) int {
	if v4 {
		return 4 + 12
	}
	return 16 + 12
}

// MaxTargets returns the number of records that fit a target message of one packet. More
// members take more messages.
func MaxTargets(pathMTU int, v4 bool) int { return (pathMTU - targetsHeader) / targetLen(v4) }

// AppendTargets appends the payload of a target message to b. All addresses are of one
// family.
func AppendTargets(b []byte, records []TargetRecord) []byte {
	family := byte(6)
	if len(records) > 0 && records[0].IP.Is4() {
		family = 4
	}
	b = append(b, 'G', 'T', targetsVersion, family)
	for _, r := range records {
		b = append(b, r.IP.AsSlice()...)
		b = binary.BigEndian.AppendUint64(b, r.VA)
		b = binary.BigEndian.AppendUint32(b, r.RKey)
	}
	return b
}

// ParseTarget decodes the first record of the payload of a target message and returns the
// rest. The first call passes the whole payload with first set. ok is false at the end,
// or if the payload is malformed; rest is empty only at the end. It allocates nothing.
func ParseTarget(payload []byte, first bool, v4 bool) (r TargetRecord, rest []byte, ok bool) {
	if first {
		family := byte(6)
		if v4 {
			family = 4
		}
		if len(payload) < targetsHeader || payload[0] != 'G' || payload[1] != 'T' || payload[2] != targetsVersion || payload[3] != family {
			return TargetRecord{}, payload, false
		}
		payload = payload[targetsHeader:]
	}
	n := targetLen(v4)
	if len(payload) < n {
		return TargetRecord{}, payload, false
	}
	if v4 {
		r.IP = netip.AddrFrom4([4]byte(payload[:4]))
	} else {
		r.IP = netip.AddrFrom16([16]byte(payload[:16]))
	}
	r.VA = binary.BigEndian.Uint64(payload[n-12:])
	r.RKey = binary.BigEndian.Uint32(payload[n-4:])
	return r, payload[n:], true
}
