// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
	"github.com/gleam-rdma/gleam/internal/control/store"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
	"github.com/gleam-rdma/gleam/mcast"
)

// What is kept over a restart. The control loop tells the state file what has changed, which
// a goroutine of its own writes. The core's data of a new turn waits until the turn is durable
// (R83), so positions are read and stored at once.

// keeping is what is kept over a restart.
type keeping struct {
	*store.Keeper                               // nil: groups are not kept
	storing       map[*group]*positionsUnderWay // groups whose positions are being stored
	epochBase     uint64                        // another one, and higher, with each start
}

// keptGroup is what the file has of a group, beside the registration.
type keptGroup struct {
	reported uint32                   // the number of the last positions that were read
	inFile   bool                     // the file has the group
	turn     *statefile.Turn          // nil: no member has sent yet
	records  []*envelope.MemberRecord // the records of the members by slot when turn was read; nil: had gone
}

// hasRecord reports whether a member, now in slot i, had the record r when the turn was read.
func (k *keptGroup) hasRecord(i int, r *envelope.MemberRecord) bool {
	return i < len(k.records) && k.records[i] == r || slices.ContainsFunc(k.records, func(x *envelope.MemberRecord) bool { return x != nil && *x == *r })
}

// positionsUnderWay are positions that are not durable yet.
type positionsUnderWay struct {
	positions  mcast.Positions
	number     uint32
	generation uint64 // the generation of the registration
	change     uint64 // the number of the file's change
}

// storeInterval is the least time between two writes, and between two reads of outcomes where
// groups are kept: the data of a new turn waits for both.
const storeInterval = 500 * time.Microsecond

// stateFile is the path of the state file.
func stateFile(cfg *config.Config) string { return filepath.Join(cfg.State, "groups") }

// CheckStateFile is the check of CheckState.
const CheckStateFile = "state-file"

// CheckState looks for problems with the state file of a process that becomes user uid. It
// changes nothing.
func CheckState(cfg *config.Config, uid int) (found []checks.Finding) {
	if cfg.State == "" {
		return nil
	}
	if fatal, err := statefile.Check(stateFile(cfg), uid); err != nil {
		found = append(found, checks.Finding{Check: CheckStateFile, Fatal: fatal, Text: fmt.Sprintf("key state: %v", err)})
	}
	return found
}

// openKeeper opens the state file; without one, the keeper is nil.
func openKeeper(cfg *config.Config, uid int, notify Notify) (*store.Keeper, error) {
	if cfg.State == "" {
		return nil, nil
	}
	k, err := store.OpenKeeper(stateFile(cfg), uid, storeInterval, notify)
	if err != nil {
		return nil, fmt.Errorf("key state: %w", err)
	}
	if cfg.PSNProbe == 0 {
		notify(true, "groups are not kept over a restart: with psn_probe 0s receivers are not asked what they have")
	}
	return k, nil
}

// durable ends an operator's request whose outcome is err. A change that was made is in the state
// file when the operator is told of it: a switch that is killed afterwards begins with it. If the
// file cannot be written, the operator is told that, too.
func (e *Engine) durable(err error) error {
	c := e.control
	if err != nil || c.keeper.Keeper == nil {
		return err
	}
	if !c.do(func() {
		if len(c.connections.unkept.groups) > 0 {
			c.storeConnections(c.now())
		}
	}) {
		return errStopped
	}
	if err := c.keeper.Flush(); err != nil {
		return &api.Error{Reason: api.ReasonNotStored, Message: "it is done, and holds until gleamd ends; a restart would undo it: " + err.Error()}
	}
	return nil
}

// storageFails reports whether the file cannot be written in which new members have to be.
func (c *control) storageFails() bool { return c.keeper.Failing() }

func (c *control) outcomeInterval() time.Duration {
	if c.keeper.Keeper != nil {
		return storeInterval
	}
	return outcomeInterval
}

// keep has the present registration of a group stored, or that it is gone; with it the places of its
// members, and that hosts which have left their last group with it have none any more.
func (c *control) keep(ip netip.Addr) {
	former := c.dir.hosts.TakeFormer(ip)
	if c.keeper.Keeper == nil || !ip.IsValid() {
		return
	}
	var change statefile.Change
	for _, ip := range former {
		change.PutHost(ip, &statefile.Host{})
	}
	s, ok := c.registrar.Saved(ip)
	g := c.dir.groups[ip]
	if !ok || g == nil || c.dir.defaults.psnProbe == 0 || c.dir.isSession(ip) {
		if change.DropGroup(ip); g != nil {
			g.kept.inFile = false
		}
	} else {
		g.kept.inFile = true
		c.readPositions(g)
		x := &statefile.Group{
			Registration: s.Registration, Key: s.Key, Transaction: s.Transaction, Digests: s.Digests, Joined: s.Joined,
			RegisteredAt: g.registeredAt.Truncate(time.Millisecond), Failed: s.Failed, Turn: g.presentTurn(),
			Identity: identityOf(&s), Place: placeOf(&s),
		}
		for _, f := range s.Former {
			x.Former = append(x.Former, statefile.Former(f))
		}
		change.PutGroup(x)
		for i := range g.slots {
			if h := c.dir.hosts.Of(g.slots[i].record.IP); h != nil && h.IsMember() && !g.slots[i].gone {
				change.PutHost(h.IP(), c.dir.hosts.Saved(h))
			}
		}
	}
	if n := c.registrar.Newest(ip); g != nil && n > c.keeper.epochBase { // else the base of the next start is newer
		change.SetEpoch(ip, n)
	}
	n := c.keeper.Append(&change)
	c.departures.outbox.Note(ip, n)
	c.storePositions(g, n)
}

