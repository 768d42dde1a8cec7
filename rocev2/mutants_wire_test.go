// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to read and write packets.
var _ = []mutant.Mutant{
	mutant.New("PSNs compare as plain numbers", "R04", mutant.In(PSN.Less,
		"func (p PSN) Less(q PSN) bool { return p.Sub(q) < 0 }",
		"func (p PSN) Less(q PSN) bool { return p < q }")),
	mutant.New("PSNs have 25 bits", "3.1", mutant.In(PSN.Next,
		"func (p PSN) Next() PSN { return (p + 1) & PSNMask }",
		"func (p PSN) Next() PSN { return p + 1 }")),
	mutant.New("the ICRC covers ECN", "1.3", mutant.In(maskIPv4W0,
		"maskIPv4W0 = 0x0000FF00",
		"maskIPv4W0 = 0x0000FC00")),
	mutant.New("the ICRC covers the hop limit", "1.3", mutant.In(maskIPv6W1,
		"maskIPv6W1 = 0xFF000000",
		"maskIPv6W1 = 0x00000000")),
	mutant.New("the ICRC covers the UDP checksum", "1.3", mutant.In(maskUDPW1,
		"maskUDPW1  = 0xFFFF0000",
		"maskUDPW1  = 0x00000000")),
	mutant.New("the ICRC covers BECN", "1.3", mutant.In(maskBTHW1,
		"maskBTHW1  = 0x000000FF",
		"maskBTHW1  = 0x0000003F")),
	mutant.New("the ICRC leaves out the dummy LRH", "1.3", mutant.In(icrcInit,
		"const icrcInit = 0xDEBB20E3",
		"const icrcInit = 0xFFFFFFFF")),
	mutant.New("the AckReq bit is not in the incremental ICRC", "2", mutant.In(DiffBTH2,
		"d |= 1 << 31",
		"d |= 1 << 24")),
	mutant.New("the upper half of VA is not in the incremental ICRC", "2", mutant.In(Fields.RETH,
		"c ^= o.zero.Shift(lo, o.count-4)",
		"c ^= 0")),
	mutant.New("a partial checksum is complemented", "Checksum offload", mutant.In((*Frame).PartialUDPChecksum,
		"u.Checksum() == fold(f.udpPseudoSum())",
		"u.Checksum() == ^fold(f.udpPseudoSum())")),
}
