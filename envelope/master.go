// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// MasterConfig configures a Master. Zero fields take the defaults.
type MasterConfig struct {
	Local netip.AddrPort // where answers arrive; must be the source of the master's packets
	Port  uint16         // UDP port of the switch; default DefaultPort
	Auth  Auth
	Seed  uint64 // the seed of transaction numbers and jitter; should differ between masters
	// MTU bounds the IP packets of a registration, in bytes; default 1500.
	MTU      int
	RetryMin time.Duration // the first wait for an answer; default 100 ms
	RetryMax time.Duration // the longest; default 2 s
	// Deadline bounds a whole registration, leave or delete; default 10 s.
	Deadline time.Duration
	// RenewWithin bounds the time between two Renews, and so that until the master hears of a switch
	// that has started again without the group; 0: a third of the lease.
	RenewWithin time.Duration
}

func (c *MasterConfig) setDefaults() error {
	defaultTo(&c.Port, DefaultPort)
	defaultTo(&c.MTU, 1500)
	defaultTo(&c.RetryMin, 100*time.Millisecond)
	defaultTo(&c.RetryMax, 2*time.Second)
	defaultTo(&c.Deadline, 10*time.Second)
	if err := checkRetries(c.RetryMin, c.RetryMax, c.Deadline); err != nil {
		return err
	}
	if c.MTU > 0xFFFF {
		return fmt.Errorf("MTU %d: an IP packet has at most 65535 bytes", c.MTU)
	}
	if err := checkLocal(c.Local); err != nil {
		return err
	}
	return c.Auth.check()
}

// masterPhase is the life of a Master, in order.
type masterPhase uint8

const (
	created     masterPhase = iota
	registering             // the phase until the switch accepts
	confirming              // the phase until all members have confirmed
	registered              // the lease is renewed
	ended                   // failed, gone or deleted; requests may still be under way
)

// Master registers one group and keeps it registered. A Master serves one registration
// and its updates; a new registration needs a new Master.
type Master struct {
	endpointLink
	cfg        MasterConfig
	reg        Registration // Members: as registered
	segments   []*Register
	autoEpoch  bool
	random     random
	phase      masterPhase
	switchAddr netip.AddrPort // GroupIP and port

	instance        uint64 // the registrar's cookie for the master; 0: unknown
	lastTransaction uint32
	registerTx      uint32
	registerSentAt  time.Duration // the time when registerTx was first sent with the right instance and epoch
	deadline        time.Duration // the deadline of the registration
	authHint        bool          // an unauthenticated Reject said that the master's MAC is wrong

	confirmed   map[MemberKey]bool
	gone        map[MemberKey]bool
	nextSegment int // index of the first member of the next Renew's list

	retry       backoff // the repetition of Register, then of Renew
	renewTx     uint32
	renewSentAt time.Duration
	renewing    bool // renewTx has no answer yet
	leaseUntil  time.Duration

	requests []*request
	notice   uint64 // serial of the newest Notice

	update    *memberUpdate // sent, and not accepted yet
	joiners   bool          // confirming: the new members of an update have not confirmed yet
	usedEpoch uint64        // newest epoch that was tried
}

// request is a Leave or Delete under way.
type request struct {
	body       Body
	member     MemberKey
	tx         uint32
	retry      backoff
	deadline   time.Duration
	unreported bool // a cleanup, whose outcome is not reported
}

// NewMaster checks the registration and prepares it. Errors name the faults of the
// configuration or wrap the *Problem of the registration.
func NewMaster(cfg MasterConfig, reg Registration) (*Master, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, fmt.Errorf("master of group %s: %w", reg.Group, err)
	}
	reg.Members = append([]MemberRecord(nil), reg.Members...)
	reg.Master = cfg.Local
	if p := reg.Validate(); p != nil {
		return nil, fmt.Errorf("register group %s: %w", reg.Group, p)
	}
	if reg.Group.Is4() != cfg.Local.Addr().Is4() {
		return nil, fmt.Errorf("register group %s: our address %s is of another IP family", reg.Group, cfg.Local.Addr())
	}
	segs, err := reg.Segments(cfg.MTU)
	if err != nil {
		return nil, fmt.Errorf("register: %w", err)
	}
	m := &Master{
		endpointLink: endpointLink{auth: cfg.Auth}, cfg: cfg, reg: reg, segments: segs, autoEpoch: reg.Epoch == 0,
		random: random(cfg.Seed), switchAddr: netip.AddrPortFrom(reg.Group, cfg.Port),
		confirmed: map[MemberKey]bool{}, gone: map[MemberKey]bool{},
	}
	m.lastTransaction = uint32(m.random.next())
	return m, nil
}