// keepHost has the places of a member stored.
func (c *control) keepHost(h *location.Host) {
	if c.keeper.Keeper == nil || h == nil || !h.IsMember() {
		return
	}
	var change statefile.Change
	change.PutHost(h.IP(), c.dir.hosts.Saved(h))
	c.keeper.Append(&change)
}

// keepPositions has the present positions of a group stored.
func (c *control) keepPositions(g *group) {
	if c.keeper.Keeper == nil || !c.readPositions(g) {
		return
	}
	var change statefile.Change
	if g.kept.inFile {
		change.SetTurn(g.reg.Group, g.presentTurn())
	}
	c.storePositions(g, c.keeper.Append(&change))
}

// readPositions reads the positions of a group, if there are any to store.
func (c *control) readPositions(g *group) bool {
	w := &positionsUnderWay{generation: g.generation}
	var ok bool
	if w.number, ok = g.handle.Positions(&w.positions); !ok || w.number == 0 {
		return false
	}
	g.noteTurn(&w.positions)
	g.kept.reported = w.number
	c.keeper.storing[g] = w
	return true
}

// noteTurn notes positions that were read.
func (g *group) noteTurn(p *mcast.Positions) {
	t := &statefile.Turn{}
	g.kept.records = make([]*envelope.MemberRecord, len(p.Members))
	for i, at := range p.Members {
		s := &g.slots[i]
		if s.gone {
			continue
		}
		r := s.record
		g.kept.records[i] = r
		if at.Known {
			t.Positions = append(t.Positions, statefile.Position{Member: r.IP, Send: at.Send, Receive: at.Receive, FullHistory: at.FullHistory})
		}
		if at.Joining {
			t.Joining = append(t.Joining, r.IP)
		}
	}
	if p.HasSource {
		t.Source = g.slots[p.Source].record.IP
	}
	g.kept.turn = t
}

// keepLast has the last positions of all groups stored, and the connections. The workers have ended.
func (c *control) keepLast() {
	if c.keeper.Keeper == nil {
		if n := len(c.dir.groups); n > 0 {
			c.notify(true, "groups end with gleamd, as it has no state file: their hosts register them again, or with the key state: a directory they go on after the next start", "groups", n)
		}
		return
	}
	var change statefile.Change
	for ip, g := range c.dir.groups {
		var p mcast.Positions
		if g.kept.inFile && g.handle.LastPositions(&p) {
			g.noteTurn(&p)
			change.SetTurn(ip, g.presentTurn())
		}
	}
	c.keeper.Append(&change)
	if len(c.connections.unkept.groups) > 0 {
		c.storeConnections(c.now())
	}
}

// storePositions notes that the positions that were read are durable with a change of the
// file. While that cannot be written they do not wait for the next try.
func (c *control) storePositions(g *group, change uint64) {
	if w := c.keeper.storing[g]; w != nil && w.change == 0 {
		w.change = change
	}
	if c.keeper.Failing() {
		c.keeper.Ring()
	}
}

// presentTurn returns the positions of those members that are still the same queue pairs. A member
// behind another switch that has come since they were read has had nothing of the turn.
func (g *group) presentTurn() *statefile.Turn {
	if g.kept.turn == nil {
		return nil
	}
	t := &statefile.Turn{}
	for i := range g.slots {
		s := &g.slots[i]
		joins := slices.Contains(g.kept.turn.Joining, s.record.IP)
		if !g.kept.hasRecord(i, s.record) {
			joins = !s.isHere()
		}
		if joins && !s.gone {
			t.Joining = append(t.Joining, s.record.IP)
		}
	}
	for _, p := range g.kept.turn.Positions {
		for i := range g.slots {
			if s := &g.slots[i]; !s.gone && s.record.IP == p.Member && g.kept.hasRecord(i, s.record) {
				t.Positions = append(t.Positions, p)
				if p.Member == g.kept.turn.Source {
					t.Source = p.Member
				}
			}
		}
	}
	return t
}

// followFile reports that the file cannot be written, or can again, and tells the groups whose
// positions have become durable. If nothing can be stored they go on all the same: a restart finds by the
// members' answers that the positions are old, and ends the group (R83). What else waits for the file is in the outbox.
func (c *control) followFile() {
	stored, failing, news := c.keeper.Look()
	if news != nil {
		c.journal.Add(*news)
	}
	c.registrar.SetStorageFails(failing)
	for g, w := range c.keeper.storing {
		if w.change <= stored || failing {
			delete(c.keeper.storing, g)
			if c.dir.byID[g.id] == g && g.generation == w.generation {
				g.handle.PositionsStored(w.number, &w.positions)
			}
		}
	}
	if u := &c.connections.unkept; u.change <= stored || failing {
		u.change = 0
	}
}
