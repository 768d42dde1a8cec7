// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Version is the version of the exchange that this package speaks.
const Version = 2

// MaxLine is the longest message in bytes, with its newline, and MaxApp the
// longest App.
const (
	MaxLine = 64 << 10
	MaxApp  = 32 << 10
)

// ConnInfo is the connection state of a member's queue pair.
type ConnInfo struct {
	IP     netip.Addr `json:"ip"`
	QPN    rocev2.QPN `json:"qpn"`
	SQPSN  rocev2.PSN `json:"sq_psn"`
	RQPSN  rocev2.PSN `json:"rq_psn"`
	Window *Window    `json:"window,omitempty"` // target of WRITEs to the group
	// ReceiveOnly: the queue pair never sends to the group.
	ReceiveOnly bool `json:"receive_only,omitempty"`

	App json.RawMessage `json:"app,omitempty"`
}

// Window is a range of remotely writable memory.
type Window struct {
	VA   uint64 `json:"va"`
	Len  uint64 `json:"len"` // bytes
	RKey uint32 `json:"rkey"`
}

// String describes w without its R_Key.
func (w Window) String() string { return fmt.Sprintf("0x%x+0x%x", w.VA, w.Len) }

// GoString is String: %#v must not print an R_Key either.
func (w Window) GoString() string { return w.String() }

// Group is the virtual peer that a member's queue pair connects to.
type Group struct {
	IP      netip.Addr `json:"ip"`               // GroupIP
	QPN     rocev2.QPN `json:"qpn"`              // the virtual QPN
	PathMTU int        `json:"path_mtu"`         // bytes
	Members int        `json:"members"`          // members, the master included
	Window  *Window    `json:"window,omitempty"` // address range of WRITEs to the group
	// TargetKey is the R_Key of target messages; 0 for none.
	TargetKey uint32          `json:"target_key,omitempty"`
	App       json.RawMessage `json:"app,omitempty"`
}

// String describes g without its R_Keys.
func (g Group) String() string {
	return fmt.Sprintf("group %s QPN 0x%x, path MTU %d, %d members, window %v", g.IP, uint32(g.QPN), g.PathMTU, g.Members, g.Window)
}

// GoString is String: %#v must not print an R_Key either.
func (g Group) GoString() string { return g.String() }

// Types of message.
const (
	typeHello      = "hello"
	typeGroup      = "group"
	typeReady      = "ready"
	typeRegistered = "registered"
	typeError      = "error"
)

type message struct {
	Version int       `json:"v"`
	Type    string    `json:"type"`
	Member  *ConnInfo `json:"member,omitempty"`
	Group   *Group    `json:"group,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// Check returns a fault of c by itself, or nil.
func (c *ConnInfo) Check() error {
	switch {
	case !hostAddr(c.IP):
		return fmt.Errorf("%v is no host's address", c.IP)
	case !c.QPN.Valid():
		return fmt.Errorf("QPN 0x%x is not a reliable connected queue pair's: want 0x10 to 0xfffffe", uint32(c.QPN))
	case c.SQPSN > rocev2.PSNMask || c.RQPSN > rocev2.PSNMask:
		return fmt.Errorf("sq_psn 0x%x, rq_psn 0x%x: PSNs have 24 bits", uint32(c.SQPSN), uint32(c.RQPSN))
	case len(c.App) > MaxApp:
		return fmt.Errorf("%d bytes for the application: the limit is %d", len(c.App), MaxApp)
	}
	return c.Window.check()
}

// Check returns a fault of g by itself, or nil.
func (g *Group) Check() error {
	switch {
	case !hostAddr(g.IP):
		return fmt.Errorf("GroupIP %v is no unicast address", g.IP)
	case !g.QPN.Valid():
		return fmt.Errorf("virtual QPN 0x%x: want 0x10 to 0xfffffe", uint32(g.QPN))
	case !rocev2.ValidPathMTU(g.PathMTU):
		return fmt.Errorf("path MTU %d: want %s", g.PathMTU, rocev2.PathMTUText)
	case len(g.App) > MaxApp:
		return fmt.Errorf("%d bytes for the application: the limit is %d", len(g.App), MaxApp)
	}
	return g.Window.check()
}

func (w *Window) check() error {
	if w != nil && (w.Len == 0 || w.VA+(w.Len-1) < w.VA) {
		return fmt.Errorf("window %v is empty or passes the end of the address space", *w)
	}
	return nil
}

func hostAddr(a netip.Addr) bool {
	return a.IsValid() && !a.Is4In6() && a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast()
}

// errTooLong is for a line longer than MaxLine.
var errTooLong = fmt.Errorf("a message of more than %d bytes", MaxLine)

// parse decodes one line and checks all that does not depend on the expected type.
func parse(line []byte) (m message, err error) {
	// The version comes first: messages of another version may have other fields.
	var v struct {
		Version *int   `json:"v"`
		Type    string `json:"type"`
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return m, fmt.Errorf("a message that is not JSON of this exchange (%s): %w", excerpt(line), err)
	}
	if v.Version == nil {
		return m, fmt.Errorf("a message without a version (%s)", excerpt(line))
	}
	if *v.Version != Version && v.Type != typeError { // the error message is the same in every version
		return m, fmt.Errorf("version %d of the exchange, this is version %d: use the same release on all hosts", *v.Version, Version)
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return m, fmt.Errorf("a malformed message: %w", err)
	}
	switch {
	case m.Type == typeHello && m.Member == nil:
		return m, errors.New("a hello without a member")
	case m.Type == typeGroup && m.Group == nil:
		return m, errors.New("a group message without a group")
	case m.Type == typeHello:
		err = m.Member.Check()
	case m.Type == typeGroup:
		err = m.Group.Check()
	}
	if err != nil {
		return m, fmt.Errorf("an unusable %s: %w", m.Type, err)
	}
	return m, nil
}

// excerpt quotes the beginning of a peer's message.
func excerpt(b []byte) string { return fmt.Sprintf("%.40q", b) }

// printable makes a peer's error text fit for a terminal.
func printable(s string) string {
	const limit = 1024
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	if len(s) > limit {
		s = s[:limit] + "…"
	}
	return s
}
