// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Table is the switch's forwarding table, with all that is needed to serve a group. The
// registrar fills it, by synchronous calls from its own methods.
type Table interface {
	// Install creates the group, or replaces the one with the same GroupIP. If reg has a
	// Base, which is the installed epoch, Install only replaces the members and the tree by
	// those of reg, and the group goes on (mcast.UpdateMembers). Unless it returns VerdictAccepted, nothing has changed. It
	// must not change reg. It may read it until the group is removed, or another Install of it is accepted; the
	// Members that reg has now never change. key is that of the registration; a local
	// registration has no Master.
	Install(reg *Registration, key KeyID) Verdict
	// Remove removes a group.
	Remove(group netip.Addr, why EndReason)
	// RemoveMember removes one member of a group.
	RemoveMember(group netip.Addr, member MemberKey, why EndReason)
	// HadSource reports whether an installed group has carried data since its last whole
	// Install: then the PSNs of its members' queue pairs may differ from the registered
	// ones.
	HadSource(group netip.Addr) bool
	// FromMember reports whether the message that Input processes now came from the
	// location of host as a member of the group or, with left, as a former member of a group
	// of that key. It is true for a host that is no member, and has not been one recently.
	FromMember(group, host netip.Addr, key KeyID, left bool) bool
}

// VerdictKind is the kind of a Verdict.
type VerdictKind uint8

// Verdicts. The zero value is none of them.
const (
	VerdictAccepted VerdictKind = iota + 1
	VerdictLater                // a member's location is being resolved or confirmed; the registrar tries again
	VerdictRejected
)

// Verdict is a Table's answer to Install. Under VerdictLater, Problem is the reason for a
// rejection if the registration is not accepted in time; under VerdictRejected, it is
// final.
type Verdict struct {
	Kind    VerdictKind
	Problem Problem
}

// RegistrarConfig configures a Registrar. Zero fields take the defaults.
type RegistrarConfig struct {
	// Secret is random, new at each boot, and known to no host: it is the key of the
	// cookies (cookie.go).
	Secret [SecretLen]byte
	// EpochBase is the newest epoch that is assumed known for a group without a record:
	// for example the time of boot, in milliseconds since 1970. Epochs then grow over
	// restarts, and recordings from before a restart are stale.
	EpochBase uint64
	Port      uint16 // the UDP port of the registrar and of the members; default DefaultPort
	Auth      Auth
	Seed      uint64         // the seed of jitter
	Prefixes  []netip.Prefix // GroupIPs that are served; at least one
	MaxPMTU   int            // largest path MTU in bytes that all ports carry; default 4096

	Rights map[KeyID]Rights // rights by key; a key that is not in the map has all rights
	Switch SwitchConfig     // the parameters of groups over several switches; zero: there are none

	MaxGroups  int    // installed or being located; default 1024
	MaxMembers int    // members of one group; default 1024
	MaxPending int    // registrations being reassembled; default 64
	MaxEpochs  int    // groups whose epoch is remembered; default 65536, at least 2*(MaxGroups+1)
	EpochStep  uint64 // largest step from the newest known epoch to a new one; default 2^20
	MaxEvents  int    // Gone messages without an Ack; default 4096

	ReassemblyTimeout time.Duration // the time between two segments of a registration; default 5 s
	LocateRetry       time.Duration // the time between two calls of Install under VerdictLater; default 50 ms
	LocateTimeout     time.Duration // the time until VerdictLater becomes a rejection; default 2 s
	DefaultLease      time.Duration // the lease of masters that ask for none; default 60 s, or MaxLease if that is less
	MinLease          time.Duration // default 1 s
	MaxLease          time.Duration // default 10 min
	CookiePeriod      time.Duration // a cookie is valid for one to two periods; default 5 min
	EventRetry        time.Duration // first wait for the Ack of a Gone, doubled each time; default 200 ms
	EventTries        int           // sends of a Gone in all; default 6
	// HintInterval is the least time between two answers to messages that are not
	// authenticated: one Reject, with BadAuthentication, never longer than the message
	// that it answers. Default 1 s; negative: no answers.
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
	case !rocev2.ValidPathMTU(c.MaxPMTU):
		return fmt.Errorf("largest path MTU %d; must be %s", c.MaxPMTU, rocev2.PathMTUText)
	case c.MaxGroups < 1 || c.MaxMembers < 2 || c.MaxMembers > 0xFFFF || c.MaxPending < 1 || c.MaxEvents < 1 || c.EventTries < 1:
		return fmt.Errorf("limits: %d groups, %d members, %d pending, %d events, %d tries; need at least 1, 2..65535, 1, 1 and 1",
			c.MaxGroups, c.MaxMembers, c.MaxPending, c.MaxEvents, c.EventTries)
	case c.MaxEpochs < 2*(c.MaxGroups+1):
		return fmt.Errorf("%d epochs remembered for %d groups; need at least %d", c.MaxEpochs, c.MaxGroups, 2*(c.MaxGroups+1))
	case min(c.ReassemblyTimeout, c.LocateRetry, c.LocateTimeout, c.EventRetry, c.CookiePeriod) < 0:
		return fmt.Errorf("timeouts must be positive")
	case c.MinLease < 0 || c.DefaultLease < c.MinLease || c.DefaultLease > c.MaxLease:
		return fmt.Errorf("leases: least %v, default %v, most %v; must be positive and in this order", c.MinLease, c.DefaultLease, c.MaxLease)
	}
	if err := checkPrefixes(c.Prefixes); err != nil {
		return err
	}
	if err := c.Switch.setDefaults(); err != nil {
		return err
	}
	return c.Auth.check()
}

