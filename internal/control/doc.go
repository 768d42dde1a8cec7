// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package control is gleamd's control plane, and with the data plane below it the running
// switch (Engine), which gleamd opens, runs, and asks through the API. It decides which
// groups there are, where their members are, and who may say so. It never touches a data
// packet: it reads reports of package dataplane and changes the workers' tables by its
// methods, and no packet waits for it.
//
// # The control loop
//
// One goroutine (control.run) owns the directory of groups, the hosts with their locations,
// and the registrar. It waits for:
//
//   - envelopes, of which those that extend leases come first (serveEnvelope),
//   - sightings of members at other locations (handleSighting),
//   - the bell of workers whose groups have changed (collectOutcomes),
//   - changes of links, neighbours and forwarding databases (followChanges),
//   - answers of the kernel to lookups (lookupDone),
//   - requests of the API that change something (do), and those that read (read).
//
// Each iteration does a bounded amount of each kind of work.
//
// # The path of a registration
//
// An envelope (refusal.go) or the API (backend.go) gives it to envelope.Registrar, which
// asks the directory to install it. The directory locates the members (lookup.go, package
// locate), lets them confirm where they are (location_proof.go), and then installs the
// group at its worker (dataplane.Group).
//
// # The path of a decision
//
// The core evicts members and changes sources by itself. A worker lists the group, the
// control loop reads the outcomes (outcome.go), and the registrar, the log and the journal
// have them.
//
// # Beside the loop
//
// Goroutines of their own make lookups (lookupQueue), pin members in the kernel's tables
// (pinner), follow the bridges of the ports (bridgeFollower) and log what the port guard
// drops (portGuardLog), since the kernel may take long to answer.
package control
