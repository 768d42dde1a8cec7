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
//   - sightings of members at other locations (location.Inquirer),
//   - the bell of workers whose groups have changed (collectOutcomes),
//   - changes of links, neighbours and forwarding databases (followChanges),
//   - answers of the kernel to lookups (lookupDone),
//   - requests of the API that change something (do), and those that read (read).
//
// Each iteration does a bounded amount of each kind of work. Renewals come first and have slots of their own, so no
// host's requests end another's lease. Lines of the log that strangers can cause pass a sampler.
//
// # The path of a registration
//
// An envelope (refusal.go) or the API (backend.go) gives it to envelope.Registrar, which
// asks the directory to install it. The directory has the members located, and confirm where they
// are (package location), and then installs the group at its worker (dataplane.Group).
//
// # The path of a decision
//
// The core evicts members and changes sources by itself. A worker lists the group, the
// control loop reads the outcomes (outcome.go), and the registrar, the log and the journal
// have them. The core keeps outcomes as state, since an event could be lost; the loop applies those that are new to
// it. Each registration has a generation, by which outcomes of an older one are not taken for its own. Before a group
// or a member is removed its last outcomes are read in the same closure. A request that reads has them applied first
// (reads.go): nothing is shown that the journal does not have.
//
// # Places
//
// Package location has where hosts are, and asks the kernel and the hosts for it. A registration waits on a list for its
// members' locations, and delays no other (pending_registration.go). A member speaks from its place in the group
// (member_location.go). An answer goes back where the request came from, if that has proved its address (requester.go).
// Members behind other switches have ways (next_hops.go).
//
// # Ports
//
// The state of an interface is read, not taken from events: when any link has changed, all ports' interfaces are read
// (links.go). port_life.go is the state machine: open, lost, opening, refused. reconfigure.go is a reload: what can
// fail comes first, and one closure of the loop applies the rest.
//
// # What leaves after the file has it
//
// A kill -9 undoes what is not in the state file. So nobody is told before of what it would undo (store/outbox.go):
//
//	Accept of Register, Leave, Delete; Notify; Gone         waits
//	Commit, Committed, End, Ended, Gone, Noted (relays)     wait
//	REQ, REP, RTU, DREQ, DREP                               wait, for the entry of the connections
//	a command of an operator                                ends when the file has it (Engine.durable)
//	data of a new turn, or first for a new member           waits in the core (R83, R102)
//	an ACK that an eviction sets free                       leaves: after a kill -9 the member is asked first (R83)
//	a member's new location                                 is used: nobody is told, and it is confirmed anew
//	Challenge, Reject, Where, answers to Renew, MRA, REJ,   promise nothing: they leave in the order of their group,
//	and the other relays                                    at once if the file cannot be written
//
// A file that cannot be written leaves a choice. To go on as ever breaks promises at a kill -9: a message completes
// that a member never got. To stop transfers ends what runs well, for a disk that data does not need. The switch goes
// on with what it has promised (data, repair, renewals, evictions, new turns) and refuses what it would promise anew
// (registrations, members, connections: reason 41). What ends a membership is done at once, and confirmed when the
// file has it: a Leave and a DREQ get no answer until then, and an operator's command says so. The file is tried again
// each 1 to 4 s. A switch whose groups should rather be lost at a restart has no key state. In a tree no switch is lost
// meanwhile for what this one could not tell it, and none for having said that it cannot (envelope.SetStorageFails).
//
// # Beside the loop
//
// Goroutines of their own make lookups (location.Lookups), pin members in the kernel's tables
// (location.Pinner), follow the bridges of the ports (location.Bridging) and log what the port guard
// drops (portGuardLog), since the kernel may take long to answer.
package control
