// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
)

// maxSwitches bounds the switches that are asked: one that lies could name any number.
const maxSwitches = 1024

// asking bounds the switches that are asked at the same time.
const asking = 16

var switchID = regexp.MustCompile(`^[0-9a-f]{16}$`)

// treeSwitch is a switch of a group's tree, and what it has answered.
type treeSwitch struct {
	Switch  string       `json:"switch"`            // its ID
	Address string       `json:"address,omitempty"` // the address of its API; none for the one that is asked first
	Error   string       `json:"error,omitempty"`   // the reason why it has not answered
	Group   *api.Group   `json:"group,omitempty"`   // what it has answered
	Rates   *watch.Rates `json:"rates,omitempty"`   // the rates between two answers

	Topology *api.Topology `json:"topology,omitempty"`

	client *api.Client
	asked  time.Time
}

// collector asks the switches of a group's tree, from the first one on.
type collector struct {
	group   netip.Addr
	remote  *Remote
	given   map[string]string // addresses of APIs by ID
	timeout time.Duration     // the timeout of a call

	list []*treeSwitch
}

// collect asks first for the group, or the switches around it if it has none, and then all
// that are next in the tree to one that has answered. A switch that does not answer has the
// reason. The error is that of the first.
func (c *collector) collect(ctx context.Context, first *api.Client) error {
	s := &treeSwitch{client: first}
	err := c.ask(ctx, s)
	if isUnknownGroup(err) {
		if found := c.search(ctx, s); found != nil {
			s, err = found, nil
		}
	}
	c.list = []*treeSwitch{s}
	if err != nil {
		return err
	}
	if t := s.Group.Tree; t != nil {
		s.Switch = t.Switch
	}
	c.spread(ctx)
	return nil
}

// search asks the neighbours of a switch for the group, and theirs, until one has it; nil if
// none has.
func (c *collector) search(ctx context.Context, first *treeSwitch) *treeSwitch {
	var found []*treeSwitch
	var mu sync.Mutex
	c.walk(ctx, first, func(s *treeSwitch) bool {
		if s != first && s.Topology != nil && c.ask(ctx, s) == nil {
			mu.Lock()
			defer mu.Unlock()
			found = append(found, s)
		}
		return len(found) > 0
	})
	c.close()
	if len(found) == 0 {
		return nil
	}
	return found[0]
}

// walk asks a switch for its topology, then its neighbours, and theirs, until done says so of
// one of them or all have been asked. They are in c.list then.
func (c *collector) walk(ctx context.Context, first *treeSwitch, done func(*treeSwitch) bool) {
	c.list = []*treeSwitch{first}
	for at, over := 0, false; at < len(c.list) && !over; {
		round := c.list[at:]
		at = len(c.list)
		var mu sync.Mutex
		each(round, func(s *treeSwitch) {
			if s.client == nil {
				return
			}
			c.askTopology(ctx, s)
			end := done(s)
			mu.Lock()
			defer mu.Unlock()
			over = over || end
		})
		for _, s := range round {
			if s.Topology != nil {
				for _, n := range s.Topology.Neighbours {
					c.add(n)
				}
			}
		}
	}
}

// askTopology has a switch say which neighbours it has.
func (c *collector) askTopology(ctx context.Context, s *treeSwitch) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	t, err := s.client.Topology(ctx)
	switch {
	case err != nil:
		s.Error = err.Error()
	case s.Switch != "" && t.Switch != s.Switch:
		s.Error = otherSwitch(s, t.Switch)
	default:
		s.Switch, s.Topology = t.Switch, t
	}
}

// otherSwitch says that another switch answers than s.
func otherSwitch(s *treeSwitch, id string) string {
	if id == "" {
		id = "no ID"
	}
	return fmt.Sprintf("at %s answers another switch, with %s: its neighbour says that this is %s", s.Address, id, s.Switch)
}

// spread asks those that are next in the tree to each switch which has answered.
func (c *collector) spread(ctx context.Context) {
	for at := 0; at < len(c.list); {
		round := c.list[at:]
		at = len(c.list)
		for _, s := range round {
			for _, n := range s.neighbours() {
				c.add(n)
			}
		}
		each(c.list[at:], func(s *treeSwitch) {
			if s.client == nil {
				return
			}
			if err := c.ask(ctx, s); err != nil {
				s.Error = err.Error()
			} else if t := s.Group.Tree; t == nil {
				s.Group, s.Error = nil, otherSwitch(s, "")
			} else if t.Switch != s.Switch {
				s.Group, s.Error = nil, otherSwitch(s, t.Switch)
			}
		})
	}
}

// neighbours are the switches next to s in the tree.
func (s *treeSwitch) neighbours() []api.NeighbourSwitch {
	if s.Group == nil || s.Group.Tree == nil {
		return nil
	}
	var list []api.NeighbourSwitch
	for _, l := range s.Group.Tree.Legs {
		list = append(list, api.NeighbourSwitch{Switch: l.Switch, API: l.API})
	}
	return list
}

// add notes a switch, once.
func (c *collector) add(n api.NeighbourSwitch) {
	known := slices.ContainsFunc(c.list, func(o *treeSwitch) bool { return o.Switch == n.Switch })
	if known || !switchID.MatchString(n.Switch) || len(c.list) == maxSwitches {
		return
	}
	s := &treeSwitch{Switch: n.Switch, Address: n.API}
	if given := c.given[n.Switch]; given != "" {
		s.Address = given
	}
	if s.Address == "" {
		s.Error = fmt.Sprintf("it has not said where its API over TCP is (api.listen and api.advertise there): name it by --switch %s=ADDRESS:PORT", n.Switch)
	} else {
		s.client = c.remote.client(s.Address)
	}
	c.list = append(c.list, s)
}

// ask has a switch describe the group.
func (c *collector) ask(ctx context.Context, s *treeSwitch) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	g, err := s.client.Group(ctx, c.group)
	if err == nil {
		s.Group, s.asked = g, time.Now()
	}
	return err
}

// each calls do for all switches, some at the same time.
func each(list []*treeSwitch, do func(*treeSwitch)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, asking)
	for _, s := range list {
		slots <- struct{}{}
		all.Go(func() {
			do(s)
			<-slots
		})
	}
	all.Wait()
}

// sample asks all that have answered again, after a time.
func (c *collector) sample(ctx context.Context, after time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(after):
	}
	each(c.list, func(s *treeSwitch) {
		if s.Group == nil {
			return
		}
		was, at := s.Group, s.asked
		if c.ask(ctx, s) == nil { // else there are no rates
			s.Rates = watch.Between(was, s.Group, s.asked.Sub(at))
		}
	})
	return ctx.Err()
}

// close drops the connections.
func (c *collector) close() {
	for _, s := range c.list {
		if s.client != nil {
			s.client.Close()
		}
	}
}

// isUnknownGroup reports that a switch has no such group.
func isUnknownGroup(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Reason == api.ReasonUnknownGroup
}
