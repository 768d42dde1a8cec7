// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"bytes"
	_ "embed" // the compiled programs

	"github.com/cilium/ebpf"
)

var (
	//go:embed fast.o
	fastObject []byte
	//go:embed transmit.o
	transmitObject []byte
)

// loadFast reads the programs of ../fast.c.
func loadFast() (*ebpf.CollectionSpec, error) {
	return ebpf.LoadCollectionSpecFromReader(bytes.NewReader(fastObject))
}

// Names of ../fast.c that Go code uses.
const (
	fastMapDevmaps       = "devmaps"
	fastMapFast4         = "fast4"
	fastMapFast6         = "fast6"
	fastMapFastAcks      = "fast_acks"
	fastMapFastCounters  = "fast_counters"
	fastMapFastPorts     = "fast_ports"
	fastMapFastSent      = "fast_sent"
	fastMapFastSources   = "fast_sources"
	fastMapGroups        = "groups"
	fastMapLegs          = "legs"
	fastMapOperators     = "operators"
	fastMapPaths         = "paths"
	fastMapRing          = "ring"
	fastMapRingLarge     = "ring_large"
	fastMapXsks          = "xsks"
	fastProgClones       = "clones"
	fastProgEgress       = "egress"
	fastVarNumPorts      = "num_ports"
	fastVarStoresInOrder = "stores_in_order"
)
