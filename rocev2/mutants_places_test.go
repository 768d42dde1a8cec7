// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to follow members, ports and links. internal/control/doc.go, Places and
// Ports, has the rules.
var _ = []mutant.Mutant{
	mutant.New("an echo reply has the request's checksum", "Places", mutant.In(BuildEchoReply,
		"ChecksumUpdate16(binary.BigEndian.Uint16(q[2:4]), old, now)",
		"ChecksumUpdate16(binary.BigEndian.Uint16(q[2:4]), old, old|now&0)")),
	mutant.New("echo replies leave the VLAN", "Places", mutant.In(BuildEchoReply,
		"if !p.tagLike(f) {",
		"if n, _ := f.$1(); n > 1 {", (*Frame).VLAN)),
}
