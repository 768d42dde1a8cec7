// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"
	"net/netip"
)

// Topology is what the switch knows of other gleamd switches.
type Topology struct {
	Switch string `json:"switch"` // ID of this switch; empty: it has no keys of switches, and knows no others
	Links  []Link `json:"links"`  // the links of the ports where hellos are exchanged
	// Neighbours are the switches that have been up at these ports, by number.
	Neighbours []NeighbourSwitch `json:"neighbours"`
	// NextHops are the gateways of hosts that are behind other switches: of members, and of
	// hosts that registrations were about lately.
	NextHops []NextHop `json:"next_hops"`
}

// States of links and neighbours.
const (
	LinkUp   = "up"   // one switch is there
	LinkInit = "init" // one is heard, and has not proved itself
	LinkDown = "down"
)

// Link is the state of the link at a port.
type Link struct {
	Port     string `json:"port"`
	MAC      string `json:"mac"`
	MTU      int    `json:"mtu"`
	State    string `json:"state"`            // up, init or down
	Reason   string `json:"reason,omitempty"` // why it is not up
	Sent     uint64 `json:"hellos_sent"`
	Received uint64 `json:"hellos_received"`
	NotSent  uint64 `json:"hellos_not_sent,omitempty"` // hellos that the interface did not take
	// Drops are the hellos that had no effect, by reason as in Stats; the last one came from
	// LastDropMAC, LastDropAge seconds ago, for the reason of LastDrop.
	Drops       map[string]uint64 `json:"drops,omitempty"`
	LastDrop    string            `json:"last_drop,omitempty"`
	LastDropMAC string            `json:"last_drop_mac,omitempty"`
	LastDropAge float64           `json:"last_drop_age,omitempty"`
}

// NeighbourSwitch is a gleamd switch at a port.
type NeighbourSwitch struct {
	Number  uint32  `json:"number"` // the number of the adjacency at this switch
	Port    string  `json:"port"`
	Switch  string  `json:"switch"` // its ID
	State   string  `json:"state"`  // up or down
	Reason  string  `json:"reason,omitempty"`
	MAC     string  `json:"mac"`
	MTU     int     `json:"mtu"`           // the MTU of the neighbour's port
	Session string  `json:"session"`       // the present or last one, the same at both ends
	Age     float64 `json:"age"`           // seconds since the session began, or since it is down
	Hold    float64 `json:"hold"`          // seconds of silence after which it is down
	API     string  `json:"api,omitempty"` // address and port of its API over TCP, as it says
}

// NextHop is a gateway.
type NextHop struct {
	Gateway netip.Addr `json:"gateway"`
	Port    string     `json:"port,omitempty"`
	MAC     string     `json:"mac,omitempty"`
	Switch  string     `json:"switch,omitempty"` // ID of the neighbour that it is
	Reason  string     `json:"reason,omitempty"` // why it is none, or not known
	Hosts   int        `json:"hosts"`            // hosts whose routes lead by it
}

// Topology returns what the switch knows of other switches.
func (c *Client) Topology(ctx context.Context) (*Topology, error) {
	t := new(Topology)
	if err := c.call(ctx, "GET", "/v1/topology", nil, t); err != nil {
		return nil, err
	}
	return t, nil
}

func (h *handler) topology(*http.Request, string) (any, error) {
	t, err := h.backend.Topology()
	if err != nil {
		return nil, err
	}
	t.Links, t.Neighbours, t.NextHops = notNil(t.Links), notNil(t.Neighbours), notNil(t.NextHops)
	return t, nil
}
