// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to read and write packets.
var wireMutants = []mutant{
	{"PSNs compare as plain numbers", "R04", "rocev2/psn.go", []edit{{
		"func (p PSN) Less(q PSN) bool { return p.Sub(q) < 0 }",
		"func (p PSN) Less(q PSN) bool { return p < q }",
	}}},
	{"PSNs have 25 bits", "3.1", "rocev2/psn.go", []edit{{
		"func (p PSN) Next() PSN { return (p + 1) & PSNMask }",
		"func (p PSN) Next() PSN { return p + 1 }",
	}}},
	{"the ICRC covers ECN", "1.3", "rocev2/icrc.go", []edit{{
		"maskIPv4W0 = 0x0000FF00",
		"maskIPv4W0 = 0x0000FC00",
	}}},
	{"the ICRC covers the hop limit", "1.3", "rocev2/icrc.go", []edit{{
		"maskIPv6W1 = 0xFF000000",
		"maskIPv6W1 = 0x00000000",
	}}},
	{"the ICRC covers the UDP checksum", "1.3", "rocev2/icrc.go", []edit{{
		"maskUDPW1  = 0xFFFF0000",
		"maskUDPW1  = 0x00000000",
	}}},
	{"the ICRC covers BECN", "1.3", "rocev2/icrc.go", []edit{{
		"maskBTHW1  = 0x000000FF",
		"maskBTHW1  = 0x0000003F",
	}}},
	{"the ICRC leaves out the dummy LRH", "1.3", "rocev2/icrc.go", []edit{{
		"const icrcInit = 0xDEBB20E3",
		"const icrcInit = 0xFFFFFFFF",
	}}},
	{"the AckReq bit is not in the incremental ICRC", "2", "rocev2/icrcdelta.go", []edit{{
		"		d |= 1 << 31\n",
		"		d |= 1 << 24\n",
	}}},
	{"IPv4 options are not in the incremental ICRC", "2", "rocev2/icrcdelta.go", []edit{{
		"for ; optLen >= 4; optLen -= 4 {",
		"for ; optLen > 4; optLen -= 4 {",
	}}},
	{"the upper half of VA is not in the incremental ICRC", "2", "rocev2/icrcdelta.go", []edit{{
		"		c ^= o.z.Shift(lo, o.n-4)\n",
		"		c ^= 0\n",
	}}},
	{"any wrong UDP checksum passes for a partial one", "Checksum offload", "dataplane/slow.go", []edit{{
		"if partial = f.PartialUDPChecksum(); !partial {",
		"if partial = f.PartialUDPChecksum(); false {",
	}}},
	{"a partial checksum is a wrong one", "Checksum offload", "dataplane/slow.go", []edit{{
		"if partial = f.PartialUDPChecksum(); !partial {",
		"if partial = false; !partial {",
	}}},
	{"an envelope keeps the last one's note of its checksum", "Checksum offload", "dataplane/slow.go", []edit{{
		"if d.partial = partial; partial {",
		"if d.partial = d.partial || partial; partial {",
	}}},
	{"a partial checksum is complemented", "Checksum offload", "rocev2/frame.go", []edit{{
		"u.Checksum() == fold(f.udpPseudoSum())",
		"u.Checksum() == ^fold(f.udpPseudoSum())",
	}}},
	{"copies keep the PSN", "R18", "dataplane/leg.go", []edit{{
		"	bth.SetPSN(c.PSN)\n",
		"",
	}}},
	{"copies keep the group's QPN", "4", "dataplane/leg.go", []edit{{
		"	bth.SetDestQP(l.qpn)\n",
		"",
	}}},
	{"the difference of another source's addresses is used", "2", "dataplane/leg.go", []edit{{
		"if l.from != src || l.optLen != optLen {",
		"if !l.from.IsValid() || l.optLen != optLen {",
	}}},
	{"copies keep a UDP checksum that is wrong now", "1.2", "dataplane/leg.go", []edit{{
		"	rocev2.UDP(ip[hl : hl+rocev2.UDPLen]).SetChecksum(0)\n",
		"",
	}}},
	{"copies keep the source's address", "4", "dataplane/leg.go", []edit{{
		"	binary.BigEndian.PutUint64(h[ipv4Addresses:], l.addrs)\n",
		"	binary.BigEndian.PutUint32(h[ipv4Addresses+4:], uint32(l.addrs))\n",
	}}},
	{"a bad ICRC is patched into a good one", "2", "dataplane/leg.go", []edit{{
		"	binary.LittleEndian.PutUint32(out[n-rocev2.ICRCLen:], icrc)\n",
		"	_ = icrc\n	var made rocev2.Frame\n	rocev2.Decode(out[:n], &made)\n	binary.LittleEndian.PutUint32(out[n-rocev2.ICRCLen:], made.ComputeICRC())\n",
	}}},
	{"the IPv4 checksum is not updated", "1.2", "dataplane/leg.go", []edit{{
		"	h.SetChecksum(rocev2.ChecksumUpdate64(h.Checksum(), old, l.addrs))\n",
		"	_ = old\n",
	}}},
	{"an ACK overtakes a NAK within a batch", "Choices", "dataplane/feedback.go", []edit{{
		"	case fb.Op == rocev2.Acknowledge:\n		g.ack.batch = 0\n",
		"",
	}}},
	{"an ACK is written into a frame that has left", "Who owns what", "dataplane/feedback.go", []edit{{
		"ack && last.batch == w.batch && last.to == fb.To",
		"ack && last.batch != 0 && last.to == fb.To",
	}}},
	{"copies toward switches are rewritten", "R24", "dataplane/leg.go", []edit{{
		"case l.kind == mcast.Connected:",
		"case l.kind <= mcast.Forwarded:",
	}}},
	{"a wrong ICRC is believed", "R33", "dataplane/serve.go", []edit{{
		"if !f.VerifyICRC() {",
		"if f.Kind != rocev2.KindRoCE {",
	}}},
	{"a member may be anywhere", "5", "dataplane/guard.go", []edit{{
		"return l.port == pi && l.mac == w.frame.Eth().Src()",
		"return l.port >= 0",
	}}},
	{"the ICRC of a copy in several buffers stays that of the received packet", "2", "dataplane/chain.go", []edit{{
		"	c.out.SetICRC(icrc)\n",
		"",
	}}},
	{"a copy in several buffers shares them with the next copy", "5", "dataplane/chain.go", []edit{{
		"		if !own {\n",
		"		if !own && len(ds) > xsk.MaxChain {\n",
	}}},
	{"a kept packet ends with its first buffer", "5", "dataplane/keep.go", []edit{{
		"		for !ends(d) {\n",
		"		for range 0 {\n",
	}}},
}
