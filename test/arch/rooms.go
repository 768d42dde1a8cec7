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
	{dir: "internal/rocev2", pure: true, knows: []string{}},
	{dir: "internal/mcast/token", pure: true, knows: []string{}},
	{dir: "internal/mcast", pure: true, knows: []string{"internal/rocev2", "internal/mcast/token"}},
	{dir: "internal/envelope", pure: true, knows: []string{"internal/rocev2", "internal/mcast"}},
	{dir: "internal/hello", pure: true, knows: []string{"internal/rocev2", "internal/envelope"}},
	{dir: "internal/dcqcn", pure: true, knows: []string{}},
	{dir: "internal/rc", pure: true, knows: []string{"internal/rocev2", "internal/dcqcn"}},
	{dir: "internal/cm", pure: true, knows: []string{"internal/rocev2"}},
	{dir: "internal/sim/topology", pure: true, knows: []string{}},
	{dir: "internal/sim/workload", pure: true, knows: []string{"internal/sim/topology"}},
	{dir: "internal/sim/analytic", pure: true, knows: []string{"internal/sim/topology"}},
	{dir: "internal/sim", pure: true, knows: []string{"internal/rocev2", "internal/mcast", "internal/envelope", "internal/dcqcn", "internal/rc", "internal/sim/topology", "internal/sim/workload"},
		words: map[string]map[string]bool{"internal/envelope": set("ChooseLegs", "NeighbourLoad", "NoNeighbour", "SwitchID", "DefaultPort")}},
	{dir: "internal/sim/parallel", knows: []string{"internal/sim"}},
	{dir: "internal/config/linkrate", pure: true, knows: []string{}},
	{dir: "internal/connlimit", knows: []string{}},
	{dir: "internal/terminal", knows: []string{}},
	{dir: "internal/config/trusted", knows: []string{}},
	{dir: "internal/config/identity", knows: []string{"internal/config/trusted"}},
	{dir: "internal/config/yamlpanic", pure: true, knows: []string{}},
	{dir: "internal/config", knows: []string{"internal/config/linkrate", "internal/config/identity", "internal/config/trusted", "internal/config/yamlpanic"}},
	{dir: "internal/sandbox", knows: []string{}},
	{dir: "api", knows: []string{"internal/rocev2", "internal/mcast", "internal/config/linkrate", "internal/config/identity", "internal/connlimit"}},
	{dir: "internal/watch", knows: []string{"internal/rocev2", "api"}},
	{dir: "internal/web", knows: []string{"internal/connlimit", "api", "internal/watch"}},
	{dir: "internal/metrics", knows: []string{"api", "internal/watch"}},
	{dir: "internal/privilege", knows: []string{"internal/config", "internal/sandbox"}},
	{dir: "internal/bpf", knows: []string{"internal/rocev2"}},
	{dir: "internal/dataplane/xsk", knows: []string{}},
	{dir: "internal/dataplane/spsc", knows: []string{}},
	{dir: "internal/dataplane/trace", knows: []string{"internal/rocev2", "internal/dataplane/spsc"}},
	{dir: "internal/dataplane/ntuple", knows: []string{}},
	{dir: "internal/dataplane/iface", knows: []string{"internal/config"}},
	{dir: "internal/kernel", knows: []string{"api", "internal/bpf", "internal/dataplane/iface"}},
	{dir: "internal/dataplane/blame", knows: []string{"internal/mcast", "api"}},
	// The control plane drives the data plane, and the data plane the core. No lower
	// layer imports a higher one.
	{dir: "internal/dataplane", knows: []string{"internal/rocev2", "internal/mcast", "internal/mcast/token", "internal/envelope", "internal/config/linkrate", "internal/config", "api", "internal/bpf", "internal/dataplane/xsk", "internal/dataplane/spsc", "internal/dataplane/trace", "internal/dataplane/ntuple", "internal/dataplane/iface", "internal/dataplane/blame"}},
	{dir: "internal/control/locate", knows: []string{"internal/dataplane/iface"}},
	{dir: "internal/control/statefile", knows: []string{"internal/rocev2", "internal/mcast", "internal/envelope"}},
	{dir: "internal/control/fib", knows: []string{}},
	{dir: "internal/control/neighbours", knows: []string{"internal/rocev2", "internal/mcast", "internal/envelope", "internal/hello", "internal/config", "internal/dataplane"}},
	{dir: "internal/checks", knows: []string{"internal/rocev2", "internal/config", "internal/bpf", "internal/dataplane/iface", "internal/control/locate", "internal/control/neighbours", "internal/kernel"}},
	{dir: "internal/control", knows: []string{"internal/rocev2", "internal/mcast", "internal/mcast/token", "internal/envelope", "internal/hello", "internal/cm", "internal/config", "api", "internal/bpf", "internal/dataplane", "internal/dataplane/blame", "internal/dataplane/iface", "internal/dataplane/trace", "internal/control/locate", "internal/control/fib", "internal/control/neighbours", "internal/control/statefile", "internal/kernel", "internal/watch", "internal/checks"}},
	{dir: "internal/doctor", knows: []string{"internal/rocev2", "internal/mcast", "internal/envelope", "internal/config", "internal/config/trusted", "api", "internal/bpf", "internal/dataplane/iface", "internal/checks", "internal/control", "internal/kernel", "internal/privilege", "internal/watch"}},
	// Of the core, an endpoint uses only the types of a registration.
	{dir: "endpoint", knows: []string{"internal/rocev2", "internal/mcast", "internal/envelope", "internal/dcqcn", "internal/rc", "internal/connlimit"},
		words: map[string]map[string]bool{"internal/mcast": set("Window", "Policy", "Strict", "Evict", "Quorum", "DefaultQPN", "GroupParams")}},
	{dir: "libgleam", knows: []string{}}, // C; its tests alone are in Go
	{dir: "mpi", knows: []string{}},      // likewise
	{dir: "internal/model", knows: []string{"internal/rocev2", "internal/mcast", "internal/mcast/token", "internal/rc"}},
	{dir: "internal/tools/lab", knows: []string{"internal/config/linkrate", "internal/config/yamlpanic"}},
	{dir: "docs", pure: true, knows: []string{}},
	{dir: "internal/cli", knows: []string{"docs", "internal/rocev2", "internal/cm", "internal/terminal", "internal/config/linkrate", "internal/config/identity", "api", "internal/watch"}},
	{dir: "internal/tools/testbed", knows: []string{"api", "internal/bpf", "internal/tools/lab"}},
	{dir: "examples/block/nbd", knows: []string{"internal/connlimit"}},
	{dir: "examples/block", knows: []string{"internal/mcast", "endpoint", "internal/envelope", "examples/block/nbd"},
		words: map[string]map[string]bool{"internal/mcast": set("Evict", "Quorum")}},
	{dir: "examples/block/rig", knows: []string{"internal/tools/lab", "internal/tools/testbed"}},
	{dir: "examples/block/lab", knows: []string{"internal/config/linkrate", "examples/block/rig"}},
	{dir: "examples/block/blockd"},
	{dir: "internal/tools/demo"},
	{dir: "internal/tools/port", knows: []string{"internal/dcqcn", "endpoint"}},
	{dir: "internal/tools/cp"},
	{dir: "internal/tools/perf"},
	{dir: "internal/tools/bench"},
	{dir: "internal/tools/simulate"},
	{dir: "internal/tools/doctor"},
	{dir: "internal/tools/top"},
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
	"unsafe":                 "memory: only internal/dataplane/xsk maps any",
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
