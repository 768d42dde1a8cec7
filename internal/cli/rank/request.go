// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// MaxPacket is the most bytes of a packet of either side.
const MaxPacket = 64 << 10

// Bounds of requests.
const (
	maxGroups = 64      // groups of a process
	maxWindow = 1 << 40 // bytes
	maxPosts  = 128     // posts of a group that are not complete
	maxWait   = time.Hour
)

// request is what the process asks for.
type request struct {
	Op          string     `json:"op"`
	ID          uint64     `json:"id"`
	G           int        `json:"g"`                       // the group's number, from 1
	Bytes       int64      `json:"bytes,omitempty"`         // window: the size of the memory
	Master      master     `json:"master,omitempty"`        // window: true at the master; join: where it listens
	Name        string     `json:"name,omitempty"`          // window: processes of this address with the same name share it
	Alone       bool       `json:"alone,omitempty"`         // window: nobody else may share it
	IP          netip.Addr `json:"ip,omitzero"`             // make: GroupIP
	Members     int        `json:"members,omitempty"`       // make: without the master
	DeadAfterMS int64      `json:"dead_after_ms,omitempty"` // make: silence of a member that is dead
	MTU         int        `json:"mtu,omitempty"`           // make: the path MTU [the most that the port allows]
	TimeoutMS   int64      `json:"timeout_ms,omitempty"`    // make, join [30000]
	Member      netip.Addr `json:"member,omitzero"`         // remove
	QPN         rocev2.QPN `json:"qpn,omitempty"`           // remove: of the member's queue pair
	Offset      int64      `json:"offset,omitempty"`        // post: the first byte in the window
	Len         int64      `json:"len,omitempty"`           // post: bytes
	Imm         uint32     `json:"imm,omitempty"`           // post: the immediate
}

// master is true, or an address.
type master struct {
	here bool
	at   netip.AddrPort
}

// UnmarshalJSON reads a boolean or a text.
func (m *master) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '"' {
		return json.Unmarshal(b, &m.here)
	}
	return json.Unmarshal(b, &m.at)
}

// decode reads one request. The ID and G of a refused one are those that were read.
func decode(b []byte) (r request, err error) {
	if len(b) > MaxPacket {
		return r, fmt.Errorf("a request has at most %d bytes", MaxPacket)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("no request: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("no request: a packet has one object")
	}
	return r, r.check()
}

// check returns the reason why r makes no sense, whatever the state of its group.
func (r *request) check() error {
	switch {
	case r.G < 1 || r.G > maxGroups:
		return fmt.Errorf("g %d: want 1 to %d", r.G, maxGroups)
	case r.TimeoutMS < 0 || r.TimeoutMS > maxWait.Milliseconds() || r.DeadAfterMS < 0 || r.DeadAfterMS > maxWait.Milliseconds():
		return fmt.Errorf("timeout_ms %d, dead_after_ms %d: want 0 to %d", r.TimeoutMS, r.DeadAfterMS, maxWait.Milliseconds())
	}
	switch r.Op {
	case "window":
		if r.Bytes < 1 || r.Bytes > maxWindow {
			return fmt.Errorf("bytes %d: want 1 to %d", r.Bytes, int64(maxWindow))
		}
	case "make":
		if !r.IP.IsValid() || r.Members < 1 || r.MTU != 0 && !rocev2.ValidPathMTU(r.MTU) {
			return fmt.Errorf("ip %q, members %d, mtu %d: want GroupIP, 1 member at least, and %s", r.IP, r.Members, r.MTU, rocev2.PathMTUText)
		}
	case "join":
		if !r.Master.at.IsValid() {
			return errors.New("want the master's address and port")
		}
	case "remove":
		if !r.Member.IsValid() || !r.QPN.Valid() {
			return errors.New("want the member's address, and the number of its queue pair")
		}
	case "post":
		if r.Offset < 0 || r.Len < 0 || r.Len > 1<<30 {
			return fmt.Errorf("offset %d, len %d: want no negative ones, and at most %d bytes", r.Offset, r.Len, 1<<30)
		}
	case "leave":
	default:
		return fmt.Errorf("op %q: want window, make, join, post, remove or leave", r.Op)
	}
	return nil
}

// timeout is how long make and join wait.
func (r *request) timeout() time.Duration {
	return time.Duration(cmp.Or(r.TimeoutMS, 30_000)) * time.Millisecond
}

// answer is a packet to the process.
type answer struct {
	Re     uint64      `json:"re,omitempty"`    // the request's ID
	Error  string      `json:"error,omitempty"` // why it failed
	G      int         `json:"g,omitempty"`
	At     string      `json:"at,omitempty"` // window: where members join
	Done   []uint64    `json:"done,omitempty"`
	Got    [][2]uint64 `json:"got,omitempty"` // imm and len
	QPN    rocev2.QPN  `json:"qpn,omitempty"` // make, join: of this address's queue pair; else of Member's
	Event  string      `json:"event,omitempty"`
	Member string      `json:"member,omitempty"`
	Text   string      `json:"text,omitempty"` // the cause of the event
}
