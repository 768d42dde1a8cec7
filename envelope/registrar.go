// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Table is what the registrar fills: the switch's forwarding table with all
// that has to be known to serve a group. The registrar calls it synchronously,
// from within its own methods.
type Table interface {
	// Install creates the group, or replaces the one with the same GroupIP as a
	// whole; if reg has a Base, only its members become those of reg, and the
	// group goes on (mcast.UpdateMembers). Unless it answers VerdictAccepted,
	// nothing has changed. It must not keep or change reg. key is that of the
	// registration; a local one has no Master.
	Install(reg *Registration, key KeyID) Verdict
	// Remove forgets a group.
	Remove(group netip.Addr, why EndReason)
	// RemoveMember takes one member out of a group.
	RemoveMember(group netip.Addr, member MemberKey, why EndReason)
	// HadSource reports whether an installed group has carried data since it was
	// installed as a whole: its members' queue pairs may have other PSNs by now than
	// they were registered with.
	HadSource(group netip.Addr) bool
	// FromMember reports whether the message that Input takes now came from the place of
	// host as a member of the group, or, with left, as one that has gone. It is true
	// of a host that is no member, or was none lately.
	FromMember(group, host netip.Addr, left bool) bool
}

// VerdictKind is the kind of a Verdict.
type VerdictKind uint8

// Verdicts. The zero value is none of them.
const (
	VerdictAccepted VerdictKind = iota + 1
	VerdictLater                // a member's location is being resolved, or asked of the member; the registrar asks again
	VerdictRejected
)

// Verdict is a Table's answer to Install. Under VerdictLater, Problem is what the
// registration is rejected for if that stays so; under VerdictRejected, it is final.
type Verdict struct {
	Kind    VerdictKind
	Problem Problem
}

// RegistrarConfig configures a Registrar. Zero fields take the defaults.
type RegistrarConfig struct {
	// Secret is random, new at each boot, and known to nobody else: what hosts send
	// must carry a number that is made of it (cookie.go).
	Secret [SecretLen]byte
	// EpochBase is the newest epoch that is taken for known of groups of which nothing
	// is remembered: the time of boot, in milliseconds since 1970 say. Epochs then
	// grow over restarts, and what was recorded before one is old after it.
	EpochBase uint64
	Port      uint16 // ours, and the members'; default DefaultPort
	Auth      Auth
	Seed      uint64         // for jitter
	Prefixes  []netip.Prefix // GroupIPs that we serve; at least one
	MaxPMTU   int            // largest path MTU in bytes that all ports carry; default 4096

	Rights map[KeyID]Rights // of keys; everything for keys that are not in it

	MaxGroups  int    // installed or being located; default 1024
	MaxMembers int    // of one group; default 1024
	MaxPending int    // registrations being reassembled; default 64
	MaxEpochs  int    // groups whose epoch is remembered; default 65536, at least 2*(MaxGroups+1)
	EpochStep  uint64 // how far beyond the newest known epoch a new one may be; default 2^20
	MaxEvents  int    // Gone messages that wait for their Ack; default 4096

	ReassemblyTimeout time.Duration // between two segments of a registration; default 5 s
	LocateRetry       time.Duration // between two calls of Install under VerdictLater; default 50 ms
	LocateTimeout     time.Duration // until VerdictLater becomes a rejection; default 2 s
	DefaultLease      time.Duration // for masters that ask for none; default 60 s, or MaxLease if that is less
	MinLease          time.Duration // default 1 s
	MaxLease          time.Duration // default 10 min
	CookiePeriod      time.Duration // a cookie is taken for one to two of these; default 5 min
	EventRetry        time.Duration // first wait for the Ack of a Gone, doubled each time; default 200 ms
	EventTries        int           // sends of a Gone in all; default 6
	// HintInterval is the least time between two answers to messages that are
	// not authenticated: one Reject, with BadAuthentication, never longer than
	// what it answers. Default 1 s; negative for none at all.
	HintInterval time.Duration
}

