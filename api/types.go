// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package api is gleamd's API, on its Unix socket and over TCP: the types, which are its
// JSON, a client and a server. Its answers come from a Backend.
package api

import (
	"context"
	"net/netip"
	"time"
)

// Group is one registered group and how its transfer stands.
type Group struct {
	IP            netip.Addr `json:"ip"`
	QPN           QPN        `json:"qpn"`
	PMTU          int        `json:"path_mtu"`
	Policy        string     `json:"policy"`             // strict, evict or quorum:K
	Origin        string     `json:"origin"`             // envelope, rdma-cm or api
	Dialled       netip.Addr `json:"dialled,omitzero"`   // the address that hosts know it by, if that is another one
	Replies       string     `json:"replies,omitempty"`  // the policy of replies, if the group's listeners are dialled: what becomes of the data that they send
	Epoch         uint64     `json:"epoch"`              // the epoch of the registration
	Master        string     `json:"master"`             // address, empty if registered by API
	Key           uint16     `json:"key,omitempty"`      // id of the key that the group belongs to; 0: none
	LeaseLeft     float64    `json:"lease_left"`         // seconds; 0: no lease
	Worker        int        `json:"worker"`             // the worker that the group belongs to, from 0
	State         string     `json:"state"`              // idle, running, failed
	Failure       string     `json:"failure,omitempty"`  // why the group has failed
	MTUText       string     `json:"too_long,omitempty"` // the reason for which its longest packets do not fit a port
	IsolationText string     `json:"isolated,omitempty"` // why some of its members may not send
	Ended         *Ended     `json:"ended,omitempty"`    // the end of a group that has ended: the rest is its final state
	Source        netip.Addr `json:"source,omitzero"`
	AckPSN        PSN        `json:"ack_psn"`                 // acked: every live receiver has all up to here
	NextPSN       PSN        `json:"next_psn"`                // nxt: the PSN after the last that was forwarded
	WaitsFor      netip.Addr `json:"waits_for,omitzero"`      // the member whose ACK the group waits for: during a stall, or beyond the others for longer than a round trip explains
	StallSeconds  float64    `json:"stall_seconds,omitempty"` // the time for which ack_psn has not moved, though packets are outstanding, from StallTime on
	SlowedBy      netip.Addr `json:"slowed_by,omitzero"`      // the member that has cost the group most in the last SlowTime, of those with a Slow
	SlowCause     string     `json:"slow_cause,omitempty"`    // the Slow of that member
	Members       []Member   `json:"members"`
	Counters      Counters   `json:"counters"`

	// Packets of the group that were not served, by reason, as in Stats.
	Normal map[string]uint64 `json:"normal,omitempty"`
	Drops  map[string]uint64 `json:"drops,omitempty"`

	Repair *Repair `json:"repair,omitempty"` // absent if the group is registered without

	FastPath *FastPath `json:"fast_path,omitempty"` // absent if fast_path is off

	Tree *Tree `json:"tree,omitempty"` // absent if all members are at this switch

	DeadAfterMS int            `json:"dead_after_ms"`      // 0: never
	LagPSNs     int            `json:"lag_psns,omitempty"` // lag limits; 0: none
	LagMS       int            `json:"lag_ms,omitempty"`
	Former      []FormerMember `json:"former,omitempty"` // the last ones that have gone, oldest first
}

// Unacknowledged returns the number of packets that were forwarded and are not acknowledged;
// 0 in a group that has had no source yet.
func (g *Group) Unacknowledged() int {
	const unused = 8 // bits of an int32 that a PSN lacks
	return max(0, int(int32((g.NextPSN-g.AckPSN)<<unused)>>unused)-1)
}

// Ended is the end of a group, with its reason.
type Ended struct {
	Reason string    `json:"reason"`
	Time   time.Time `json:"time"`
}

// Repair is the cost of a group's losses at the switch.
type Repair struct {
	Bytes            int64  `json:"bytes"`        // packet memory that holds unacknowledged data
	MaxRetainedBytes int64  `json:"max_bytes"`    // the most it was
	LimitBytes       int64  `json:"limit_bytes"`  // the most it may be
	NAKs             uint64 `json:"naks"`         // NAKs and RNR NAKs withheld from the source
	Copies           uint64 `json:"copies"`       // packets sent again from here, of Counters.Copies
	Probes           uint64 `json:"probes"`       // probes to silent receivers
	NotRetained      uint64 `json:"not_retained"` // packets for which there was no room
}

// FormerMember is a member that has gone since its group was registered.
type FormerMember struct {
	IP     netip.Addr `json:"ip"`
	QPN    QPN        `json:"qpn"`
	Port   string     `json:"port,omitempty"` // where it was
	PSN    *PSN       `json:"psn,omitempty"`  // evicted: it had everything up to here, in the source's space
	Reason string     `json:"reason"`
	Time   time.Time  `json:"time"`
}