// Registration returns the registration, with the epoch in use.
func (m *Master) Registration() Registration { return m.reg }

// Unfinished returns what a registration, leave or delete under way is waiting for, as if
// its deadline were now, or nil. Callers use it if they give up before Deadline.
func (m *Master) Unfinished(now time.Duration) *Failure {
	var f *Failure
	switch {
	case m.phase == registering:
		f = &Failure{Action: "register", SwitchSilent: true, Challenged: m.instance != 0, AuthHint: m.authHint, After: now - m.deadline + m.cfg.Deadline}
	case m.phase == confirming:
		f = &Failure{Action: "register", Waiting: m.Waiting(), After: now - m.deadline + m.cfg.Deadline}
		if m.joiners {
			f.Action = "update"
		}
	case m.update != nil:
		f = &Failure{Action: "update", SwitchSilent: true, After: now - m.update.startedAt}
	case len(m.requests) > 0 && !m.requests[0].unreported:
		r := m.requests[0]
		f = &Failure{Action: r.doing(), SwitchSilent: true, After: now - r.deadline + m.cfg.Deadline}
	default:
		return nil
	}
	f.Group, f.After = m.reg.Group, f.After.Round(time.Millisecond)
	return f
}

// doing names the kind of the request.
func (r *request) doing() string {
	if r.body.kind() == TypeDelete {
		return "delete"
	}
	return "leave"
}

// Waiting returns the members that have not confirmed, in the order of the
// registration.
func (m *Master) Waiting() []MemberKey {
	var w []MemberKey
	for i := range m.reg.Members {
		if k := m.reg.Members[i].Key(); !m.confirmed[k] && !m.gone[k] {
			w = append(w, k)
		}
	}
	return w
}

// Start begins the registration.
func (m *Master) Start(now time.Duration, out *Output) {
	out.reset()
	if m.phase != created {
		return
	}
	m.phase = registering
	m.deadline = now + m.cfg.Deadline
	m.newRegister(now, out)
}

// newRegister sends the registration under a new transaction.
func (m *Master) newRegister(now time.Duration, out *Output) {
	m.registerTx, m.registerSentAt = m.newTransaction(), now
	m.retry.start(now, m.cfg.RetryMin, &m.random)
	m.sendRegister(out)
}

// sendRegister sends all segments. While the registrar's instance is unknown it sends
// only the first, which is answered with a Challenge.
func (m *Master) sendRegister(out *Output) {
	for i, s := range m.segments {
		m.sendTo(m.registerTx, s, i, len(m.segments), out)
		if m.instance == 0 || m.reg.Epoch == 0 {
			return
		}
	}
}

func (m *Master) newTransaction() uint32 {
	m.lastTransaction++
	return m.lastTransaction
}

func (m *Master) sendTo(tx uint32, body Body, seq, total int, out *Output) {
	m.sendAs(m.reg.Epoch, tx, body, seq, total, out)
}

func (m *Master) sendAs(epoch uint64, tx uint32, body Body, seq, total int, out *Output) {
	m.send(m.cfg.Local, m.switchAddr, &Message{Header: Header{
		Epoch: epoch, Instance: m.instance, Transaction: tx, Seq: uint16(seq), Total: uint16(total),
		Group: m.reg.Group, ReplyTo: m.cfg.Local,
	}, Body: body}, out)
}

// Leave asks the switch to remove a member. The outcome is an event, MemberGone
// or LeaveFailed. It fails at once if there is no such member.
func (m *Master) Leave(now time.Duration, k MemberKey, out *Output) error {
	out.reset()
	if m.reg.Find(k) < 0 || m.gone[k] {
		return fmt.Errorf("group %s: %s is not a member", m.reg.Group, k)
	}
	if m.phase != confirming && m.phase != registered {
		return fmt.Errorf("group %s is not registered: nothing to leave", m.reg.Group)
	}
	if m.update != nil {
		return fmt.Errorf("group %s: an update is under way, which says who the members are", m.reg.Group)
	}
	for _, r := range m.requests {
		if r.member == k {
			return nil
		}
	}
	m.request(now, &Leave{Member: k}, k, false, out)
	return nil
}

// Delete asks the switch to remove the group, and ends all other requests. The outcome is
// the event GroupGone, with Err set if the switch did not answer.
func (m *Master) Delete(now time.Duration, out *Output) {
	out.reset()
	if m.phase == created || m.phase == registering && m.instance == 0 {
		m.phase = ended // the switch cannot have accepted any request yet
		out.Events = append(out.Events, Event{Kind: GroupGone, Group: m.reg.Group, EndReason: Deleted})
	}
	if m.phase != ended {
		m.end(now, false, out)
	}
}

