// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong uses of keys: the owner of a group, the rights of a key, and the locations from
// which messages count. The rule is a subject of docs/PROTOCOL.md.
var _ = []mutant.Mutant{
	mutant.New("a repeated pattern is a secret", "Secrets", mutant.In(secretWeakness,
		"for p := 2; p <= len(b)/2; p++ {",
		"for p := 99; p <= len(b)/2; p++ {")),
	mutant.New("a secret may count", "Secrets", mutant.In(secretWeakness,
		"if isSequence(b) {",
		"if isSequence(nil) {")),
	mutant.New("a secret may count by steps of one alone", "Secrets", mutant.In(isSequence,
		"s := b[i] - b[i-1]",
		"s := b[i] - b[i-1]&1")),
	mutant.New("a secret that counts in most of its bytes is one", "Secrets", mutant.In(isSequence,
		"2*steps[s] >= len(b)-1 {",
		"steps[s] >= len(b)-1 {")),
}