// Member is one member of a Group.
type Member struct {
	IP      netip.Addr `json:"ip"`
	QPN     QPN        `json:"qpn"`
	Port    string     `json:"port"`
	MAC     string     `json:"mac"`
	VLAN    uint16     `json:"vlan,omitempty"`
	Switch  string     `json:"switch,omitempty"` // ID of the neighbour that it is behind; Port and MAC are the neighbour's
	Role    string     `json:"role"`             // source, receiver, receive-only (never the source), joining (receives from the next message on)
	Live    bool       `json:"live"`
	AckPSN  PSN        `json:"ack_psn"`           // the PSN in the current source's space
	Lag     int        `json:"lag"`               // packets behind next_psn - 1
	Pending string     `json:"pending,omitempty"` // kind of the pending NAK; repair: the switch resends missing packets
	Window  bool       `json:"window"`
	// Slow is the cause for which the member costs its group time now, SlowLoss
	// and so on; empty if it costs none, or no more than others.
	Slow string `json:"slow,omitempty"`
	Cost *Cost  `json:"cost,omitempty"` // absent of the source, and of a member that has received nothing yet
	// Diagnosis is the known cause, in words, that keeps the member from receiving;
	// empty if there is none.
	Diagnosis string `json:"diagnosis,omitempty"`
}

// Counters count one group's packets.
type Counters struct {
	DataIn      uint64 `json:"data_in"`
	DataBytes   uint64 `json:"data_bytes"` // payload of data_in
	Repeated    uint64 `json:"repeated"`   // packets of data_in that the source has sent again
	GoodBytes   uint64 `json:"good_bytes"` // payload of data_in without repetitions
	Copies      uint64 `json:"copies"`
	FeedbackIn  uint64 `json:"feedback_in"`
	FeedbackOut uint64 `json:"feedback_out"`
}

// Stats are the switch's totals.
type Stats struct {
	Uptime      float64 `json:"uptime"` // seconds
	Groups      int     `json:"groups"`
	Rx          uint64  `json:"rx"`           // group data packets in
	RxBytes     uint64  `json:"rx_bytes"`     // their payload
	Copies      uint64  `json:"copies"`       // data packets out
	Resent      uint64  `json:"resent"`       // copies that came from packet memory: repairs, and packets that were held
	PSNProbes   uint64  `json:"psn_probes"`   // probes of receivers' numbering
	CEMarked    uint64  `json:"ce_marked"`    // copies that got Congestion Experienced here
	FeedbackIn  uint64  `json:"feedback_in"`  // ACK, NAK, RNR, CNP from members
	FeedbackOut uint64  `json:"feedback_out"` // towards sources
	Neighbour   uint64  `json:"neighbour"`    // ARP, ND and echo answers, and announcements
	EnvelopeIn  uint64  `json:"envelope_in"`
	EnvelopeOut uint64  `json:"envelope_out"`
	FramesFree  int     `json:"frames_free"` // free frames of the UMEM
	Frames      int     `json:"frames"`

	// Packets that were not served, by reason; every reason that has occurred.
	// docs/COUNTERS.md has their meanings. The protocol has no further use for those in
	// Normal, or repeats them by itself: a healthy switch has them. Those in Drops were
	// lost, or come from a mistake.
	Normal map[string]uint64 `json:"normal"`
	Drops  map[string]uint64 `json:"drops"`

	Control Control `json:"control"`

	// EnvelopePartial is how many of EnvelopeIn had a UDP checksum that the host
	// left to its interface, as hosts behind a veth do.
	EnvelopePartial uint64 `json:"envelope_partial"`

	Epoch         uint64            `json:"epoch"`         // another one with each start of gleamd, and higher
	Events        map[string]uint64 `json:"events"`        // events by kind, since gleamd started
	Registrations map[string]uint64 `json:"registrations"` // registrations by outcome: OutcomeAccepted, OutcomeUnchanged or the reason of the rejection
	Workers       []Worker          `json:"workers"`
	Queues        Queues            `json:"queues"`
	Times         Times             `json:"times"`

	Moves Moves `json:"moves"`

	Remote *RemoteStats `json:"api,omitempty"` // absent if there is no API over TCP
}

// Outcomes of registrations that are not rejected, in Stats.Registrations. An update counts as a
// registration.
const (
	OutcomeAccepted  = "accepted"
	OutcomeUnchanged = "unchanged" // the same as the live one: the group goes on
)

