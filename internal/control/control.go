// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/internal/control/store"
	"github.com/gleam-rdma/gleam/internal/control/tree"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// control is the control plane of the switch: one goroutine that drives the registrar and
// owns the directory. It receives envelopes and changed groups from the workers, changes
// of links and neighbours from netlink, and closures by do.
type control struct {
	calls
	plane       *dataplane.Plane
	ports       []*port
	dir         *directory
	registrar   *envelope.Registrar
	out         envelope.Output // the output of the registrar
	notify      Notify
	journal     *store.Journal
	keeper      keeping
	loop        loop
	outcomes    outcomeReader
	refused     refusals
	endedGroups []api.Group // the last states of groups that have ended, oldest first
	departures  departures
	kernel      kernelTables
	moves       moves
	connections connections // the connections of members by RDMA-CM
	switches    tree.Switches
	count       counters
	hooks       hooks
}

// hooks are called by the control loop, and are the engine's.
type hooks struct {
	onLinkChange func()                   // called when an interface has changed
	onPortOpened func(pi int)             // called when a slot has another interface
	onPortState  func(pi int)             // called when the bridge's state of a port, or its MAC address, has changed
	onNeighbours func(map[int]rocev2.MAC) // called with the neighbours that are up, by slot
}

// newControl goes on with what k has found of the control plane before a restart; nil:
// nothing is kept.
func newControl(k *store.Keeper, plane *dataplane.Plane, ports []*port, l location.Locator, cfg *config.Config, secret [envelope.SecretLen]byte, notify Notify) (*control, error) {
	c := &control{
		calls: newCalls(), plane: plane, ports: ports, notify: notify, dir: newDirectory(plane, ports, cfg, notify), journal: store.NewJournal(),
		keeper:   keeping{Keeper: k, storing: make(map[*group]*positionsUnderWay), epochBase: k.EpochBase()},
		loop:     loop{requestPolicer: dataplane.NewPolicer(requestIterations)},
		outcomes: outcomeReader{delayReports: dataplane.NewPolicer(delayReportRate)},
		refused:  newRefusals(), departures: newDepartures(), kernel: kernelTables{locator: l, lookups: location.NewLookups()},
		hooks: hooks{func() {}, func(int) {}, func(int) {}, func(map[int]rocev2.MAC) {}},
	}
	c.departures.onLeave = c.leave
	c.switches.Notify, c.switches.Port = notify, func(pi int) tree.Port { return tree.Port{Name: ports[pi].Name, MAC: ports[pi].MAC, MTU: ports[pi].mtu} }
	c.count.registration, c.count.install, c.count.stored = dataplane.NewRegistrationTimes(), dataplane.NewStepTimes(), dataplane.NewStepTimes()
	c.dir.onInstalled = c.count.install.Add
	c.dir.defaults.stored, c.dir.storageFails = k != nil, c.storageFails
	auth, rights := keysOf(&cfg.Envelope)
	reg, err := envelope.NewRegistrar(envelope.RegistrarConfig{
		Prefixes: cfg.GroupPrefixes, Auth: auth, Rights: rights, Secret: secret, EpochBase: c.keeper.epochBase, Seed: rand.Uint64(), Port: cfg.Envelope.UDPPort,
		MaxGroups: cfg.Limits.Groups, MaxMembers: cfg.Limits.MembersPerGroup,
		MaxLease: cfg.Envelope.LeaseMax, LocateTimeout: cfg.Envelope.LocateTimeout,
		LocateRetry: locateRetry,
	}, c.dir)
	if err != nil {
		return nil, fmt.Errorf("set up registration: %w", err)
	}
	c.registrar = reg
	c.connections = newConnections(secret, auth.Keys, len(ports))
	c.dir.connections = &c.connections
	c.dir.onOutcome, c.dir.onEnd = c.reportOutcome, c.groupEnded
	c.setupMoves(cfg, c.registrar)
	c.dir.onMoved = c.announce
	c.dir.hosts.OnPlaced = c.keepHost
	c.dir.onNewTable = func(g *group) {
		c.checkIsolation(g)
		c.checkPMTU(g)
	}
	c.loop.timed = c.timedWork()
	return c, nil
}

