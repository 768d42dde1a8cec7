// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import "encoding/binary"

// UDPLen is the length in bytes of a UDP header.
const UDPLen = 8

// UDP is a UDP header (RFC 768).
//
//	0 source port  2 destination port  4 length  6 checksum
type UDP []byte

// SrcPort returns the source port. In RoCEv2 it carries entropy for ECMP, is
// covered by the ICRC, and may be 0 in a CNP.
func (u UDP) SrcPort() uint16 { return binary.BigEndian.Uint16(u[0:2]) }

// DstPort returns the destination port.
func (u UDP) DstPort() uint16 { return binary.BigEndian.Uint16(u[2:4]) }

// Len returns the length in bytes of header and payload.
func (u UDP) Len() int { return int(binary.BigEndian.Uint16(u[4:6])) }

// Checksum returns the checksum; 0 if the sender computed none.
func (u UDP) Checksum() uint16 { return binary.BigEndian.Uint16(u[6:8]) }

// SetSrcPort sets the source port.
func (u UDP) SetSrcPort(p uint16) { binary.BigEndian.PutUint16(u[0:2], p) }

// SetDstPort sets the destination port.
func (u UDP) SetDstPort(p uint16) { binary.BigEndian.PutUint16(u[2:4], p) }

// SetLen sets the length.
func (u UDP) SetLen(n int) { binary.BigEndian.PutUint16(u[4:6], uint16(n)) }

// SetChecksum sets the checksum. RoCEv2 sends 0 over IPv4 and IPv6 alike: the ICRC
// protects the packet and masks this field (rdma_rxe rxe_net.c, prepare_udp_hdr), so
// every rewritten RoCEv2 packet gets 0.
func (u UDP) SetChecksum(c uint16) { binary.BigEndian.PutUint16(u[6:8], c) }
