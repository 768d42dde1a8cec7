// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package location has what a switch knows of where hosts are, and how that changes. Hosts answers where the kernel
// has a host, where it is pinned, where it is in the groups of a key, and which hosts are behind a port. Inquirer asks
// the hosts themselves. It knows groups by address and key alone, and nothing of the control loop that owns it.
//
// The kernel says where a member may be (package locate): routes, neighbours and forwarding databases, one entry a
// question, whatever the size of the tables. The member confirms it. Nothing is learnt from its packets.
//
//	hosts.go, guests.go  a host is looked up once for all its groups; guests are hosts that are no members
//	places.go            one place for each key: a key's holders move a host in their own groups alone
//	lookups.go           the kernel is asked beside the control loop, as it may take long
//	answers.go           another route moves a member: routes are the operator's
//	proof.go             each new member answers a Where from its location
//	inquirer.go          a sighting elsewhere is a reason to ask; an answer from there moves the member
//	pinner.go            the kernel holds a member there, so that no frame moves it
//	recall.go            after a restart members are where they were, before the kernel is asked
//	bridging.go          ports follow the rules of their bridges, which frames for groups bypass
//
// A change of the kernel's tables queues the hosts that depend on it, and no others (dependencies.go). That the
// kernel resolves a host, or fails to, is no change: each lookup does that, and one dead host would have all hosts
// looked up for ever. Such a host is asked again after 1 to 32 s, and keeps its location meanwhile.
package location