// stop ends the registration, with all that is under way.
func (m *Master) stop() {
	m.phase, m.requests, m.update, m.joiners, m.renewing = ended, nil, nil, false, false
}

// end ends the registration and deletes it at the switch.
func (m *Master) end(now time.Duration, quiet bool, out *Output) {
	if m.update != nil {
		m.usedEpoch = m.update.reg.Epoch
	}
	m.stop()
	m.request(now, &Delete{}, MemberKey{}, quiet, out)
}

func (m *Master) request(now time.Duration, b Body, k MemberKey, quiet bool, out *Output) {
	r := &request{body: b, member: k, tx: m.newTransaction(), deadline: now + m.cfg.Deadline, unreported: quiet}
	r.retry.start(now, m.cfg.RetryMin, &m.random)
	m.requests = append(m.requests, r)
	m.sendTo(r.tx, b, 0, 1, out)
}

// Ended reports that the master has nothing left to do.
func (m *Master) Ended() bool { return m.phase == ended && len(m.requests) == 0 }

// NextDeadline returns the time at which Advance must be called next.
func (m *Master) NextDeadline() (time.Duration, bool) {
	var d deadlines
	switch m.phase {
	case registering:
		d.add(m.deadline)
		d.add(m.retry.next)
	case confirming:
		d.add(m.deadline)
		d.add(m.retry.next)
		d.add(m.leaseUntil)
	case registered:
		d.add(m.retry.next)
		d.add(m.leaseUntil)
		if m.update != nil {
			d.add(m.update.retry.next)
		}
	}
	for _, r := range m.requests {
		d.add(r.retry.next)
		d.add(r.deadline)
	}
	return d.at, d.ok
}

// Failure says why a registration, or a request about it, failed for good.
type Failure struct {
	Group   netip.Addr
	Action  string        // the request that failed: "register", "renew", "update", "leave", "delete"
	After   time.Duration // time spent trying; 0 after a refusal
	Problem *Problem      // the switch rejected it
	Refusal *Confirm      // a member refused
	Waiting []MemberKey   // members that have not confirmed
	// SwitchSilent: the switch has not answered. AuthHint: an unauthenticated message,
	// perhaps of the switch, said that the master's MAC is wrong.
	SwitchSilent, AuthHint bool
	Challenged             bool         // SwitchSilent: the switch has sent a Challenge, but no decision
	Registered             MemberRecord // record that was registered for Refusal.Member; its R_Key is not printed
}

// Error names the missing answers or the objections, and the remedy.
func (f *Failure) Error() string {
	s := fmt.Sprintf("%s group %s: ", f.Action, f.Group)
	switch {
	case f.Problem != nil:
		return s + "the switch rejects it: " + f.Problem.Error()
	case f.Refusal != nil:
		return s + f.refusal()
	case f.SwitchSilent && f.AuthHint:
		return s + fmt.Sprintf("no authentic answer from the switch in %v, but an unauthenticated one that it does not accept our key; check key id and key on both sides", f.After)
	case f.Challenged:
		return s + fmt.Sprintf("the switch is there, but has neither accepted nor rejected it in %v; it may be looking for a member, or packets are lost on the way (long ones, where the path's MTU is smaller than the master's)", f.After)
	case f.SwitchSilent:
		return s + fmt.Sprintf("no answer from the switch in %v; check that it serves this GroupIP and UDP port, and that %s routes to it; `gleam events` at the switch names whom it cannot answer", f.After, f.Group)
	}
	return s + fmt.Sprintf("%d members have not confirmed in %v: %s; check that they have joined, and that they hold the same key", len(f.Waiting), f.After, joinKeys(f.Waiting))
}

// Unwrap returns the *Problem, if there is one.
func (f *Failure) Unwrap() error {
	if f.Problem == nil {
		return nil
	}
	return f.Problem
}

func (f *Failure) refusal() string {
	c := f.Refusal
	s := fmt.Sprintf("member %s %v", c.Member, c.Status)
	switch c.Status {
	case QPNMismatch:
		s += fmt.Sprintf(": 0x%x", uint32(c.QPN))
	case SQPSNMismatch:
		s += fmt.Sprintf(": 0x%x, registered was 0x%x", uint32(c.SQPSN), uint32(f.Registered.SQPSN))
	case RQPSNMismatch:
		s += fmt.Sprintf(": 0x%x, registered was 0x%x", uint32(c.RQPSN), uint32(f.Registered.RQPSN))
	}
	return s
}

// joinKeys lists at most eight members.
func joinKeys(ks []MemberKey) string {
	var parts []string
	for i, k := range ks {
		if i == 8 {
			parts = append(parts, fmt.Sprintf("and %d more", len(ks)-i))
			break
		}
		parts = append(parts, k.String())
	}
	return strings.Join(parts, ", ")
}
