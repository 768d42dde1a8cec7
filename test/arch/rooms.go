// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package arch checks that the code keeps to docs/ARCHITECTURE.md: the imports of each
// package, the purity of the core, and some rules of style. Its tests run the checks over the whole module.
package arch

import "strings"

// room is a package, with those below its folder that have no room of their own.
type room struct {
	dir   string   // relative to the module
	pure  bool     // no sockets, goroutines, clocks, loggers or global randomness
	knows []string // the only rooms it may import; nil means all further up in the table

	// words are the only names it may use of a room it knows.
	words map[string]map[string]bool
}

// rooms are all packages, the lowest layer first: each imports only from rooms above it
// in this table.
var rooms = []room{
	{dir: "rocev2", pure: true, knows: []string{}},
	{dir: "mcast/token", pure: true, knows: []string{}},
	{dir: "mcast", pure: true, knows: []string{"rocev2", "mcast/token"}},
	{dir: "envelope", pure: true, knows: []string{"rocev2", "mcast"}},
	{dir: "hello", pure: true, knows: []string{"rocev2", "envelope"}},
	{dir: "dcqcn", pure: true, knows: []string{}},
	{dir: "rc", pure: true, knows: []string{"rocev2", "dcqcn"}},
	{dir: "cm", pure: true, knows: []string{"rocev2"}},
	{dir: "sim/topology", pure: true, knows: []string{}},
	{dir: "sim/workload", pure: true, knows: []string{"sim/topology"}},
	{dir: "sim/analytic", pure: true, knows: []string{"sim/topology"}},
	{dir: "sim", pure: true, knows: []string{"rocev2", "mcast", "envelope", "dcqcn", "rc", "sim/topology", "sim/workload"},
		words: map[string]map[string]bool{"envelope": set("ChooseLegs", "NeighbourLoad", "NoNeighbour", "SwitchID", "DefaultPort")}},
	{dir: "sim/parallel", knows: []string{"sim"}},
	{dir: "config/linkrate", pure: true, knows: []string{}},
	{dir: "config/identity", knows: []string{}},
	{dir: "config/yamlpanic", pure: true, knows: []string{}},
	{dir: "config", knows: []string{"config/linkrate", "config/identity", "config/yamlpanic"}},
	{dir: "sandbox", knows: []string{}},
	{dir: "api", knows: []string{"rocev2", "mcast", "config/linkrate", "config/identity"}},
	{dir: "web", knows: []string{"api"}},
	{dir: "bpf", knows: []string{"rocev2"}},
	{dir: "dataplane/xsk", knows: []string{}},
	{dir: "dataplane/spsc", knows: []string{}},
	{dir: "dataplane/ntuple", knows: []string{}},
	{dir: "dataplane/iface", knows: []string{"config"}},
	// The control plane drives the data plane, and the data plane the core. No lower
	// layer imports a higher one.
	{dir: "dataplane", knows: []string{"rocev2", "mcast", "mcast/token", "envelope", "config/linkrate", "config", "api", "bpf", "dataplane/xsk", "dataplane/spsc", "dataplane/ntuple", "dataplane/iface"}},
	{dir: "control/locate", knows: []string{"dataplane/iface"}},
	{dir: "control/statefile", knows: []string{"rocev2", "mcast", "envelope"}},
	{dir: "control/fib", knows: []string{}},
	{dir: "control/neighbours", knows: []string{"rocev2", "mcast", "envelope", "hello", "config", "dataplane"}},
	{dir: "control", knows: []string{"rocev2", "mcast", "mcast/token", "envelope", "hello", "cm", "config", "api", "bpf", "dataplane", "dataplane/iface", "control/locate", "control/fib", "control/neighbours", "control/statefile"}},
	// Of the core, an endpoint uses only the types of a registration.
	{dir: "endpoint", knows: []string{"rocev2", "mcast", "envelope", "dcqcn", "rc"},
		words: map[string]map[string]bool{"mcast": set("Window", "Policy", "Strict", "Evict", "Quorum", "DefaultQPN", "GroupParams")}},
	{dir: "libgleam", knows: []string{}}, // C; its tests alone are in Go
	{dir: "mpi", knows: []string{}},      // likewise
	{dir: "model", knows: []string{"rocev2", "mcast", "mcast/token", "rc"}},
	{dir: "tools/lab", knows: []string{"config/linkrate", "config/yamlpanic"}},
	{dir: "cli", knows: []string{"rocev2", "cm", "config/linkrate", "config/identity", "api"}},
	{dir: "tools/testbed", knows: []string{"api", "bpf", "tools/lab"}},
	{dir: "examples/block/nbd", knows: []string{}},
	{dir: "examples/block", knows: []string{"mcast", "endpoint", "envelope", "examples/block/nbd"},
		words: map[string]map[string]bool{"mcast": set("Evict", "Quorum")}},
	{dir: "examples/block/rig", knows: []string{"tools/lab", "tools/testbed"}},
	{dir: "examples/block/lab", knows: []string{"config/linkrate", "examples/block/rig"}},
	{dir: "examples/block/blockd"},
	{dir: "tools/demo"},
	{dir: "tools/port", knows: []string{"dcqcn", "endpoint"}},
	{dir: "tools/cp"},
	{dir: "tools/perf"},
	{dir: "tools/bench"},
	{dir: "tools/simulate"},
	{dir: "cmd"},
	{dir: "scripts"},
	{dir: "test"},
}

// roomOf returns the index of the room with the longest folder that contains dir; -1 if
// there is none.
func roomOf(dir string) int {
	best := -1
	for i, r := range rooms {
		if (dir == r.dir || strings.HasPrefix(dir, r.dir+"/")) && (best < 0 || len(r.dir) > len(rooms[best].dir)) {
			best = i
		}
	}
	return best
}

// impure are the imports that a pure package must not have, packages below them
// included, each with the reason.
var impure = map[string]string{
	"net":                    "sockets",
	"os":                     "the system",
	"syscall":                "the system",
	"golang.org/x/sys":       "the system",
	"golang.org/x/net":       "sockets",
	"sync":                   "concurrency: callers serialise",
	"context":                "concurrency: deadlines are passed in",
	"runtime":                "the system",
	"log":                    "logging",
	"go.uber.org/zap":        "logging",
	"crypto/rand":            "randomness: seeds are passed in",
	"unsafe":                 "memory: only dataplane/xsk maps any",
	"github.com/vishvananda": "the system",
	"github.com/cilium":      "the system",
}

// pureAll are exceptions from impure.
var pureAll = map[string]bool{"net/netip": true}

// impureFuncs are functions that a pure package must not use, by import path.
var impureFuncs = map[string]map[string]bool{
	"time": set("Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"),
}

// seededOnly are the names of the packages for randomness that a pure package may use:
// sources that the caller seeds, never the global source.
var seededOnly = set("New", "NewPCG", "NewChaCha8", "NewSource", "NewZipf", "Rand", "PCG", "ChaCha8", "Source", "Zipf")

// badNames are package names that say nothing.
var badNames = set("util", "utils", "common", "helper", "helpers", "misc", "shared", "types")

// maxLines is the longest a file written by hand may be.
const maxLines = 450

func set(names ...string) map[string]bool {
	s := make(map[string]bool, len(names))
	for _, n := range names {
		s[n] = true
	}
	return s
}
