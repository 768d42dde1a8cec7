// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"bytes"
	_ "embed" // the compiled programs

	"github.com/cilium/ebpf"
)

//go:embed replicate.o
var replicateObject []byte

// loadReplicate reads the programs of bpf/replicate.c.
func loadReplicate() (*ebpf.CollectionSpec, error) {
	return ebpf.LoadCollectionSpecFromReader(bytes.NewReader(replicateObject))
}