func (c *RegistrarConfig) setDefaults() error {
	defaultTo(&c.Port, DefaultPort)
	defaultTo(&c.MaxPMTU, 4096)
	defaultTo(&c.MaxGroups, 1024)
	defaultTo(&c.MaxMembers, 1024)
	defaultTo(&c.MaxPending, 64)
	defaultTo(&c.MaxEpochs, max(65536, 2*(c.MaxGroups+1)))
	defaultTo(&c.MaxEvents, 4096)
	defaultTo(&c.EpochStep, 1<<20)
	defaultTo(&c.CookiePeriod, 5*time.Minute)
	defaultTo(&c.ReassemblyTimeout, 5*time.Second)
	defaultTo(&c.LocateRetry, 50*time.Millisecond)
	defaultTo(&c.LocateTimeout, 2*time.Second)
	defaultTo(&c.MinLease, time.Second)
	defaultTo(&c.MaxLease, 10*time.Minute)
	defaultTo(&c.DefaultLease, min(time.Minute, c.MaxLease))
	defaultTo(&c.EventRetry, 200*time.Millisecond)
	defaultTo(&c.EventTries, 6)
	defaultTo(&c.HintInterval, time.Second)
	switch {
	case c.Secret == [SecretLen]byte{}:
		return fmt.Errorf("no secret; draw random bytes at boot")
	case len(c.Prefixes) == 0:
		return fmt.Errorf("no group prefix; configure at least one")
	case !rocev2.ValidPathMTU(c.MaxPMTU):
		return fmt.Errorf("largest path MTU %d; must be %s", c.MaxPMTU, rocev2.PathMTUText)
	case c.MaxGroups < 1 || c.MaxMembers < 2 || c.MaxMembers > 0xFFFF || c.MaxPending < 1 || c.MaxEvents < 1 || c.EventTries < 1:
		return fmt.Errorf("limits: %d groups, %d members, %d pending, %d events, %d tries; need at least 1, 2..65535, 1, 1 and 1",
			c.MaxGroups, c.MaxMembers, c.MaxPending, c.MaxEvents, c.EventTries)
	case c.MaxEpochs < 2*(c.MaxGroups+1):
		return fmt.Errorf("%d epochs remembered for %d groups; need at least %d", c.MaxEpochs, c.MaxGroups, 2*(c.MaxGroups+1))
	case c.ReassemblyTimeout <= 0 || c.LocateRetry <= 0 || c.LocateTimeout <= 0 || c.EventRetry <= 0 || c.CookiePeriod <= 0:
		return fmt.Errorf("timeouts must be positive")
	case c.MinLease <= 0 || c.MaxLease < c.MinLease || c.DefaultLease < c.MinLease || c.DefaultLease > c.MaxLease:
		return fmt.Errorf("leases: least %v, default %v, most %v; must be positive and in this order", c.MinLease, c.DefaultLease, c.MaxLease)
	}
	for _, p := range c.Prefixes {
		if !p.IsValid() || p.Addr().Is4In6() || !unicast(p.Addr()) && p.Bits() > 0 {
			return fmt.Errorf("group prefix %s: must be a unicast prefix", p)
		}
	}
	return c.Auth.check()
}

// Registrar is the switch's side. It verifies registrations, fills the Table,
// tells the members, and takes groups away when their lease ends.
type Registrar struct {
	endpointLink
	cfg    RegistrarConfig
	table  Table
	now    time.Duration
	random random
	// generation changes when epochs are forgotten: cookies of before are void.
	generation uint64
	groups     map[netip.Addr]*group       // installed
	locating   map[netip.Addr]*group       // complete, but a member is not located yet
	addresses  int                         // of groups in either
	usage      map[KeyID]usage             // of both
	leases     leases                      // of groups
	pending    map[pendingKey]*assembly    // incomplete
	epochs     map[netip.Addr]*epochRecord // survives the groups
	members    map[MemberKey]netip.Addr    // of installed groups
	events     []*goneEvent                // in order of id
	eventID    uint32
	nextHint   time.Duration // when the next unauthenticated Reject may be sent
}

