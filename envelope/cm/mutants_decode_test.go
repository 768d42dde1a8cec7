// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to read and write messages.
var _ = []mutant.Mutant{
	mutant.New("a MAD of another class is a message", "CM", mutant.In((*Message).decode,
		"b[1] != classCM ||", "")),
	mutant.New("an answer of management is a message", "CM", mutant.In((*Message).decode,
		"b[3] != methodSend || b[4]|b[5] != 0", "b[4]|b[5] != 0")),
	mutant.New("a message with an error status is read", "CM", mutant.In((*Message).decode,
		"b[3] != methodSend || b[4]|b[5] != 0", "b[3] != methodSend || b[4] != 0")),
	mutant.New("additional information reaches beyond its field", "CM", mutant.In((*Reject).decode,
		"n > ariMax ||", "n > ariMax+1 ||")),
	mutant.New("the GID of a REQ may be of another family", "CM", mutant.In((*Request).decode,
		"r.LocalGID.Is4() != r.Src.Is4() ||", "")),
	mutant.New("a REQ of queue pair 1 is read", "CM", mutant.In((*Request).decode,
		"r.QPN < 2", "r.QPN < 1")),
	mutant.New("an IPv4 address with other bytes is read", "CM", mutant.In(ipOf,
		"|uint64(binary.BigEndian.Uint32(b[8:])) == 0", " == 0")),
	mutant.New("the failover bits of a REP move", "CM", mutant.In((*Reply).put,
		"r.Failover&3<<1", "r.Failover&3<<2")),
}
