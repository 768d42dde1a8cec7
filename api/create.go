// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"io"
	"net/netip"

	"github.com/gleam-rdma/gleam/mcast"
)

// CreateGroup lets programs join a group by connecting to it by RDMA-CM (docs/CM.md). The
// group is registered when all expected members have connected.
type CreateGroup struct {
	Group       netip.Addr     `json:"group"`
	Port        uint16         `json:"port"`                    // the port that programs pass to rdma_connect
	Expect      int            `json:"expect,omitempty"`        // members
	PMTU        int            `json:"path_mtu,omitempty"`      // bytes; 0: that of the first member
	Policy      string         `json:"policy,omitempty"`        // strict, evict or quorum:K; empty means strict
	DeadAfterMS int            `json:"dead_after_ms,omitempty"` // the same as in Register
	Window      *Window        `json:"window,omitempty"`        // the memory that sources WRITE to
	NoRepair    bool           `json:"no_repair,omitempty"`
	Key         uint16         `json:"key,omitempty"`  // the key that members prove in their private data; 0: they need none
	From        []netip.Prefix `json:"from,omitempty"` // addresses of members
	WaitMS      int            `json:"wait_ms"`        // the time to wait for the other members; 0 means DefaultWaitMS

	// Listeners are dialled in the group's name when a program connects; then From and Key
	// are that program's, and Expect is not given.
	Listeners []netip.AddrPort `json:"listeners,omitempty"`
	Replies   string           `json:"replies,omitempty"`  // what becomes of data that listeners send; empty means RepliesRefuse
	Sessions  int              `json:"sessions,omitempty"` // connections of programs at once; each beyond the first is registered under the next address. 0 means 1
	Strip     bool             `json:"strip,omitempty"`    // listeners do not get the program's private data
}

// Policies of replies.
const (
	RepliesRefuse = "refuse" // data of a listener gets a NAK
	RepliesSource = "source" // any member may be the source, in turns
	RepliesLeader = "leader" // data of the first listener goes to the program, that of the others is acknowledged and dropped
)

// maxSessions bounds CreateGroup.Sessions.
const maxSessions = 16

// DefaultWaitMS is the default of CreateGroup.WaitMS. Linux gives up after 78 s.
const DefaultWaitMS = 60_000

// Params returns the group's parameters. Its error is a *FieldError.
func (g *CreateGroup) Params() (mcast.GroupParams, error) { return g.register().Params() }

// register returns the registration that g becomes, without its members.
func (g *CreateGroup) register() *Register {
	return &Register{Group: g.Group, QPN: DefaultQPN, PMTU: g.PMTU, Policy: g.Policy, DeadAfterMS: g.DeadAfterMS, Window: g.Window, NoRepair: g.NoRepair}
}

// Default fills in optional fields.
func (g *CreateGroup) Default() {
	r := g.register()
	r.Default()
	g.Policy, g.DeadAfterMS = r.Policy, r.DeadAfterMS
	if g.WaitMS == 0 {
		g.WaitMS = DefaultWaitMS
	}
	if len(g.Listeners) > 0 && g.Replies == "" {
		g.Replies = RepliesRefuse
	}
	if len(g.Listeners) > 0 && g.Sessions == 0 {
		g.Sessions = 1
	}
}

// members returns how many members the group is to have.
func (g *CreateGroup) members() int {
	if len(g.Listeners) > 0 {
		return len(g.Listeners) + 1
	}
	return g.Expect
}

// validateListeners checks what concerns listeners alone.
func (g *CreateGroup) validateListeners(bad func(field, format string, args ...any) error) error {
	if len(g.Listeners) == 0 {
		if g.Replies != "" || g.Sessions != 0 || g.Strip {
			return bad("listeners", "missing: replies, sessions and strip are of a group whose listeners are dialled")
		}
		return nil
	}
	switch {
	case g.Expect != 0:
		return bad("expect", "%d is given, and so are listeners: the group has these and the program that connects", g.Expect)
	case g.Replies != RepliesRefuse && g.Replies != RepliesSource && g.Replies != RepliesLeader:
		return bad("replies", "%q is none of %s, %s, %s", g.Replies, RepliesRefuse, RepliesLeader, RepliesSource)
	case g.Sessions < 1 || g.Sessions > maxSessions:
		return bad("sessions", "%d is not in 1 to %d", g.Sessions, maxSessions)
	}
	seen := make(map[netip.Addr]bool)
	for _, l := range g.Listeners {
		switch {
		case !l.IsValid() || l.Addr().Is4() != g.Group.Is4():
			return bad("listeners", "%s is no address of the group's family", l)
		case l.Port() == 0:
			return bad("listeners", "%s has no port to listen at", l.Addr())
		case seen[l.Addr()]:
			return bad("listeners", "%s is named twice: a group has one member for each address", l.Addr())
		case l.Addr() == g.Group:
			return bad("listeners", "%s is the group's own address", l.Addr())
		}
		seen[l.Addr()] = true
	}
	return nil
}

// Validate checks what can be checked without knowing the switch. Its error is a *FieldError.
func (g *CreateGroup) Validate() error {
	bad := func(field, format string, args ...any) error {
		return &FieldError{Member: -1, Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	r := g.register()
	r.Default()
	params, err := r.Params()
	if err != nil {
		return err
	}
	switch p := addrProblem(g.Group); {
	case p != "":
		return bad("group", "%s", p)
	case g.Port == 0:
		return bad("port", "0 is no port: give the one that programs connect to")
	case g.members() < 2 || g.members() > MaxMembers:
		return bad("expect", "%d is not in 2 to %d: a group has a source and a receiver at least", g.members(), MaxMembers)
	case g.WaitMS < 0 || g.WaitMS > maxMS:
		return bad("wait_ms", "%d is not in 0 to %d", g.WaitMS, maxMS)
	case g.Key == 0 && len(g.From) == 0:
		return bad("from", "missing, and so is a key: name the addresses that members may have, or the key of their private data")
	}
	if err := g.validateListeners(bad); err != nil {
		return err
	}
	if e := params.Check(g.members() - 1); e != nil && e.Param == mcast.ParamQuorum {
		return bad("policy", "quorum:%s", e.Problem)
	} else if e != nil {
		return bad(paramFields[e.Param], "%s", e.Problem)
	}
	for _, p := range g.From {
		if !p.IsValid() || p.Addr().Is4() != g.Group.Is4() {
			return bad("from", "%s is no prefix of the group's family", p)
		}
	}
	if g.Window != nil {
		if field, p := g.Window.problem(); p != "" {
			return bad("window."+field, "%s", p)
		}
	}
	return nil
}

func (g *CreateGroup) summary() string {
	if len(g.Listeners) > 0 {
		return fmt.Sprintf("create group: %s, port %d, %d listeners by RDMA-CM, replies %s", g.Policy, g.Port, len(g.Listeners), g.Replies)
	}
	return fmt.Sprintf("create group: %s, port %d, %d members by RDMA-CM", g.Policy, g.Port, g.Expect)
}

// DecodeCreateGroup reads one CreateGroup as strictly as DecodeRegister reads.
func DecodeCreateGroup(body io.Reader) (*CreateGroup, error) {
	g := new(CreateGroup)
	if err := decode(body, g, "group"); err != nil {
		return nil, err
	}
	g.Default()
	return g, g.Validate()
}

// CreateGroup lets programs join a group by RDMA-CM.
func (c *Client) CreateGroup(ctx context.Context, g *CreateGroup) error {
	return c.call(ctx, "POST", "/v1/created", g, nil)
}