// sendOutput reports the registrar's events and queues its packets, which leave at the end of
// the iteration: a host that has received an answer finds its change in log, journal and state file.
func (c *control) sendOutput() {
	if r := c.out.Drop; r != envelope.NoDrop {
		c.count.envelope[r]++
	}
	for i := range c.out.Events {
		c.report(&c.out.Events[i])
	}
	for i := range c.out.Packets {
		c.send(&c.out.Packets[i])
	}
	c.sendRelays()
}

// report tells the operator of e, and gives a local registration's waiter its outcome.
func (c *control) report(e *envelope.Event) {
	if e.Kind != envelope.RegistrationFailed || c.dir.groups[e.Group] != nil { // else the file has nothing of it
		defer c.keep(e.Group)
	}
	j := api.Event{Group: e.Group, Member: e.Member.IP, QPN: api.QPN(e.Member.QPN), By: c.audit(e)}
	g := c.dir.groups[e.Group]
	switch e.Kind {
	case envelope.Registered:
		c.count.noteAccepted(e, c.now())
		j.Kind = api.EventRegistered
		if g != nil && g.reg.Base != 0 {
			j.Kind = api.EventUpdated
			c.notify(false, "group updated", "group", e.Group, "epoch", e.Epoch)
		} else {
			c.notify(false, "group registered", "group", e.Group, "epoch", e.Epoch)
			c.warnUndeclared(g)
		}
		j.Reason = fmt.Sprintf("epoch %d, %d members", e.Epoch, e.Total)
		c.answer(e.Group, nil)
		if g != nil {
			c.checkPMTU(g)
			c.checkIsolation(g)
			c.announceGroup(g, everyPort)
		}
	case envelope.Unchanged:
		c.noteUnchanged(e)
		c.answer(e.Group, nil)
		return
	case envelope.RegistrationFailed:
		c.noteRejection(e)
		c.answer(e.Group, e.Err)
		return
	case envelope.Rebuilt:
		j.Kind = api.EventRebuilt
		if j.Reason = fmt.Sprintf("generation %d", g.generationOfTree()); e.Err != nil {
			j.Reason += ": " + e.Err.Error()
		}
		c.notify(false, "the tree of a group was built anew", "group", e.Group, "attempt", g.generationOfTree(), "reason", e.Err)
		if g != nil {
			c.checkPMTU(g)
		}
	case envelope.RebuildFailed:
		j.Kind, j.Reason = api.EventRebuilt, "failed: "+e.Err.Error()+moreText(e)
		c.notify(true, "the tree of a group cannot be built anew: the group ends unless it can be soon", "group", e.Group, "error", e.Err)
	case envelope.MemberJoined:
		j.Kind = api.EventJoined
		c.notify(false, "member joins", "group", e.Group, "member", e.Member)
	case envelope.MemberGone:
		j.Kind, j.Reason = api.EventRemoved, e.EndReason.String()
		switch e.EndReason {
		case envelope.Left:
			j.Kind = api.EventLeft
		case envelope.Evicted:
			psn := api.PSN(e.PSN)
			j.Kind, j.Reason, j.PSN = api.EventEvicted, envelope.Cause(e.Code), &psn
			if g != nil {
				j.Port = c.portNameOfMember(g, e.Member)
			}
		}
		if g != nil {
			g.rememberFormer(e, c.portNameOfMember(g, e.Member))
		}
		if g == nil || g.slotOf(e.Member) < 0 { // else its host has connected again, with the same queue pair
			c.connections.note(registrationOutcome{group: e.Group, member: e.Member, kind: memberGone})
		}
		c.notify(false, "member is no longer in the group", "group", e.Group, "member", e.Member, "reason", e.EndReason.String())
	case envelope.GroupGone:
		c.connections.note(registrationOutcome{group: e.Group, kind: groupGone})
		j.Kind, j.Reason = api.EventEnded, c.endReason(e)
		if n := len(c.endedGroups); n > 0 && c.endedGroups[n-1].IP == e.Group {
			j.Reason += "; last state: " + endText(&c.endedGroups[n-1])
		}
		c.notify(e.Err != nil, "group ended", "group", e.Group, "reason", c.endReason(e))
	default:
		return
	}
	c.journal.AddBy(e.By, j)
}

