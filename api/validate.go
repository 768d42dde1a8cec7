// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Defaults of a Register whose fields are left out.
const (
	DefaultPMTU = rocev2.DefaultPathMTU // bytes
	DefaultQPN  = QPN(mcast.DefaultQPN)
)

// Policies, as in Register.Policy and Group.Policy.
const (
	PolicyStrict = "strict"
	PolicyEvict  = "evict"
	PolicyQuorum = "quorum" // followed by :K
)

// DefaultDeadAfterMS is Register.DeadAfterMS under evict and quorum.
const DefaultDeadAfterMS = 100

// maxMS bounds durations: a day.
const maxMS = 24 * 60 * 60 * 1000

// ParsePolicy takes a policy apart: its name and, of quorum:K, K.
func ParsePolicy(s string) (name string, quorum int, err error) {
	if s == PolicyStrict || s == PolicyEvict {
		return s, 0, nil
	}
	if k, ok := strings.CutPrefix(s, PolicyQuorum+":"); ok {
		if n, err := strconv.ParseUint(k, 10, 16); err == nil && n > 0 {
			return PolicyQuorum, int(n), nil
		}
		return "", 0, fmt.Errorf("%q: K of quorum:K is a number of receivers, 1 or more", s)
	}
	return "", 0, fmt.Errorf("%q is none of %s, %s and %s:K", s, PolicyStrict, PolicyEvict, PolicyQuorum)
}

// MaxMembers is the most members a Register may name. A daemon may allow
// fewer.
const MaxMembers = 4096

// FieldError is an error of one field of a Register.
type FieldError struct {
	Member  int    // index in Register.Members; -1: not of a member
	Field   string // the field's JSON name; window.len for one inside a window
	Problem string // begins with the offending value, where there is one
}

// Error names the field as its JSON path.
func (e *FieldError) Error() string {
	if e.Member < 0 {
		return fmt.Sprintf("%s: %s", e.Field, e.Problem)
	}
	return fmt.Sprintf("members[%d].%s: %s", e.Member, e.Field, e.Problem)
}

// paramFields are the fields of Register for the parameters of a group.
var paramFields = map[mcast.Param]string{
	mcast.ParamQPN: "qpn", mcast.ParamPathMTU: "path_mtu", mcast.ParamPolicy: "policy", mcast.ParamDeadAfter: "dead_after_ms",
	mcast.ParamLagPSNs: "lag_psns", mcast.ParamLagTime: "lag_ms", mcast.ParamSenderTimeout: "sender_timeout", mcast.ParamSenderRetries: "sender_retries",
}

// policies are the core's by name.
var policies = map[string]mcast.Policy{PolicyStrict: mcast.Strict, PolicyEvict: mcast.Evict, PolicyQuorum: mcast.Quorum}

