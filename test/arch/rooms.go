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
	{dir: "internal/statecode", pure: true, knows: []string{}},
	{dir: "mcast/token", pure: true, knows: []string{"internal/statecode"}},
	{dir: "mcast", pure: true, knows: []string{"rocev2", "internal/statecode", "mcast/token"}},
	{dir: "envelope", pure: true, knows: []string{"rocev2", "mcast"}},
	{dir: "envelope/hello", pure: true, knows: []string{"rocev2", "envelope"}},
	{dir: "host/rc/dcqcn", pure: true, knows: []string{"internal/statecode"}},
	{dir: "host/rc", pure: true, knows: []string{"rocev2", "internal/statecode", "host/rc/dcqcn"}},
	// Of the core, RDMA-CM uses only the record of a member, which it fills for the registration.
	{dir: "envelope/cm", pure: true, knows: []string{"rocev2", "mcast"},
		words: map[string]map[string]bool{"mcast": set("MemberRecord", "Window", "ReplyForwarded", "ReplyDiscarded")}},
	{dir: "lab/sim/topology", pure: true, knows: []string{}},
	{dir: "lab/sim/workload", pure: true, knows: []string{"lab/sim/topology"}},
	{dir: "lab/sim/analytic", pure: true, knows: []string{"lab/sim/topology"}},
	{dir: "lab/sim", pure: true, knows: []string{"rocev2", "mcast", "envelope", "host/rc/dcqcn", "host/rc", "lab/sim/topology", "lab/sim/workload"},
		words: map[string]map[string]bool{"envelope": set("ChooseLegs", "NeighbourLoad", "NoNeighbour", "SwitchID", "DefaultPort")}},
	{dir: "lab/sim/parallel", knows: []string{"lab/sim"}},
	{dir: "config/linkrate", pure: true, knows: []string{}},
	{dir: "internal/connlimit", knows: []string{}},
	{dir: "internal/cli/terminal", knows: []string{}},
	{dir: "config/trusted", knows: []string{}},
	{dir: "config/identity", knows: []string{"config/trusted"}},
	{dir: "config/yamlpanic", pure: true, knows: []string{}},
	{dir: "config", knows: []string{"config/linkrate", "config/identity", "config/trusted", "config/yamlpanic"}},
	{dir: "internal/confine/sandbox", knows: []string{}},
	{dir: "api", knows: []string{"rocev2", "mcast", "config/linkrate", "config/identity", "internal/connlimit"}},
	{dir: "internal/observe/watch", knows: []string{"rocev2", "api"}},
	{dir: "internal/observe/web", knows: []string{"internal/connlimit", "api", "internal/observe/watch"}},
	{dir: "internal/observe/metrics", knows: []string{"api", "internal/observe/watch"}},
	{dir: "internal/confine/privilege", knows: []string{"config", "internal/confine/sandbox"}},
	{dir: "bpf", knows: []string{"rocev2"}},
	{dir: "dataplane/xsk", knows: []string{}},
	{dir: "dataplane/spsc", knows: []string{}},
	{dir: "dataplane/trace", knows: []string{"rocev2", "dataplane/spsc"}},
	{dir: "dataplane/record", knows: []string{"mcast", "mcast/token"}},
	{dir: "dataplane/ntuple", knows: []string{}},
	{dir: "dataplane/iface", knows: []string{"config"}},
	{dir: "internal/doctor/kernel", knows: []string{"api", "bpf", "dataplane/iface"}},
	{dir: "dataplane/blame", knows: []string{"mcast", "api"}},
	// The control plane drives the data plane, and the data plane the core. No lower
	// layer imports a higher one.
	{dir: "dataplane", knows: []string{"rocev2", "mcast", "mcast/token", "envelope", "config/linkrate", "config", "api", "bpf", "dataplane/xsk", "dataplane/spsc", "dataplane/trace", "dataplane/record", "dataplane/ntuple", "dataplane/iface", "dataplane/blame"}},
	{dir: "internal/control/locate", knows: []string{"dataplane/iface"}},
	{dir: "internal/control/statefile", knows: []string{"rocev2", "mcast", "envelope"}},
	{dir: "internal/control/fib", knows: []string{}},
	{dir: "internal/control/neighbours", knows: []string{"rocev2", "mcast", "envelope", "envelope/hello", "config", "dataplane"}},
	{dir: "internal/control/store", knows: []string{"envelope", "api", "internal/control/statefile"}},
	{dir: "internal/control/tree", knows: []string{"rocev2", "mcast", "envelope", "envelope/hello", "config", "api", "dataplane", "internal/control/fib", "internal/control/neighbours"}},
	{dir: "internal/control/location", knows: []string{"rocev2", "envelope", "config", "api", "bpf", "dataplane", "internal/control/fib", "internal/control/locate", "internal/control/statefile"}},
	{dir: "internal/doctor/checks", knows: []string{"rocev2", "config", "bpf", "dataplane/iface", "dataplane/ntuple", "internal/control/locate", "internal/control/neighbours", "internal/doctor/kernel"}},
	{dir: "internal/control", knows: []string{"rocev2", "mcast", "mcast/token", "envelope", "envelope/hello", "envelope/cm", "config", "api", "bpf", "dataplane", "dataplane/blame", "dataplane/iface", "dataplane/trace", "internal/control/locate", "internal/control/fib", "internal/control/neighbours", "internal/control/statefile", "internal/control/store", "internal/control/tree", "internal/control/location", "internal/doctor/kernel", "internal/observe/watch", "internal/doctor/checks"}},
	{dir: "internal/doctor", knows: []string{"rocev2", "mcast", "envelope", "config", "config/trusted", "api", "bpf", "dataplane/iface", "internal/doctor/checks", "internal/control", "internal/doctor/kernel", "internal/confine/privilege", "internal/observe/watch"}},
	// Of the core, an endpoint uses only the types of a registration.
	{dir: "host/endpoint", knows: []string{"rocev2", "mcast", "envelope", "host/rc/dcqcn", "host/rc", "internal/connlimit"},
		words: map[string]map[string]bool{"mcast": set("Window", "Policy", "Strict", "Evict", "Quorum", "DefaultQPN", "GroupParams")}},
	{dir: "host/libgleam", knows: []string{}}, // C; its tests alone are in Go
	{dir: "host/mpi", knows: []string{}},      // likewise
	{dir: "test/model", knows: []string{"rocev2", "mcast", "mcast/token", "host/rc"}},
	{dir: "lab", knows: []string{"config/linkrate", "config/yamlpanic"}},
	{dir: "docs", pure: true, knows: []string{}},
	{dir: "internal/cli", knows: []string{"docs", "rocev2", "envelope/cm", "internal/cli/terminal", "config/linkrate", "config/identity", "api", "internal/observe/watch"}},
	{dir: "lab/testbed", knows: []string{"api", "bpf", "envelope", "host/endpoint", "lab"}},
	{dir: "lab/block/nbd", knows: []string{"internal/connlimit"}},
	{dir: "lab/block", knows: []string{"mcast", "host/endpoint", "envelope", "lab/block/nbd"},
		words: map[string]map[string]bool{"mcast": set("Evict", "Quorum")}},
	{dir: "lab/block/rig", knows: []string{"lab", "lab/testbed"}},
	{dir: "lab/block/lab", knows: []string{"config/linkrate", "lab/block/rig"}},
	{dir: "lab/block/blockd"},
	{dir: "lab/demo"},
	{dir: "internal/cli/port", knows: []string{"host/rc/dcqcn", "host/endpoint"}},
	{dir: "internal/cli/cp"},
	{dir: "internal/cli/perf"},
	{dir: "internal/cli/rank"},
	{dir: "lab/bench"},
	{dir: "lab/simulate"},
	{dir: "lab/hardware"},
	{dir: "internal/cli/doctor"},
	{dir: "internal/cli/top"},
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

// faulty are names of other modules, by their beginning, that no file may use.
var faulty = []struct{ pkg, prefix, why string }{
	{"github.com/vishvananda/netlink/nl", "Genlmsg", "has 2 bytes and sends 4, a data race with what lies beside it; dataplane/iface has a genlHeader"},
	{"github.com/vishvananda/netlink", "Genl", "uses nl.Genlmsg; dataplane/iface has genlFamily"},
}

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