// warnUndeclared warns that a group's dead_after cannot be checked, if the sender's
// timeout is not declared.
func (c *control) warnUndeclared(g *group) {
	if g != nil && g.reg.DeadAfter > 0 && g.reg.DeadAfter != mcast.NeverDead && g.reg.SenderTimeout == 0 {
		c.notify(true, "dead_after cannot be checked: the sender's timeout and retries are not declared", "group", g.reg.Group, "dead_after", g.reg.DeadAfter)
	}
}

func (c *control) answer(group netip.Addr, err error) {
	if text := c.refusedText(err); text != "" {
		err = fmt.Errorf("%w%s", err, text)
	}
	c.connections.note(registrationOutcome{group: group, err: err, kind: registrationAnswered})
	if ch := c.localWaiters[group]; ch != nil {
		delete(c.localWaiters, group)
		ch <- err
	}
}

// deleteByOperator deletes a group at the operator's request. It returns false if there
// is none.
func (c *control) deleteByOperator(ip netip.Addr) bool {
	err := c.registrar.DeleteLocal(c.now(), ip, &c.out)
	c.sendOutput()
	return err == nil
}

// registerByOperator registers a group at the operator's request and waits for the
// outcome. It replaces another group of the same address only if replace is set.
func (c *control) registerByOperator(reg envelope.Registration, replace bool) error {
	ch := make(chan error, 1)
	var busy bool
	var exists error
	ok := c.do(func() {
		if busy = c.localWaiters[reg.Group] != nil; busy {
			return
		}
		if old, _, live := c.registrar.Group(reg.Group); live && !replace {
			if exists = replaceConflict(&old, &reg); exists != nil {
				return
			}
		}
		c.localWaiters[reg.Group] = ch
		_, err := c.registrar.RegisterLocal(c.now(), reg, &c.out)
		c.sendOutput()
		if err != nil {
			c.answer(reg.Group, err)
		}
	})
	switch {
	case !ok:
		return errStopped
	case busy:
		return &api.Error{Reason: "busy", Message: fmt.Sprintf("group %s is being registered by another requester: try again", reg.Group)}
	case exists != nil:
		return exists
	}
	var err error
	select {
	case err = <-ch:
	case <-c.ended:
		return errStopped
	}
	var problem *envelope.Problem
	if errors.As(err, &problem) {
		msg := fmt.Sprintf("group %s rejected: %s", reg.Group, strings.TrimPrefix(err.Error(), fmt.Sprintf("register group %s: ", reg.Group)))
		if problem.Reason == envelope.UnknownMemberLocation {
			msg += " (gleamd --check says what is missing here)"
		}
		return &api.Error{Reason: problem.Reason.String(), Message: msg}
	}
	return err
}

// changeMembers updates a group that was registered by hand; change returns its new
// members.
func (c *control) changeMembers(ip netip.Addr, change func([]envelope.MemberRecord) ([]envelope.MemberRecord, error)) error {
	var reg envelope.Registration
	var err error
	if !c.do(func() {
		var known bool
		if reg, _, known = c.registrar.Group(ip); !known {
			err = unknownGroup(ip)
			return
		}
		if reg.Master.IsValid() {
			err = &api.Error{Reason: envelope.NotAllowed.String(), Message: fmt.Sprintf("group %s is registered by its master at %s, which alone changes its members", ip, reg.Master)}
		}
	}) {
		return errStopped
	}
	if err != nil {
		return err
	}
	if reg.Members, err = change(reg.Members); err != nil {
		return err
	}
	reg.Base, reg.Epoch = reg.Epoch, 0
	return c.registerByOperator(reg, false)
}

// leaseLeft returns how long the group lives without renewal; 0 if it has no lease.
func (c *control) leaseLeft(ip netip.Addr) time.Duration {
	_, until, ok := c.registrar.Group(ip)
	if !ok || until == 0 {
		return 0
	}
	return max(0, until-c.now())
}