// group is a complete registration.
type group struct {
	reg        Registration // Members: the ones still in it
	key        KeyID        // under which it was registered; 0 for a local one
	tx         uint32       // of the Register, then of the newest Renew: older Renews are not taken
	segments   []digest     // of the Register, to know a duplicate by
	leaseUntil time.Duration
	lease      int // place in Registrar.leases, and one more; 0: it has none
	// joined is the epoch in which each member's record came in, and does not end
	// with the member: a Leave of that epoch or a later one is about this group.
	joined map[MemberKey]uint64
	// gone are the members that have gone in this epoch.
	gone map[MemberKey]leftMember
	// usedNumbers are records of former members that are not to come back, oldest first.
	usedNumbers []MemberRecord
	failed      bool // GroupFailed was called
	retryDue    bool // it was registered again, and went on
	// while being located
	nextTry, locateDeadline time.Duration
	missingMember           Problem
}

// Quota bounds what may be registered under one key. A zero field is no bound.
type Quota struct {
	Groups  int           // at once
	Members int           // of all its groups together
	Lease   time.Duration // longest
}

// pendingKey names what is put together: keys do not disturb each other.
type pendingKey struct {
	group netip.Addr
	key   KeyID
}

// local reports that the group was registered by hand.
func (g *group) local() bool { return !g.reg.Master.IsValid() }

// epochRecord remembers the newest epochs of a group, so that what was captured
// on the wire cannot be registered again once the group is gone.
type epochRecord struct {
	accepted uint64  // newest epoch that was installed
	rejected uint64  // newest epoch that was turned down; counts if above accepted
	problem  Problem // why
}

func (e *epochRecord) newest() uint64 { return max(e.accepted, e.rejected) }

// NewRegistrar makes a registrar that fills t. Errors name what is wrong with
// the configuration.
func NewRegistrar(cfg RegistrarConfig, t Table) (*Registrar, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, fmt.Errorf("registrar: %w", err)
	}
	return &Registrar{
		endpointLink: endpointLink{auth: cfg.Auth}, cfg: cfg, table: t, random: random(cfg.Seed),
		usage: map[KeyID]usage{}, groups: map[netip.Addr]*group{}, locating: map[netip.Addr]*group{}, pending: map[pendingKey]*assembly{},
		epochs: map[netip.Addr]*epochRecord{}, members: map[MemberKey]netip.Addr{},
	}, nil
}

// Groups returns the GroupIPs of all installed groups, sorted.
func (r *Registrar) Groups() []netip.Addr { return sortedKeys(r.groups) }

// Group returns a copy of an installed group's registration, without the
// members that have left, and when its lease ends (0 for a local group).
func (r *Registrar) Group(ip netip.Addr) (reg Registration, leaseUntil time.Duration, ok bool) {
	g := r.groups[ip]
	if g == nil {
		return Registration{}, 0, false
	}
	reg = g.reg
	reg.Members = slices.Clone(g.reg.Members)
	return reg, g.leaseUntil, true
}

// sortedKeys makes the order in which maps are walked the same in every run.
func sortedKeys[V any](m map[netip.Addr]V) []netip.Addr {
	ks := make([]netip.Addr, 0, len(m))
	for k := range m {
		ks = append(ks, k)
	}
	slices.SortFunc(ks, netip.Addr.Compare)
	return ks
}

// Input takes one UDP payload that arrived for a GroupIP at our port.
func (r *Registrar) Input(now time.Duration, from netip.AddrPort, b []byte, out *Output) {
	out.reset()
	r.setTime(now)
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	m, authentic, perr := r.auth.Keys.open(b, r.auth.Insecure)
	if perr != nil {
		r.drop(perr.Drop, out)
		out.Detail = perr.Text
		switch {
		case !authentic:
			r.sendHint(now, from, &m.Header, perr.Drop, len(b), out)
		case isRequest(m.Type) && from.Addr() == m.ReplyTo.Addr() && m.ReplyTo.Port() != 0 && r.checkCookie(&m.Header):
			r.answerReject(&m.Header, Problem{Reason: Malformed}, out)
		}
		return
	}
	switch {
	case m.Relay || m.Type.direction() != toSwitch:
		r.drop(WrongRole, out) // Relay is for trees
	case from.Addr() != m.ReplyTo.Addr() || m.ReplyTo.Port() == 0:
		r.drop(WrongSource, out)
		out.Detail = fmt.Sprintf("ReplyTo is %s", m.ReplyTo)
	case m.Type != TypeHere && !r.table.FromMember(m.Group, from.Addr(), m.Type == TypeAck): // Here confirms a new place
		r.drop(WrongPlace, out)
		out.Detail = fmt.Sprintf("%v in the name of member %s", m.Type, from.Addr())
	case m.Type == TypeAck:
		r.ack(from, &m, out)
	case m.Type == TypeHere:
		r.here(&m, m.Body.(*Here), out)
	case !r.serves(m.Group):
		r.rejectRequest(&m.Header, Problem{Reason: NotGroupPrefix}, out)
	case !r.checkCookie(&m.Header) || m.Epoch == 0:
		r.challenge(&m, out)
	default:
		r.request(now, &m, out)
		out.attribute(0, Actor{m.KeyID, m.ReplyTo})
	}
}