// Registrar is the switch's side. It verifies registrations, fills the Table, notifies
// the members, and removes groups when their lease ends.
type Registrar struct {
	endpointLink
	cfg    RegistrarConfig
	table  Table
	now    time.Duration
	random random
	// generation changes when epochs are forgotten: older cookies become void.
	generation   uint64
	groups       map[netip.Addr]*group       // installed
	locating     map[netip.Addr]*group       // complete, but the location of a member is still unknown
	addresses    int                         // number of GroupIPs in groups or locating
	usage        map[KeyID]usage             // the usage of groups and locating together
	leases       timers[*group]              // ends of the leases of groups
	tries        timers[*group]              // times of locating: when to ask the Table again, or to give up
	expiries     timers[pendingKey]          // ends of pending
	pending      map[pendingKey]*assembly    // incomplete
	pendingUnder map[KeyID]int               // number of pending, by key
	epochs       map[netip.Addr]*epochRecord // survives the groups
	members      memberIndex                 // members of installed groups
	events       goneEvents
	eventID      uint32
	nextHint     time.Duration // the time when the next unauthenticated Reject may be sent
	treeBooks
}

// treeBooks are what a registrar knows about other switches.
type treeBooks struct {
	neighbours      map[mcast.Neighbor]*neighbour
	over            map[mcast.Neighbor][]*overEntry // groups whose tree leads over a neighbour
	changes         map[mcast.Neighbor]*neighbourChange
	changeTimers    timers[*neighbourChange]
	requests        map[requestID]*relayRequest
	requestTimers   timers[*relayRequest]
	requestCount    uint64
	goneSerial      uint32
	preparing       map[prepareKey]*prepareAssembly
	prepareExpiries timers[prepareKey]
	refusals        map[prepareKey]*refusal
	refusalExpiries timers[prepareKey]
	graces          timers[*group] // grace periods of groups that a neighbour has lost
	rebuilds        timers[*group] // the next rebuilds of roots
	routeChecks     timers[*group]
	storageFails    bool // true: what promises something does not leave
}

func newTreeBooks() treeBooks {
	return treeBooks{
		neighbours: map[mcast.Neighbor]*neighbour{}, over: map[mcast.Neighbor][]*overEntry{}, changes: map[mcast.Neighbor]*neighbourChange{},
		requests: map[requestID]*relayRequest{}, preparing: map[prepareKey]*prepareAssembly{}, refusals: map[prepareKey]*refusal{},
	}
}

// group is a complete registration.
type group struct {
	reg         Registration  // Members: the current ones
	key         KeyID         // the key under which it was registered; 0 for a local one
	failed      bool          // GroupFailed was called
	unchanged   bool          // a registration identical to the live one: the group goes on
	tx          uint32        // the transaction of the Register, then of the newest Renew: older Renews are rejected
	known, last uint32        // the highest member numbers: before this registration, and ever given
	segments    []digest      // the digests of the Register, to recognize a duplicate
	lease       timer[*group] // the timer in Registrar.leases; not set, and at 0, without a lease
	// joined is the epoch in which each member's record was registered, by member; nil: all in reg.Origin.
	joined []uint64
	// gone are the members that have left in this epoch; nil: none.
	gone map[MemberKey]leftMember
	// usedNumbers are records of former members that must not be registered again, oldest
	// first.
	usedNumbers []MemberRecord
	relayNext   time.Duration // the time when a Renew of the master is due at the switches below; at the root
	failure     *Gone         // what was told of that, in a tree
	untold      []*Gone       // the events meanwhile, for an attempt that goes on with a group
	generation  uint64        // the generation of the tree, within the group's life
	attempts    uint64        // the generation of the last attempt; at the root
	rebuild     bool          // true: the installed group once more; at the root
	unaccepted  bool          // true: a switch lacks the update, and the master has not heard of it; at the root
	branch      *branch       // the branch of a group over several switches, else nil
	began       time.Duration // the time when its first message came; 0: from another switch
	*search                   // nil: its members are not being located
}

// search is what a group has while its members are being located.
type search struct {
	nextTry, locateDeadline time.Duration
	try                     timer[*group] // the timer in Registrar.tries, at the earlier of both
	missingMember           Problem
}

// Quota bounds the registrations under one key. A zero field is no bound.
type Quota struct {
	Groups  int           // groups at one time
	Members int           // members of all groups of the key
	Lease   time.Duration // longest lease
}

// pendingKey identifies an assembly. The key is part of it, so that keys do not disturb
// each other.
type pendingKey struct {
	group netip.Addr
	key   KeyID
}

// local reports whether the group was registered by hand.
func (g *group) local() bool { return !g.reg.Master.IsValid() }

