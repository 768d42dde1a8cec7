// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// MoveMember is a member's location in all its groups, as an operator confirms it. If
// it names none, the location is that of the last unconfirmed sighting.
type MoveMember struct {
	Port string `json:"port,omitempty"`
	MAC  string `json:"mac,omitempty"` // the member's new MAC address, if it has changed
}

// ReasonMove means that a member cannot be moved there.
const ReasonMove = "cannot_move"

// Moves are counts about members that were seen elsewhere than where they are pinned.
type Moves struct {
	Inquiries   uint64 `json:"inquiries"`   // inquiries to members
	Confirmed   uint64 `json:"confirmed"`   // moves that the member, or the operator, has confirmed
	Unconfirmed uint64 `json:"unconfirmed"` // times that no valid answer came from there
	Stray       uint64 `json:"stray"`       // authentic answers from elsewhere, or after the deadline
}

// Address returns the MAC address; the zero value if there is none.
func (m *MoveMember) Address() (mac [6]byte) {
	if a, err := net.ParseMAC(m.MAC); err == nil {
		copy(mac[:], a)
	}
	return mac
}

// Validate returns the first error of m.
func (m *MoveMember) Validate() error {
	if m.MAC == "" {
		return nil
	}
	a, err := net.ParseMAC(m.MAC)
	if err != nil || len(a) != 6 || a[0]&1 != 0 || m.Address() == [6]byte{} {
		return fmt.Errorf("mac: %q is not the MAC address of a host", m.MAC)
	}
	return nil
}

// DecodeMoveMember reads one MoveMember as strictly as DecodeRegister reads, and
// validates it.
func DecodeMoveMember(body io.Reader) (*MoveMember, error) {
	m := new(MoveMember)
	if err := decode(body, m, "move of a member"); err != nil {
		return nil, err
	}
	return m, m.Validate()
}

// moveMember's arg is {group}/members/{member}.
func (h *handler) moveMember(r *http.Request, arg string) (any, error) {
	g, s, _ := strings.Cut(arg, "/members/")
	group, err := parseIP(g)
	if err != nil {
		return nil, err
	}
	member, err := netip.ParseAddr(s)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "member address %q: %s", s, err)
	}
	m, err := DecodeMoveMember(r.Body)
	if errors.Is(err, errTooLarge) {
		return nil, refuse(http.StatusRequestEntityTooLarge, "%s", err)
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%s", err)
	}
	return nil, h.backend.MoveMember(group, member.Unmap(), m)
}

// MoveMember confirms by hand that a member has moved.
func (c *Client) MoveMember(ctx context.Context, group, member netip.Addr, m *MoveMember) error {
	return c.call(ctx, "PATCH", groupPath(group)+"/members/"+url.PathEscape(member.String()), m, nil)
}