// Control has the counters of the control loop: registrations, leases, members'
// locations.
type Control struct {
	Iterations       uint64   `json:"iterations"`
	LongestIteration float64  `json:"longest_iteration"` // the longest iteration of the loop, in seconds: nothing else was served meanwhile
	Lookups          uint64   `json:"lookups"`           // lookups of members' locations and ports in the kernel
	Hosts            int      `json:"hosts"`             // hosts whose locations are known or being looked up
	Resyncs          uint64   `json:"resyncs"`           // times that netlink messages were lost, so that everything was looked up again
	NotWatched       []string `json:"not_watched,omitempty"`

	State *StateFile `json:"state,omitempty"` // nil: no groups are kept over a restart
}

// StateFile has how the writing of the state file goes.
type StateFile struct {
	Writes  uint64 `json:"writes"`
	Errors  uint64 `json:"errors"`            // writes that have failed; they are tried again
	Waiting bool   `json:"waiting,omitempty"` // true: there are changes that are not durable
	Failing string `json:"failing,omitempty"` // why the last write has failed: no members are taken, and what waits is not answered
}

// Unserved returns how many packets were not served for reason, whether that is
// normal or not.
func (s *Stats) Unserved(reason string) uint64 { return s.Normal[reason] + s.Drops[reason] }

// Version is the version of the daemon.
type Version struct {
	Version  string    `json:"version"`
	Commit   string    `json:"commit"` // the commit of the source, 12 digits, with +dirty if that was changed; unknown
	Go       string    `json:"go"`
	Platform string    `json:"platform"` // the platform, such as linux/amd64
	Started  time.Time `json:"started"`
	Pid      int       `json:"pid"`
}

// Window is a range of remotely writable memory.
type Window struct {
	VA   uint64 `json:"va"`
	Len  uint64 `json:"len"`
	RKey uint32 `json:"rkey"`
}

// Register registers a group by hand, for applications that do not speak the envelope
// protocol.
type Register struct {
	Group   netip.Addr       `json:"group"`
	QPN     QPN              `json:"qpn"`
	PMTU    int              `json:"path_mtu"`
	Policy  string           `json:"policy"` // strict (default), evict or quorum:K
	Window  *Window          `json:"window,omitempty"`
	Members []RegisterMember `json:"members"`

	// DeadAfterMS is the time, in ms, for which a silent receiver is waited for while
	// others make progress. 0 is the default: 100 under evict and quorum, 10 s under
	// strict, or the senders' timeout times their tries if that is longer. -1: never.
	DeadAfterMS int `json:"dead_after_ms,omitempty"`
	// LagPSNs and LagMS are the lag in PSNs, or in ms, behind another receiver beyond
	// which a live receiver is removed. 0: never. Not under strict.
	LagPSNs int `json:"lag_psns,omitempty"`
	LagMS   int `json:"lag_ms,omitempty"`
	// SenderTimeout (exponent, 4.096 µs * 2^n) and SenderRetries are those of the
	// members' queue pairs: dead_after is checked against them. Both 0: not known.
	SenderTimeout uint8 `json:"sender_timeout,omitempty"`
	SenderRetries uint8 `json:"sender_retries,omitempty"`
	// Replace ends a different live group of the same address, under any key or by hand.
	// Without it such a Register is refused with ReasonGroupExists.
	Replace bool `json:"replace,omitempty"`
	// NoRepair leaves the repair of losses to the sources alone. Otherwise the switch
	// repairs losses from its own memory as far as it can.
	NoRepair bool `json:"no_repair,omitempty"`
}

// AddMember adds a member to a group that was registered by hand.
type AddMember struct {
	RegisterMember
	// Replace lets it replace the member with its address, which has restarted its queue
	// pair.
	Replace bool `json:"replace,omitempty"`
}

// Kinds of Event.
const (
	EventRegistered = "registered" // a group
	EventUpdated    = "updated"    // a group's members
	EventRebuilt    = "rebuilt"    // a group's tree; Reason is the link that was lost, or why it could not be built
	EventRejected   = "rejected"   // a registration or update
	EventJoined     = "joined"     // a member, by an update
	EventLeft       = "left"       // a member, by itself
	EventRemoved    = "removed"    // a member, by the master or operator
	EventEvicted    = "evicted"    // a member, by the switch; it had everything up to PSN
	EventFailed     = "failed"     // a group; the source got a fatal NAK at PSN
	EventRefused    = "refused"    // a request of a source at PSN that no group can execute
	EventSource     = "source"     // a member is the source from PSN on
	EventEnded      = "ended"      // a group
	EventMoved      = "moved"      // a member: to the location in Reason, which also names the confirmation
	EventAudit      = "audit"      // a user requested by the API the change that Reason names
	EventNeighbour  = "neighbour"  // a neighbour switch is up, or down, as Reason says
	EventConflict   = "conflict"   // the switches of a group disagree on its source: a neighbour sends data of Member, and that of the source is not acknowledged at PSN
	EventSlow       = "slow"       // a member costs its group time: Reason begins with the cause, SlowLoss and so on
	EventStalled    = "stalled"    // a group's ACK has not advanced for StallTime, though packets are outstanding: it waits for Member, at PSN
	EventResumed    = "resumed"    // a group's ACK advances again, or Member costs it no time any more
	EventPort       = "port"       // Port is up, or down, as Reason says
	EventStarted    = "started"    // gleamd, as the version in Reason, which also says what it knows of before; it is the first event
	EventStorage    = "storage"    // the state file cannot be written, or can again, as Reason says
	EventMTU        = "mtu"        // packets of a group do not fit a port's MTU, or fit again
)

