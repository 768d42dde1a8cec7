// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"encoding/binary"
	"net/netip"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to read and write packets.
var _ = []mutant.Mutant{
	mutant.New("any wrong UDP checksum passes for a partial one", "Checksum offload", mutant.In((*worker).queueEnvelope,
		"if partial = f.PartialUDPChecksum(); !partial {",
		"if partial = f.PartialUDPChecksum(); false {")),
	mutant.New("a partial checksum is a wrong one", "Checksum offload", mutant.In((*worker).queueEnvelope,
		"if partial = f.PartialUDPChecksum(); !partial {",
		"if partial = false; !partial {")),
	mutant.New("an envelope keeps the last one's note of its checksum", "Checksum offload", mutant.In((*worker).queueEnvelope,
		"if d.Partial = partial; partial {",
		"if d.Partial = d.Partial || partial; partial {")),
	mutant.New("the difference of another source's addresses is used", "2", mutant.In((*leg).rewrite,
		"if g.deltaSource != src || g.optLen != optLen {",
		"if !g.deltaSource.$1() || g.optLen != optLen {", netip.Addr.IsValid)),
	mutant.New("copies keep a UDP checksum that is wrong now", "1.2", mutant.In((*leg).rewrite,
		"rocev2.UDP(ip[hl : hl+rocev2.UDPLen]).SetChecksum(0)",
		"")),
	mutant.New("copies keep the source's address", "4", mutant.In((*leg).rewrite,
		"binary.BigEndian.PutUint64(h[ipv4Addresses:], pair)",
		"binary.BigEndian.$1(h[ipv4Addresses+4:], uint32(pair))", binary.BigEndian.PutUint32)),
	mutant.New("a bad ICRC is patched into a good one", "2", mutant.In((*worker).copy,
		"binary.LittleEndian.PutUint32(out[n-rocev2.ICRCLen:], icrc)",
		`_ = icrc
	var made rocev2.$1
	rocev2.$2(out[:n], &made)
	binary.LittleEndian.PutUint32(out[n-rocev2.ICRCLen:], made.$3())`, rocev2.Frame{}, rocev2.Decode, (*rocev2.Frame).ComputeICRC)),
	mutant.New("an ACK overtakes a NAK within a batch", "Choices", mutant.In((*worker).stageFeedback,
		`case fb.Op == rocev2.Acknowledge:
		g.lastACK.batchNumber = 0`,
		"")),
	mutant.New("an ACK is written into a frame that has left", "Who owns what", mutant.In((*worker).stageFeedback,
		"ack && last.batchNumber == w.batchNumber && last.to == fb.To",
		"ack && last.batchNumber != 0 && last.to == fb.To")),
	mutant.New("copies toward switches are rewritten", "R24", mutant.In((*worker).copy,
		"case l.kind == mcast.Connected:",
		"case l.kind <= mcast.$1:", mcast.Forwarded)),
	mutant.New("a wrong ICRC is believed", "R33", mutant.In((*worker).inputGroup,
		"if feedback || !f.VerifyICRC() {",
		"if feedback || f.$1 != $2 {", rocev2.Frame{}.Kind, rocev2.KindRoCE)),
	mutant.New("a member may be anywhere", "5", mutant.In((*worker).sourceGuard,
		"return l.port == pi && l.mac == from && l.kind == mcast.Connected",
		"return l.port >= 0")),
	mutant.New("a copy in several buffers shares them with the next copy", "5", mutant.In((*worker).copyRest,
		"if !own {",
		"if !own && len($arg3) > $1 {", xsk.MaxChain)),
	mutant.New("a kept packet ends with its first buffer", "5", mutant.In((*retention).release,
		"for !isLast(d) {",
		"for range 0 {")),
}
