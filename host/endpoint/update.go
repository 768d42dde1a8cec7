// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint/oob"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// ErrNotMaster is returned by methods that only a group's master may call.
var ErrNotMaster = errors.New("only the master of a group changes its members")

// Add lets the member that listens at addr (MemberConfig.Listener) join the group, and
// returns when it has confirmed. Data may flow: the new member receives the source's
// messages from the next one on, the other members are not affected. An evicted member
// returns by Add, with a queue pair that has other PSNs. Sockets are opened in the
// network namespace of the calling thread.
func (g *Group) Add(ctx context.Context, addr string) error {
	return g.addMember(ctx, g.dial(addr), false)
}

// AddFrom is Add for the next member that connects to ln (MemberConfig.Master). A master
// that admits members at any time calls it repeatedly.
func (g *Group) AddFrom(ctx context.Context, ln net.Listener) error {
	return g.addMember(ctx, g.accept(ln), false)
}

// Update is Add for a member that has restarted its queue pair: it replaces the member
// with its address.
func (g *Group) Update(ctx context.Context, addr string) error {
	return g.addMember(ctx, g.dial(addr), true)
}

// UpdateFrom is AddFrom for a member that may have been in the group before: a restarted
// member replaces the one with its address.
func (g *Group) UpdateFrom(ctx context.Context, ln net.Listener) error {
	return g.addMember(ctx, g.accept(ln), true)
}

// Remove removes the member at ip from the group and waits until the switch has confirmed
// it. The other members are not affected.
func (g *Group) Remove(ctx context.Context, ip netip.Addr) error { return g.RemoveQP(ctx, ip, 0) }

// RemoveQP is Remove for the member at ip with that queue pair alone: one that has replaced
// it meanwhile stays. QPN 0 stands for any.
func (g *Group) RemoveQP(ctx context.Context, ip netip.Addr, qpn rocev2.QPN) error {
	fail := func(err error) error { return fmt.Errorf("remove %s from group %s: %w", ip, g.info.IP, err) }
	if g.master == nil {
		return fail(ErrNotMaster)
	}
	if err := g.lock(ctx); err != nil {
		return fail(err)
	}
	defer g.unlock()
	outcome := make(chan error, 1)
	g.mu.Lock()
	g.removed[ip] = outcome
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.removed, ip)
		g.mu.Unlock()
	}()
	err := errors.New("is not a member")
	g.driver.call(func(now time.Duration, out *envelope.Output) {
		for _, m := range g.master.Members() {
			if m.IP == ip && (qpn == 0 || m.QPN == qpn) {
				err = g.master.Leave(now, m.Key(), out)
			}
		}
	})
	if err != nil {
		return fail(err)
	}
	if err := g.await(ctx, outcome); err != nil {
		return fail(err)
	}
	return nil
}

