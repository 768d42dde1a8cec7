// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

// Tree is the place of a switch in the tree of a group over several switches.
type Tree struct {
	Switch  string `json:"switch"`            // ID of this one
	Attempt string `json:"attempt,omitempty"` // the ID of the attempt that registered the group: the same at all its switches
	Parent  string `json:"parent,omitempty"`  // ID of the switch that has asked this one to serve the group; empty: this is the root
	// Legs are those to other switches.
	Legs  []TreeLeg  `json:"legs"`
	Token *TreeToken `json:"token,omitempty"`
}

// TreeLeg is a group's leg to another switch. Its PSNs are those of all members behind it.
type TreeLeg struct {
	Switch  string `json:"switch"` // ID of the neighbour
	Port    string `json:"port"`
	State   string `json:"state"`            // the state of the adjacency: up or down
	Reason  string `json:"reason,omitempty"` // why it is down
	API     string `json:"api,omitempty"`    // address and port of the neighbour's API over TCP, as it says
	Levels  int    `json:"levels"`           // levels of switches behind the leg
	Members int    `json:"members"`          // members behind the leg
	Live    int    `json:"live"`             // live members behind the leg
	Source  bool   `json:"source"`           // the source is behind it
	AckPSN  PSN    `json:"ack_psn"`          // the PSN in the source's space
	Lag     int    `json:"lag"`
	Pending string `json:"pending,omitempty"` // the kind of the pending NAK, as in Member
	Awaited bool   `json:"awaited"`           // the group's ACK waits for it
}

// TreeToken is what a switch knows of the right to be the source.
type TreeToken struct {
	State   string `json:"state"`  // docs/TREES.md has the states
	Term    uint64 `json:"term"`   // number of the token
	Toward  string `json:"toward"` // ID of the neighbour that it is behind; empty: it is here
	Waiting int    `json:"waiting"`
}
