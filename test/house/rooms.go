// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package house checks that the code keeps to docs/ARCHITECTURE.md: what each
// package may import, what the pure core must not touch, and a few habits of
// writing. Its tests run the checks over the whole module.
package house

import "strings"

// room is a package, with those below its folder that have no room of their own.
type room struct {
	dir   string   // relative to the module
	pure  bool     // no sockets, goroutines, clocks, loggers or global randomness
	knows []string // the only rooms it may import; nil means all further up in the table

	// words are the only names it may use of a room it knows.
	words map[string]map[string]bool
}

// rooms are all packages, ground floor first: each imports only from rooms
// above it in this table.
var rooms = []room{
	{dir: "rocev2", pure: true, knows: []string{}},
	{dir: "mcast", pure: true, knows: []string{"rocev2"}},
	{dir: "envelope", pure: true, knows: []string{"rocev2", "mcast"}},
	{dir: "dcqcn", pure: true, knows: []string{}},
	{dir: "rc", pure: true, knows: []string{"rocev2", "dcqcn"}},
	{dir: "linkrate", pure: true, knows: []string{}},
	{dir: "config", knows: []string{"linkrate"}},
	{dir: "sandbox", knows: []string{}},
	{dir: "api", knows: []string{"rocev2", "mcast", "linkrate"}},
	{dir: "bpf", knows: []string{"rocev2"}},
	{dir: "dataplane/xsk", knows: []string{}},
	{dir: "dataplane/spsc", knows: []string{}},
	{dir: "dataplane/ntuple", knows: []string{}},
	{dir: "dataplane/locate", knows: []string{}},
	{dir: "dataplane", knows: []string{"rocev2", "mcast", "envelope", "linkrate", "config", "api", "bpf", "dataplane/xsk", "dataplane/spsc", "dataplane/ntuple", "dataplane/locate"}},
	// Of the switch, an endpoint knows no more than the words of a registration.
	{dir: "endpoint", knows: []string{"rocev2", "mcast", "envelope", "dcqcn", "rc"},
		words: map[string]map[string]bool{"mcast": set("Window", "Policy", "Strict", "Evict", "Quorum", "DefaultQPN", "GroupParams")}},
	{dir: "libgleam", knows: []string{"rocev2", "mcast", "envelope", "endpoint"}},
	{dir: "sim"},
	{dir: "model", knows: []string{"rocev2", "mcast", "rc"}},
	{dir: "lab", knows: []string{}},
	{dir: "cli", knows: []string{"rocev2", "linkrate", "api"}},
	{dir: "testbed", knows: []string{"api", "lab"}},
	{dir: "demo"},
	{dir: "perf"},
	{dir: "bench"},
	{dir: "cmd"},
	{dir: "scripts"},
	{dir: "test"},
}

// roomOf finds the room of a folder: the longest that holds it. -1 if none does.
func roomOf(dir string) int {
	best := -1
	for i, r := range rooms {
		if (dir == r.dir || strings.HasPrefix(dir, r.dir+"/")) && (best < 0 || len(r.dir) > len(rooms[best].dir)) {
			best = i
		}
	}
	return best
}

// impure are imports that a pure package must not have, with what lies below
// them, and why.
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

// seededOnly are what a pure package may use of the packages for randomness:
// sources that are seeded by the caller, never the global one.
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
