// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

// State is what a switch knows after a restart.
type State struct {
	Switch Switch
	Groups map[netip.Addr]*Group
	Epochs map[netip.Addr]uint64 // the newest that was accepted or rejected, also of groups that are no more
	Hosts  map[netip.Addr]*Host  // hosts of members
	// Created are the groups that members may connect to by RDMA-CM, as SetCreated got them.
	Created map[netip.Addr][]byte
}

// Switch is the state of the switch itself.
type Switch struct {
	Boots     uint64 // Open counts them
	EpochBase uint64 // envelope.RegistrarConfig.EpochBase of the last start: the next one is above it, also if the clock was set back
}

// Group is a group as it was registered, with what has happened since and cannot be learnt
// again.
type Group struct {
	// Registration has the members that have not gone. Lease is as granted.
	Registration envelope.Registration
	Key          envelope.KeyID // the key's number; 0: registered by hand. The key itself is in no file.
	Transaction  uint32         // the transaction of the Register
	Digests      [][32]byte     // the digests of the segments of the Register
	Joined       []uint64       // the epochs in which the members' records were registered, by member
	RegisteredAt time.Time      // the time of registration, in whole milliseconds
	Failed       bool           // no completion is due any more
	Former       []Former       // members that have gone, in the order of their keys
	Turn         *Turn          // nil: no member has sent yet
	Identity     *Identity      // nil: the registration was never updated
	Place        *Place         // nil: all members are here
}

// Former is a member that has gone in the group's present epoch, or whose numbers must not
// be used again.
type Former struct {
	Record envelope.MemberRecord
	Joined uint64             // the epoch as in Group.Joined
	Reason envelope.EndReason // 0: of an earlier epoch, only its numbers count
	Code   rocev2.Syndrome    // the cause of an eviction
	PSN    rocev2.PSN         // all before and including it was acknowledged
}

// Turn relates the PSNs of the members to each other, in a turn or, without a Source, between
// two turns: the source's packet with the PSN Send of its position has, for each other member,
// the PSN Receive of that one's, and all these members have all packets before it. So each
// position of a receiver has one in the source's numbering, after any number of turns.
type Turn struct {
	Source    netip.Addr   // the zero Addr: none
	Positions []Position   // the positions of the members; one without a position receives from the next message on
	Joining   []netip.Addr // members that have had nothing of the turn (mcast.Position.Joining)
}

// Position is that of a member's queue pair.
type Position struct {
	Member  netip.Addr
	Send    rocev2.PSN // the next one of its send queue
	Receive rocev2.PSN // the next one of its receive queue
	// FullHistory is mcast.Position.FullHistory.
	FullHistory bool
}

// Host is where a host is. Members under another key may have said otherwise of it, so there is a
// location for each key.
type Host struct {
	Pinned    Location                    // where the kernel's tables hold it
	Locations map[envelope.KeyID]Location // the locations in the groups of each key; 0: of those registered by hand.
}

// Location is where a host is, without the way to it: that is of this machine's routes and bridges.
type Location struct {
	Port string // name of the interface
	MAC  rocev2.MAC
	VLAN uint16
	Hop  netip.Addr // the neighbour whose MAC address that is
}