func isRequest(t Type) bool {
	return t == TypeRegister || t == TypeLeave || t == TypeDelete || t == TypeRenew
}

func (r *Registrar) request(now time.Duration, m *Message, out *Output) {
	if p := r.mayAsk(m); p != nil {
		r.rejectRequest(&m.Header, *p, out)
		return
	}
	switch body := m.Body.(type) {
	case *Register:
		r.register(now, m, body, out)
	case *Renew:
		r.renew(now, m, body, out)
	case *Leave:
		r.leave(now, m, body, out)
	case *Delete:
		r.delete(now, m, out)
	}
}

// serves reports that ip is in one of our prefixes.
func (r *Registrar) serves(ip netip.Addr) bool {
	if !unicast(ip) {
		return false
	}
	for _, p := range r.cfg.Prefixes {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// reply sends the answer to the request with header h to whom it asks for: the
// address is under the MAC, so a replay from elsewhere is not answered there.
func (r *Registrar) reply(h *Header, body Body, out *Output) {
	us := netip.AddrPortFrom(h.Group, r.cfg.Port)
	r.sendUnder(h.KeyID, us, h.ReplyTo, &Message{Header: Header{
		Epoch: h.Epoch, Instance: r.cookie(h.ReplyTo, h.KeyID), Transaction: h.Transaction, Total: 1, Group: h.Group, ReplyTo: us,
	}, Body: body}, out)
}

func (r *Registrar) answerReject(h *Header, p Problem, out *Output) {
	if p.Member.IP.IsValid() && p.Member.IP.Is4() != h.Group.Is4() {
		p.Member = MemberKey{}
	}
	r.reply(h, &Reject{Request: h.Type, Problem: p}, out)
}

// rejectRequest answers with a Reject and counts the request as dropped.
func (r *Registrar) rejectRequest(h *Header, p Problem, out *Output) {
	r.drop(Rejected, out)
	out.Detail = fmt.Sprintf("%v: %s", h.Type, p.Error())
	r.answerReject(h, p, out)
}

// challenge answers a request without the right cookie, once per registration.
func (r *Registrar) challenge(m *Message, out *Output) {
	r.drop(WrongInstance, out)
	if m.Seq != 0 {
		return
	}
	r.reply(&m.Header, &Challenge{Request: m.Type, EpochKnown: r.newest(m.Group)}, out)
}

// sendHint tells a sender without our key so, at most once in HintInterval and
// never with more bytes than it sent: whoever forges a source gains nothing.
func (r *Registrar) sendHint(now time.Duration, from netip.AddrPort, h *Header, d Drop, size int, out *Output) {
	if d != Unauthenticated && d != UnknownKey && d != BadMAC || r.cfg.HintInterval < 0 || now < r.nextHint {
		return
	}
	if !isRequest(h.Type) || h.Relay || !r.serves(h.Group) || from.Addr() != h.ReplyTo.Addr() {
		return
	}
	us := netip.AddrPortFrom(h.Group, r.cfg.Port)
	b, err := Keys(nil).Append(nil, &Message{Header: Header{
		Epoch: h.Epoch, Transaction: h.Transaction, Total: 1, Group: h.Group, ReplyTo: us,
	}, Body: &Reject{Request: h.Type, Problem: Problem{Reason: BadAuthentication}}}, 0)
	if err != nil || len(b) > size {
		return
	}
	r.nextHint = now + r.cfg.HintInterval
	out.Packets = append(out.Packets, Packet{Src: us, Dst: from, Data: b})
}
