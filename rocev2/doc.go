// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package rocev2 reads, rewrites and builds RoCEv2 packets as bytes.
//
//	0  Ethernet: dst(6) src(6) [VLAN tags, 4 each] type(2)
//	14 IPv4 (20..60) or IPv6 (40)
//	34 UDP (8), destination port 4791
//	42 BTH (12), extension headers by opcode, payload, pad (0..3), ICRC (4)
//
// # Reading
//
// Decode checks a frame once, against the lengths that IP and UDP give, and
// fills a Frame. After that no accessor of the Frame, and no method of a view
// that it returns, can go out of bounds. A view is a []byte type over a header
// in the caller's buffer: reading it reads, and setting it writes, the packet.
//
// DecodeChain does the same for a frame in several buffers, as a driver delivers
// one that is longer than its buffers. The headers must be in the first one;
// payload and ICRC may be cut anywhere.
//
// # The ICRC
//
// ComputeICRC and VerifyICRC work on the whole packet. A packet that is
// forwarded with some header fields rewritten gets the difference instead:
//
//	fs := ops.Fields(f.Op.ExtLen(), f.Tail())
//	icrc := f.ICRC() ^ fs.PSN(leg^DiffBTH2(oldPSN, newPSN, false)) ^ fs.RETH(oldVA, newVA, oldKey, newKey)
//
// where leg is LegDelta of the addresses and QPNs, a constant of the rewrite
// for every length, and ops holds tables by length. So the cost is independent
// of the payload, and a packet that was corrupt before stays so.
//
// # Building
//
// BuildPacket, BuildAck, BuildCNP, BuildUDP and the ARP and neighbour discovery
// builders write whole frames into the caller's buffer and return their length
// in bytes, or 0 if the frame cannot be built.
//
// Nothing in the package keeps state between calls, and nothing but
// NewOperator, NewOperators and Build allocates. Sections cited as IBTA are of
// the InfiniBand Architecture Specification volume 1; annex A17 is RoCEv2.
package rocev2
