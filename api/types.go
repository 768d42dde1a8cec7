// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package api is what gleamd says of itself over its Unix socket: the types,
// which are its JSON, a client and a server. It knows nothing of how the
// answers come about.
package api

import (
	"net/netip"
	"time"
)

// Group is one registered group and how its transfer stands.
type Group struct {
	IP        netip.Addr `json:"ip"`
	QPN       uint32     `json:"qpn"`
	PMTU      int        `json:"path_mtu"`
	Policy    string     `json:"policy"`     // strict or evict
	Origin    string     `json:"origin"`     // envelope or api
	Epoch     uint64     `json:"epoch"`      // of the registration
	Master    string     `json:"master"`     // address, empty if registered by API
	LeaseLeft float64    `json:"lease_left"` // seconds; 0: no lease
	State     string     `json:"state"`      // idle, running, failed
	Source    netip.Addr `json:"source,omitzero"`
	AckPSN    uint32     `json:"ack_psn"`          // A: every live receiver has all up to here
	NextPSN   uint32     `json:"next_psn"`         // hi: highest forwarded + 1
	HeldBy    netip.Addr `json:"held_by,omitzero"` // the member whose ACK the group waits for
	Members   []Member   `json:"members"`
	Counters  Counters   `json:"counters"`
}

// Member is one member of a Group.
type Member struct {
	IP      netip.Addr `json:"ip"`
	QPN     uint32     `json:"qpn"`
	Port    string     `json:"port"`
	MAC     string     `json:"mac"`
	VLAN    uint16     `json:"vlan,omitempty"`
	Role    string     `json:"role"` // source, receiver
	Live    bool       `json:"live"`
	AckPSN  uint32     `json:"ack_psn"`           // in the current source's space
	Lag     int        `json:"lag"`               // packets behind next_psn - 1
	Pending string     `json:"pending,omitempty"` // NAK kind that waits to go out
	Window  bool       `json:"window"`
}

// Counters count one group's packets.
type Counters struct {
	DataIn      uint64 `json:"data_in"`
	Copies      uint64 `json:"copies"`
	FeedbackIn  uint64 `json:"feedback_in"`
	FeedbackOut uint64 `json:"feedback_out"`
}

// Port is one port of the switch.
type Port struct {
	Name     string            `json:"name"`
	Ifindex  int               `json:"ifindex"`
	MAC      string            `json:"mac"`
	MTU      int               `json:"mtu"`
	Up       bool              `json:"up"`
	XDPMode  string            `json:"xdp_mode"`  // native or generic
	ZeroCopy bool              `json:"zero_copy"` // of AF_XDP
	Queues   int               `json:"queues"`
	VLAN     uint16            `json:"vlan,omitempty"`
	RxFrames uint64            `json:"rx_frames"` // taken from AF_XDP
	TxFrames uint64            `json:"tx_frames"` // handed to the kernel
	XDP      map[string]uint64 `json:"xdp"`       // exits of the XDP program by reason
}

// Stats are the switch's totals.
type Stats struct {
	Uptime      float64           `json:"uptime"` // seconds
	Groups      int               `json:"groups"`
	Rx          uint64            `json:"rx"`           // group data packets in
	Copies      uint64            `json:"copies"`       // data packets out
	FeedbackIn  uint64            `json:"feedback_in"`  // ACK, NAK, RNR, CNP from members
	FeedbackOut uint64            `json:"feedback_out"` // towards sources
	Neighbour   uint64            `json:"neighbour"`    // ARP and ND answers
	EnvelopeIn  uint64            `json:"envelope_in"`
	EnvelopeOut uint64            `json:"envelope_out"`
	FramesFree  int               `json:"frames_free"` // of the UMEM
	Frames      int               `json:"frames"`
	Drops       map[string]uint64 `json:"drops"` // by reason; every reason that has occurred
}

// Version tells which program answers.
type Version struct {
	Version string    `json:"version"`
	Go      string    `json:"go"`
	Started time.Time `json:"started"`
	Pid     int       `json:"pid"`
}

// Window is a range of remotely writable memory.
type Window struct {
	VA   uint64 `json:"va"`
	Len  uint64 `json:"len"`
	RKey uint32 `json:"rkey"`
}

// Register asks for a group by hand, for applications that do not speak the
// envelope protocol.
type Register struct {
	Group   netip.Addr       `json:"group"`
	QPN     uint32           `json:"qpn"`
	PMTU    int              `json:"path_mtu"`
	Policy  string           `json:"policy"` // strict (default) or evict
	Window  *Window          `json:"window,omitempty"`
	Members []RegisterMember `json:"members"`
}

// RegisterMember is one member of a Register.
type RegisterMember struct {
	IP     netip.Addr `json:"ip"`
	QPN    uint32     `json:"qpn"`
	SQPSN  uint32     `json:"sq_psn"`
	RQPSN  uint32     `json:"rq_psn"`
	Window *Window    `json:"window,omitempty"`
}

// Error is the body of every answer that is not 2xx.
type Error struct {
	Message string `json:"error"`
	Reason  string `json:"reason,omitempty"` // a registration's rejection, as in the envelope protocol
}

// Error makes *Error an error.
func (e *Error) Error() string { return e.Message }

// Backend is what a server answers from; the dataplane's engine is one. Its
// methods are safe for concurrent use. An *Error returned by one is passed on
// with status 409 (404 if Reason is "unknown_group").
type Backend interface {
	Groups() ([]Group, error)
	Group(ip netip.Addr) (*Group, error)
	Register(r *Register) error
	Delete(ip netip.Addr) error
	Ports() ([]Port, error)
	Stats() (*Stats, error)
}