// epochRecord holds the newest epochs of a group, so that a captured registration cannot
// be replayed once the group is gone.
type epochRecord struct {
	accepted uint64   // newest epoch that was installed
	rejected uint64   // newest epoch that was rejected; counts if above accepted
	problem  *Problem // why it was rejected; nil: it is not known
}

func (e *epochRecord) newest() uint64 { return max(e.accepted, e.rejected) }

// NewRegistrar makes a registrar that fills t. Errors name the faults of
// the configuration.
func NewRegistrar(cfg RegistrarConfig, t Table) (*Registrar, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, fmt.Errorf("registrar: %w", err)
	}
	return &Registrar{
		endpointLink: endpointLink{auth: cfg.Auth}, cfg: cfg, table: t, random: random(cfg.Seed),
		usage: map[KeyID]usage{}, groups: map[netip.Addr]*group{}, locating: map[netip.Addr]*group{}, pending: map[pendingKey]*assembly{}, pendingUnder: map[KeyID]int{},
		events: newGoneEvents(), epochs: map[netip.Addr]*epochRecord{}, members: memberIndex{},
		treeBooks: newTreeBooks(),
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
	reg.Numbers = slices.Clone(g.reg.Numbers)
	reg.Tree = g.reg.Tree.clone()
	return reg, g.lease.at, true
}

// Registration returns that of an installed group, as Install gets it; nil if there is none.
func (r *Registrar) Registration(ip netip.Addr) *Registration {
	if g := r.groups[ip]; g != nil {
		return &g.reg
	}
	return nil
}

// sortedKeys returns the keys of m in order, so that every run walks maps in the same
// order.
func sortedKeys[V any](m map[netip.Addr]V) []netip.Addr {
	ks := make([]netip.Addr, 0, len(m))
	for k := range m {
		ks = append(ks, k)
	}
	slices.SortFunc(ks, netip.Addr.Compare)
	return ks
}

// Input processes one UDP payload that arrived for a GroupIP at the registrar's port.
func (r *Registrar) Input(now time.Duration, from netip.AddrPort, b []byte, out *Output) {
	out.reset()
	r.setTime(now)
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	if IsRelay(b) {
		r.drop(NotFromSwitch, out)
		return
	}
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
	case m.Type != TypeHere && !r.table.FromMember(m.Group, from.Addr(), m.KeyID, m.Type == TypeAck): // Here confirms a new location
		r.drop(WrongLocation, out)
		out.Detail = fmt.Sprintf("%v in the name of member %s", m.Type, from.Addr())
	case m.Type == TypeAck:
		r.ack(from, &m, out)
	case m.Type == TypeHere:
		r.here(&m, m.Body.(*Here), out)
	case !r.Serves(m.Group):
		r.rejectRequest(&m.Header, Problem{Reason: NotGroupPrefix}, out)
	case !r.checkCookie(&m.Header) || m.Epoch == 0:
		r.challenge(&m, out)
	default:
		out.Proved = true
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
	if p := r.elsewhere(m); p != nil {
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

// serves reports whether ip is in one of the registrar's prefixes.
func (r *Registrar) Serves(ip netip.Addr) bool {
	return unicast(ip) && inPrefixes(r.cfg.Prefixes, ip)
}

// reply sends the answer to the request with header h to its ReplyTo address. That is
// under the MAC, so a replay from another address is not answered there.
func (r *Registrar) reply(h *Header, body Body, out *Output) {
	us := netip.AddrPortFrom(h.Group, r.cfg.Port)
	r.sendUnder(h.KeyID, us, h.ReplyTo, &Message{Header: Header{
		Epoch: h.Epoch, Instance: r.cookie(h.ReplyTo, h.KeyID), Transaction: h.Transaction, Total: 1, Group: h.Group, ReplyTo: us,
	}, Body: body}, out)
}

func (r *Registrar) answerReject(h *Header, p Problem, out *Output) {
	if p.Member.IP.Is4() != h.Group.Is4() {
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

// sendHint tells a sender without the key so, at most once in HintInterval and never with
// more bytes than it sent: a forged source address gains nothing.
func (r *Registrar) sendHint(now time.Duration, from netip.AddrPort, h *Header, d Drop, size int, out *Output) {
	if d != Unauthenticated && d != UnknownKey && d != BadMAC || r.cfg.HintInterval < 0 || now < r.nextHint {
		return
	}
	if !isRequest(h.Type) || h.Relay || !r.Serves(h.Group) || from.Addr() != h.ReplyTo.Addr() {
		return
	}
	us := netip.AddrPortFrom(h.Group, r.cfg.Port)
	hint := &Message{Header: Header{
		Epoch: h.Epoch, Transaction: h.Transaction, Total: 1, Group: h.Group, ReplyTo: us,
	}, Body: &Reject{Request: h.Type, Problem: Problem{Reason: BadAuthentication}}}
	before := out.Packets
	r.sendUnder(0, us, from, hint, out)
	if len(out.Packets[len(before)].Data) > size {
		out.Packets = before
		return
	}
	r.nextHint = now + r.cfg.HintInterval
}