// Params returns the group's parameters. Its error is a *FieldError.
func (r *Register) Params() (mcast.GroupParams, error) {
	bad := func(field, format string, args ...any) (mcast.GroupParams, error) {
		return mcast.GroupParams{}, &FieldError{Member: -1, Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	policy, quorum, err := ParsePolicy(r.Policy)
	switch {
	case err != nil:
		return bad("policy", "%s", err)
	case r.DeadAfterMS < -1 || r.DeadAfterMS > maxMS:
		return bad("dead_after_ms", "%d is not in 0 to %d, nor -1 for never", r.DeadAfterMS, maxMS)
	case r.LagMS < 0 || r.LagMS > maxMS:
		return bad("lag_ms", "%d is not in 0 to %d", r.LagMS, maxMS)
	}
	p := mcast.GroupParams{
		QPN: rocev2.QPN(r.QPN), PathMTU: r.PMTU, Policy: policies[policy], Quorum: quorum,
		DeadAfter: time.Duration(r.DeadAfterMS) * time.Millisecond, LagPSNs: r.LagPSNs, LagTime: time.Duration(r.LagMS) * time.Millisecond,
		SenderTimeout: r.SenderTimeout, SenderRetries: r.SenderRetries,
	}
	if r.DeadAfterMS == -1 {
		p.WaitForEver()
	}
	return p, nil
}

// Default fills in optional fields: DefaultQPN, DefaultPMTU, policy strict,
// DefaultDeadAfterMS unless the policy is strict, whose default is the switch's.
func (r *Register) Default() {
	if r.QPN == 0 {
		r.QPN = DefaultQPN
	}
	if r.PMTU == 0 {
		r.PMTU = DefaultPMTU
	}
	if r.Policy == "" {
		r.Policy = PolicyStrict
	}
	if r.DeadAfterMS == 0 && r.Policy != PolicyStrict {
		r.DeadAfterMS = DefaultDeadAfterMS
	}
}

// Validate checks everything that can be checked without knowing the switch:
// ranges, sets, duplicates, one address family, windows. With a group window,
// one member at most may lack a window of its own: the one that is always the
// source. Its error is a *FieldError.
func (r *Register) Validate() error {
	bad := func(field, format string, args ...any) error {
		return &FieldError{Member: -1, Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	if p := addrProblem(r.Group); p != "" {
		return bad("group", "%s", p)
	}
	params, err := r.Params()
	if err != nil {
		return err
	}
	// With fewer than two members, the error is about their number.
	receivers := len(r.Members) - 1
	if receivers < 1 {
		receivers = params.Quorum
	}
	if e := params.Check(receivers); e != nil {
		if e.Param == mcast.ParamQuorum {
			return bad("policy", "quorum:%s", e.Problem)
		}
		return bad(paramFields[e.Param], "%s", e.Problem)
	}
	if r.Window != nil {
		if field, p := r.Window.problem(); p != "" {
			return bad("window."+field, "%s", p)
		}
	}
	switch n := len(r.Members); {
	case n < 2:
		return bad("members", "%d given, a group needs at least 2", n)
	case n > MaxMembers:
		return bad("members", "%d given, at most %d are possible", n, MaxMembers)
	}
	seen := make(map[netip.Addr]bool, len(r.Members))
	lacking := -1 // the member without a window
	for i := range r.Members {
		m := &r.Members[i]
		field, p := m.problem(r)
		switch {
		case p != "":
		case seen[m.IP]:
			field, p = "ip", fmt.Sprintf("%s is a member already", m.IP)
		case r.Window == nil || m.Window != nil:
		case lacking < 0:
			lacking = i
		default:
			field = "window"
			p = fmt.Sprintf("missing, as that of %s is: with a window of the group, one member at most may lack its own, the one that only sends", r.Members[lacking].IP)
		}
		if p != "" {
			return &FieldError{Member: i, Field: field, Problem: p}
		}
		seen[m.IP] = true
	}
	return nil
}

// Validate checks a new member of group as far as that needs no knowledge of the group.
// Its error is a *FieldError.
func (m *AddMember) Validate(group netip.Addr) error {
	r := &Register{Group: group}
	if m.Window != nil {
		r.Window = &Window{Len: 1}
	}
	if field, p := m.problem(r); p != "" {
		return &FieldError{Member: -1, Field: field, Problem: p}
	}
	return nil
}

// problem returns the first field of m that is wrong in r by itself, and why;
// "" if none is.
func (m *RegisterMember) problem(r *Register) (field, problem string) {
	if p := addrProblem(m.IP); p != "" {
		return "ip", p
	}
	switch {
	case m.IP.Is4() != r.Group.Is4():
		return "ip", fmt.Sprintf("%s is of another address family than the group %s", m.IP, r.Group)
	case m.IP == r.Group:
		return "ip", fmt.Sprintf("%s is the group's own address", m.IP)
	case !rocev2.QPN(m.QPN).Valid():
		return "qpn", qpnProblem(m.QPN)
	case m.SQPSN > rocev2.PSNMask:
		return "sq_psn", psnProblem(m.SQPSN)
	case m.RQPSN > rocev2.PSNMask:
		return "rq_psn", psnProblem(m.RQPSN)
	case m.Window == nil:
		return "", "" // whether it may lack one depends on all members
	case r.Window == nil:
		return "window", "given, but the group has none; give the group the window that sources address, or no member one"
	}
	if f, p := m.Window.problem(); p != "" {
		return "window." + f, p
	}
	if m.Window.Len < r.Window.Len {
		return "window.len", fmt.Sprintf("%d is less than the group's %d: a WRITE to the end of the group's window would miss the member's", m.Window.Len, r.Window.Len)
	}
	return "", ""
}

// problem returns the first field of w that is wrong, and why.
func (w *Window) problem() (field, problem string) {
	switch {
	case w.Len == 0:
		return "len", "missing or 0, a window has at least 1 byte"
	case w.VA+(w.Len-1) < w.VA:
		return "len", fmt.Sprintf("%d reaches past the end of the address space from va %#x", w.Len, w.VA)
	}
	return "", ""
}

// addrProblem is the reason for which a may not be a group's or a member's address:
// RoCEv2 packets have to be routable to and from it.
func addrProblem(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "missing"
	case a.Zone() != "":
		return fmt.Sprintf("%s has a zone; give a plain address", a)
	case a.Is4In6():
		return fmt.Sprintf("%s is an IPv4 address written as IPv6; write %s", a, a.Unmap())
	case a.IsUnspecified():
		return fmt.Sprintf("%s is the unspecified address", a)
	case a.IsLoopback():
		return fmt.Sprintf("%s is a loopback address", a)
	case a.IsMulticast():
		return fmt.Sprintf("%s is an IP multicast address, to which no RC queue pair can connect; give a unicast one", a)
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Sprintf("%s is the broadcast address", a)
	}
	return ""
}

func qpnProblem(q QPN) string {
	return fmt.Sprintf("%#x is no RC queue pair's number; 0x10 to 0xfffffe are", q)
}

func psnProblem(p PSN) string {
	return fmt.Sprintf("%#x does not fit 24 bits", p)
}
