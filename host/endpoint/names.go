// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Types of packages that other modules cannot import.
type (
	QPN       = rocev2.QPN         // number of a queue pair, 24 bits
	PSN       = rocev2.PSN         // packet sequence number, 24 bits
	Syndrome  = rocev2.Syndrome    // of an AETH
	AckKind   = rocev2.AckKind     // what a syndrome says
	RNRCode   = rocev2.RNRCode     // time that an RNR NAK asks for, IBTA table 46
	Auth      = envelope.Auth      // keys of envelopes, and the one that is used
	Keys      = envelope.Keys      // by their IDs
	KeyID     = envelope.KeyID     // number of a key, from 1
	EndReason = envelope.EndReason // why a member is out of its group
	Window    = mcast.Window       // range of remotely writable memory
	Policy    = mcast.Policy       // what a completion at the source means
)

// Kinds of syndromes.
const (
	KindACK      = rocev2.KindACK
	KindRNR      = rocev2.KindRNR      // no receive was posted
	KindSequence = rocev2.KindSequence // a packet is missing
	KindFatal    = rocev2.KindFatal    // invalid request, access or operation
	KindReserved = rocev2.KindReserved // none of IBTA's
)

// Policies of groups.
const (
	Strict = mcast.Strict // all receivers have the bytes; the group waits for every one
	Evict  = mcast.Evict  // all live receivers have them; a silent one is removed
	Quorum = mcast.Quorum // MasterConfig.Quorum receivers have them
)

// Forgotten is the Event.Reason of Ended where the switch has started again, and does not know the group.
const Forgotten = envelope.Forgotten