// lock takes the token that permits changes of the members.
func (g *Group) lock(ctx context.Context) error {
	select {
	case g.updating <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *Group) unlock() { <-g.updating }

func (g *Group) await(ctx context.Context, outcome <-chan error) error {
	select {
	case err := <-outcome:
		return err
	case <-g.endedCh:
		return g.endCause()
	case <-ctx.Done():
		return g.giveUpCause(ctx)
	}
}

// memberDialer returns a member that has proved that it has the key, and has said hello.
type memberDialer func(context.Context, oob.Admission) (*oob.Peer, error)

func (g *Group) dial(addr string) memberDialer {
	return func(ctx context.Context, a oob.Admission) (*oob.Peer, error) {
		c, err := a.Identity.Dial(ctx, addr, oob.Exchange)
		if err != nil {
			return nil, err
		}
		return oob.Handshake(ctx, c, a)
	}
}

func (g *Group) accept(ln net.Listener) memberDialer {
	return func(ctx context.Context, a oob.Admission) (*oob.Peer, error) { return oob.AcceptMember(ctx, ln, a) }
}

// addMember performs the exchange with one member and adds it to the group.
func (g *Group) addMember(ctx context.Context, meet memberDialer, replace bool) error {
	fail := func(err error) error { return fmt.Errorf("add a member to group %s: %w", g.info.IP, err) }
	if g.master == nil {
		return fail(ErrNotMaster)
	}
	p, err := meet(ctx, oob.Admission{Identity: g.host.identity, Check: g.checkJoiner, OtherNetwork: g.otherNetwork})
	if err != nil {
		return fail(err)
	}
	if err := g.lock(ctx); err != nil {
		p.Fail(err)
		return fail(err)
	}
	defer g.unlock()
	if err := g.admit(ctx, p, replace); err != nil {
		err = fmt.Errorf("%s: %w", p, err)
		p.Fail(err)
		return fail(err)
	}
	_ = p.Registered(ctx) // the switch notices a member that has gone by now
	_ = p.Close()
	return nil
}

// checkJoiner returns the reason why a new member cannot be in this group, or nil.
func (g *Group) checkJoiner(c *oob.ConnInfo) error {
	w := g.info.Window
	switch {
	case c.IP.BitLen() != g.info.IP.BitLen():
		return fmt.Errorf("its address is not of the family of GroupIP %s", g.info.IP)
	case w != (mcast.Window{}) && (c.Window == nil || c.Window.Len < w.Len):
		return fmt.Errorf("the group has a WRITE window of %d bytes, and it has no memory of that size for it", w.Len)
	case w == (mcast.Window{}) && c.Window != nil:
		c.Window = nil // no source will write to it
	}
	return nil
}

// admit makes the new member connect, and registers it. The caller holds the lock.
func (g *Group) admit(ctx context.Context, p *oob.Peer, replace bool) error {
	same := func(m envelope.MemberRecord) bool { return m.IP == p.Info.IP }
	rec := record(&p.Info)
	if old := g.members(); slices.ContainsFunc(old, same) {
		switch {
		case !replace:
			return errors.New("its address is a member's already: Update is for one that has restarted")
		case slices.Contains(old, rec):
			return errors.New("it is a member with the same QPN and PSNs; a restarted queue pair needs fresh PSNs")
		}
	}
	if err := g.sendGroup(ctx, []*oob.Peer{p}); err != nil {
		return err
	}
	// Members may leave at any time: the list is made, and compared with the switch's, as
	// late as possible, and once more if a member left meanwhile.
	for try := 0; ; try++ {
		err := g.update(ctx, func(ms []envelope.MemberRecord) []envelope.MemberRecord {
			return append(slices.DeleteFunc(ms, same), rec)
		})
		var problem *envelope.Problem
		switch {
		case err == nil:
			g.joined(p.Info)
			return nil
		case !errors.As(err, &problem) || problem.Reason != envelope.MembersChanged || problem.Member == rec.Key() || try == 3:
			return err
		}
		if err := g.untilRemoved(ctx, problem.Member); err != nil {
			return err
		}
	}
}

// members returns the records of the current members.
func (g *Group) members() (ms []envelope.MemberRecord) {
	g.driver.call(func(time.Duration, *envelope.Output) { ms = g.master.Members() })
	return ms
}

// untilRemoved waits until the master's machine knows that k has been removed.
func (g *Group) untilRemoved(ctx context.Context, k envelope.MemberKey) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for slices.ContainsFunc(g.members(), func(m envelope.MemberRecord) bool { return m.Key() == k }) {
		select {
		case <-tick.C:
		case <-g.endedCh:
			return g.endCause()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// update makes the members those that change returns, and waits for the outcome.
func (g *Group) update(ctx context.Context, change func([]envelope.MemberRecord) []envelope.MemberRecord) error {
	select {
	case <-g.updated: // the outcome of an update whose caller stopped waiting
	default:
	}
	var err error
	g.driver.call(func(now time.Duration, out *envelope.Output) {
		err = g.master.Update(now, change(g.master.Members()), out)
	})
	if err != nil {
		return err
	}
	return g.await(ctx, g.updated)
}

// updateOutcome passes an update's outcome from the machine to the waiting caller.
func (g *Group) updateOutcome(err error) {
	select {
	case g.updated <- err:
	default:
	}
}

func (g *Group) removeOutcome(ip netip.Addr, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.removed[ip]; c != nil {
		delete(g.removed, ip)
		c <- err
	}
}

// memberGone removes a member that has left, whatever the cause.
func (g *Group) memberGone(m envelope.MemberKey) {
	g.mu.Lock()
	g.peers = slices.DeleteFunc(g.peers, func(c oob.ConnInfo) bool { return c.IP == m.IP && c.QPN == m.QPN })
	g.mu.Unlock()
	g.removeOutcome(m.IP, nil)
}

// joined adds and reports a new member.
func (g *Group) joined(c oob.ConnInfo) {
	g.mu.Lock()
	g.peers = append(slices.DeleteFunc(g.peers, func(o oob.ConnInfo) bool { return o.IP == c.IP }), c)
	g.mu.Unlock()
	// Reports are made under the driver's mutex, so that they do not overlap.
	g.driver.call(func(time.Duration, *envelope.Output) {
		g.report(Event{Kind: MemberJoined, Member: c.IP, QPN: c.QPN}, false)
	})
}
