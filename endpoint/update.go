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

	"github.com/gleam-rdma/gleam/endpoint/oob"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
)

// ErrNotMaster is returned by the methods that only a group's master has.
var ErrNotMaster = errors.New("only the master of a group changes its members")

// Add lets the member that listens at addr (MemberConfig.Listener) join the
// group, and returns when it has confirmed. Data may flow: the new member
// receives the source's messages from the next one on, the others see nothing of
// it. One that was evicted comes back like this, with a queue pair that has other
// PSNs. Sockets are opened in the network namespace of the calling thread.
func (g *Group) Add(ctx context.Context, addr string) error {
	return g.addMember(ctx, g.dial(addr), false)
}

// AddFrom is Add for the next member that connects to ln (MemberConfig.Master).
// A master that lets members come at any time calls it again and again.
func (g *Group) AddFrom(ctx context.Context, ln net.Listener) error {
	return g.addMember(ctx, g.accept(ln), false)
}

// Update is Add for a member that has restarted its queue pair: it takes the
// place of the one with its address.
func (g *Group) Update(ctx context.Context, addr string) error {
	return g.addMember(ctx, g.dial(addr), true)
}

// UpdateFrom is AddFrom for a member that may have been in the group before: a
// restarted one takes the place of the one with its address.
func (g *Group) UpdateFrom(ctx context.Context, ln net.Listener) error {
	return g.addMember(ctx, g.accept(ln), true)
}

// Remove takes the member at ip out of the group and waits until the switch has
// confirmed it. The others go on.
func (g *Group) Remove(ctx context.Context, ip netip.Addr) error {
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
			if m.IP == ip {
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

// lock waits until nobody else changes the members.
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
		return g.reportGivenUp(ctx)
	}
}

// memberDialer makes a connection to a member that has the key.
type memberDialer func(context.Context) (net.Conn, error)

func (g *Group) dial(addr string) memberDialer {
	return func(ctx context.Context) (net.Conn, error) { return g.host.identity.Dial(ctx, addr, oob.Exchange) }
}

func (g *Group) accept(ln net.Listener) memberDialer {
	return func(ctx context.Context) (net.Conn, error) { return g.host.identity.Accept(ctx, ln, oob.Exchange) }
}

// addMember meets one member and makes it one of the group.
func (g *Group) addMember(ctx context.Context, meet memberDialer, replace bool) error {
	fail := func(err error) error { return fmt.Errorf("add a member to group %s: %w", g.info.IP, err) }
	if g.master == nil {
		return fail(ErrNotMaster)
	}
	c, err := meet(ctx)
	if err != nil {
		return fail(err)
	}
	p, err := oob.Handshake(ctx, c, oob.Admission{Identity: g.host.identity, Check: g.checkJoiner, OtherNetwork: g.otherNetwork})
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
	_ = p.Registered(ctx) // one that is gone by now is the switch's business
	_ = p.Close()
	return nil
}

// checkJoiner says why a newcomer cannot be in this group.
func (g *Group) checkJoiner(c *oob.ConnInfo) error {
	w := g.info.Window
	switch {
	case c.IP.BitLen() != g.info.IP.BitLen():
		return fmt.Errorf("its address is not of the family of GroupIP %s", g.info.IP)
	case w != (mcast.Window{}) && (c.Window == nil || c.Window.Len < w.Len):
		return fmt.Errorf("the group has a WRITE window of %d bytes, and it has no memory of that size for it", w.Len)
	case w == (mcast.Window{}) && c.Window != nil:
		c.Window = nil // nobody will write to it
	}
	return nil
}

// admit has the newcomer connect and registers it. The caller holds the lock.
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
	// Members may go at any time: the list is made, and compared with what the
	// switch has, as late as possible, and once more if it was too early.
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

// members are the records of those that are in the group.
func (g *Group) members() (ms []envelope.MemberRecord) {
	g.driver.call(func(time.Duration, *envelope.Output) { ms = g.master.Members() })
	return ms
}

// untilRemoved waits until the master's machine has heard that k has gone.
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

// update has the machine make the members what change says, and waits for it.
func (g *Group) update(ctx context.Context, change func([]envelope.MemberRecord) []envelope.MemberRecord) error {
	select {
	case <-g.updated: // of one that somebody stopped waiting for
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

// updateOutcome takes an update's end from the machine.
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

// memberGone notes that a member has gone, for whatever reason.
func (g *Group) memberGone(ip netip.Addr) {
	g.mu.Lock()
	g.peers = slices.DeleteFunc(g.peers, func(c oob.ConnInfo) bool { return c.IP == ip })
	g.mu.Unlock()
	g.removeOutcome(ip, nil)
}

// joined notes and reports a new member.
func (g *Group) joined(c oob.ConnInfo) {
	g.mu.Lock()
	g.peers = append(slices.DeleteFunc(g.peers, func(o oob.ConnInfo) bool { return o.IP == c.IP }), c)
	g.mu.Unlock()
	// Reports come from the driver, one at a time.
	g.driver.call(func(time.Duration, *envelope.Output) { g.report(Event{Kind: MemberJoined, Member: c.IP}, false) })
}