// EventKinds are all kinds of Event.
var EventKinds = []string{
	EventRegistered, EventUpdated, EventRebuilt, EventRejected, EventJoined, EventLeft, EventRemoved, EventEvicted, EventFailed, EventRefused,
	EventSource, EventEnded, EventMoved, EventAudit, EventNeighbour, EventConflict, EventSlow, EventStalled, EventResumed, EventPort, EventStarted, EventStorage, EventMTU, EventMismatch,
}

// EventMismatch is the Kind of an Event about a member whose packets do not fit its
// registration: Reason names the number that is likely wrong.
const EventMismatch = "mismatch"

// Event is an event of a group.
type Event struct {
	Seq    uint64     `json:"seq"` // counts up by one since the daemon started
	Time   time.Time  `json:"time"`
	Kind   string     `json:"kind"`
	Group  netip.Addr `json:"group,omitzero"`
	Member netip.Addr `json:"member,omitzero"`
	QPN    QPN        `json:"qpn,omitempty"`  // the QPN of Member
	Port   string     `json:"port,omitempty"` // the port of an EventPort, or the one where Member is
	By     string     `json:"by,omitempty"`   // author of the request: key and address, or user and process
	PSN    *PSN       `json:"psn,omitempty"`
	Reason string     `json:"reason,omitempty"`
}

// Events is the answer to a request for events.
type Events struct {
	Events []Event `json:"events"` // the events in order
	Last   uint64  `json:"last"`   // Seq of the newest there is
	Lost   uint64  `json:"lost"`   // requested events that are no longer stored
}

// RegisterMember is one member of a Register.
type RegisterMember struct {
	IP     netip.Addr `json:"ip"`
	QPN    QPN        `json:"qpn"`
	SQPSN  PSN        `json:"sq_psn"`
	RQPSN  PSN        `json:"rq_psn"`
	Window *Window    `json:"window,omitempty"`
	// ReceiveOnly members never become the source.
	ReceiveOnly bool `json:"receive_only,omitempty"`
}

// Error is the body of every answer that is not 2xx.
type Error struct {
	Message string `json:"error"`
	Reason  string `json:"reason,omitempty"` // a registration's rejection, as in the envelope protocol
}

// Error makes *Error an error.
func (e *Error) Error() string { return e.Message }

// Backend is the source of a server's answers; control.Engine is one. Its
// methods are safe for concurrent use. An *Error returned by one is passed on with
// status 409 (404 if Reason is "unknown_group", "unknown_member" or "unknown_port").
type Backend interface {
	// Groups returns the groups that q selects, in the order of their addresses; all, if it is nil.
	Groups(q *GroupQuery) ([]Group, error)
	Group(ip netip.Addr) (*Group, error)
	// EndedGroups returns the last states of groups that are no more, oldest first:
	// as many as are remembered. One address may be there several times.
	EndedGroups() ([]Group, error)
	Register(r *Register) error
	// CreateGroup lets programs join a group by RDMA-CM. Delete ends that, too.
	CreateGroup(g *CreateGroup) error
	Delete(ip netip.Addr) error
	// AddMember and RemoveMember change a group that was registered by hand.
	AddMember(group netip.Addr, m *AddMember) error
	RemoveMember(group, member netip.Addr) error
	// MoveMember confirms that a member has moved, in all its groups.
	MoveMember(group, member netip.Addr, m *MoveMember) error
	// Events returns the events after the one with Seq after, and waits for one until
	// ctx ends, which is no error. All stored events come after 0, and also if after is
	// higher than any Seq: the daemon has been restarted.
	Events(ctx context.Context, after uint64) (*Events, error)
	Ports() ([]Port, error)
	SetPort(name string, s *SetPort) error
	Topology() (*Topology, error)
	// Explain puts a packet to a copy of the group's state, and ExplainACK says what its next
	// acknowledgement waits for. Neither changes anything.
	Explain(group netip.Addr, p *ExplainPacket) (*Explanation, error)
	ExplainACK(group netip.Addr) (*ACKExplanation, error)
	Stats() (*Stats, error)
	Kernel() (*Kernel, error)
	Tracer
	// Audit gets each requested change, after it was done or refused.
	Audit(*Change)
}
