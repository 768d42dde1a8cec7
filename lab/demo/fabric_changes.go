// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab/demo/tree"
	"github.com/gleam-rdma/gleam/lab/fabric"
)

// disturbances is what is to happen in the middle of the transfer; nil: nothing.
func (f *fabricRun) disturbances(ctx context.Context) *disturbances {
	if len(f.opts.planned) == 0 {
		return nil
	}
	d := &disturbances{say: f.log, do: f.change}
	if f.opts.Routing != fabric.Static {
		d.routed = f.fabric.WaitRouted
	}
	var names []string
	for _, h := range f.hosts[1:] {
		names = append(names, h.Name)
	}
	d.pauses = watchPauses(names, f.packets(), func(i int) uint64 { return f.hosts[i+1].group.QP().Stats().Accepted })
	return newDisturbances(ctx, f.opts.planned, f.plan.Count(), d)
}

// change makes a change, and replaces auto by the element.
func (f *fabricRun) change(ctx context.Context, c *change) error {
	if c.what == auto {
		if err := f.choose(c); err != nil {
			return err
		}
	}
	switch c.kind {
	case reload:
		return f.reload(ctx)
	case failLink:
		a, b := ends(f.opts.topology, c.what)
		return f.fabric.SetCarrier(a, b, false)
	case failSwitch:
		return f.fabric.Isolate(c.what)
	}
	g := f.fabric.Gleamds[c.what]
	if !c.kill {
		return g.Restart(ctx)
	}
	if err := g.Kill(); err != nil {
		return err
	}
	return g.Start(ctx)
}

// reload has each gleamd reload its configuration, one after the other.
func (f *fabricRun) reload(ctx context.Context) error {
	for _, s := range f.fabric.Switches {
		if _, err := f.fabric.Gleamds[s.Name].Client.Reload(ctx, api.Reload{}); err != nil {
			return fmt.Errorf("switch %s: %w", s.Name, err)
		}
	}
	return nil
}

// choose takes the link between switches, or the switch without members, that has carried the
// most data of the group so far. A switch that restarts may have receivers, but not the source.
func (f *fabricRun) choose(c *change) error {
	now, err := f.count()
	if err != nil {
		return err
	}
	load := make(map[string]uint64)
	top := f.opts.topology
	for _, l := range top.Links {
		if !slices.Contains(top.Switches, l.A) || !slices.Contains(top.Switches, l.B) {
			continue
		}
		for _, d := range [][2]string{{l.A, l.B}, {l.B, l.A}} {
			n := now[d].Sub(f.begun[d]).GroupData.Frames
			if c.kind == failLink {
				load[l.String()] += n
			} else {
				load[d[1]] += n
			}
		}
	}
	for i, h := range f.hosts {
		if c.kind == failSwitch || i == 0 {
			delete(load, h.Port)
		}
	}
	for name, n := range load {
		if n > load[c.what] || n > 0 && n == load[c.what] && name < c.what {
			c.what = name
		}
	}
	if c.what == auto {
		return errors.New("the group's packets use none that could be taken; name one")
	}
	return nil
}

// ends are the two ends of a link.
func ends(t *fabric.Topology, link string) (a, b string) {
	for _, l := range t.Links {
		if l.String() == link {
			return l.A, l.B
		}
	}
	return "", ""
}

// marks are what the picture shows of the changes.
func (f *fabricRun) marks() []tree.Mark {
	var all []tree.Mark
	for _, c := range f.disturb.begun() {
		m := tree.Mark{Node: c.what, Failed: c.kind != restartSwitch}
		switch c.kind {
		case reload:
			continue
		case failLink:
			m.Node, m.To = ends(f.opts.topology, c.what)
		}
		all = append(all, m)
	}
	return all
}

// whyTimeout bounds the time for asking the switches why a group has ended.
const whyTimeout = time.Second

// afterDisturbances explains the error of a transfer in which the fabric has changed, by what
// the switches say of the group's end.
func (f *fabricRun) afterDisturbances(err error) error {
	changes := f.disturb.begun()
	if len(changes) == 0 {
		return err
	}
	var what []string
	for _, c := range changes {
		what = append(what, c.String())
	}
	text := fmt.Sprintf("the group's transfer failed after %s", strings.Join(what, ", "))
	ctx, cancel := context.WithTimeout(context.Background(), whyTimeout)
	defer cancel()
	for _, s := range f.fabric.Switches {
		es, eventsErr := f.fabric.Gleamds[s.Name].Client.Events(ctx, 0, 0)
		if eventsErr != nil {
			continue // the one that has failed
		}
		for _, e := range es.Events {
			if e.Group == f.group && (e.Kind == api.EventEnded || e.Kind == api.EventFailed) {
				text += fmt.Sprintf("\nswitch %s ended the group: %s", s.Name, f.withNames(e.Reason))
			}
		}
	}
	return fmt.Errorf("%s\nat the source: %w", text, err)
}

// withNames puts the names of switches in the place of their IDs.
func (f *fabricRun) withNames(text string) string {
	for _, s := range f.fabric.Switches {
		text = strings.ReplaceAll(text, "switch "+s.ID(), "switch "+s.Name)
	}
	return text
}
