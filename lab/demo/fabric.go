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

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/demo/tree"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

// fabricRun is a run in a fabric.
type fabricRun struct {
	*run
	fabric *testbed.Fabric
	begun  counts // the counts when the group's transfer began
}

// inFabric sends by a group through a fabric, and then to one receiver by a unicast.
func (r *run) inFabric(ctx context.Context) (_ *Result, err error) {
	o := r.opts
	r.group = fabric.GroupsIPv4.Addr().Next()
	if o.IPv6 {
		r.group = fabric.GroupsIPv6.Addr().Next()
	}
	t := o.topology
	r.log.printf("making a lab: %s with gleamd and %s in namespaces, %s routes", plural(len(t.Switches), "switch"), plural(len(t.Hosts), "host"), o.Routing)
	start := time.Now()
	f := &fabricRun{run: r}
	f.fabric, err = testbed.BuildFabric(ctx, testbed.FabricConfig{
		Dir: runDir, Gleamd: o.Gleamd, Members: o.Members, More: o.patience(), State: true, FastPath: o.FastPath,
		Fabric: fabric.Config{Topology: t, Routing: o.Routing, Count: true},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.fabric.Close()) }()
	r.log.printf("all switches are up, with all routes, after %.1f s; one host sends %s to %d", time.Since(start).Seconds(), sizeString(r.plan.Len), o.Members-1)
	hosts := f.members()
	defer r.closeHosts()
	r.client, r.key, r.said = f.fabric.Gleamds[hosts[0].Port].Client, f.fabric.Key, f.output
	if err := r.open(hosts, 0); err != nil { // losses are those of links
		return nil, err
	}
	return f.transfers(ctx)
}

// patience is a line of configuration under which no receiver is probed because it waits for a
// core, which it shares with all switches: so that the counts of links are those of a network. A
// transfer with losses needs the probes.
func (o *Options) patience() string {
	lossy := func(l fabric.Link) bool { return l.Loss > 0 }
	if slices.ContainsFunc(o.topology.Links, lossy) {
		return ""
	}
	return "repair: {timeout: 1s}\n"
}

// members returns the hosts that are members, the source first: hosts of one switch after the
// other in turn. Port is the switch.
func (f *fabricRun) members() []lab.Host {
	var all []lab.Host
	for i := 0; len(all) < f.opts.Members; i++ {
		for _, s := range f.fabric.Switches {
			if i < len(s.Hosts) && len(all) < f.opts.Members {
				h := s.Hosts[i].Host
				h.Port = s.Name
				all = append(all, h)
			}
		}
	}
	return all
}

// output is what the gleamds have written that is no mere information.
func (f *fabricRun) output() string {
	var b strings.Builder
	for _, s := range f.fabric.Switches {
		for line := range strings.Lines(f.fabric.Gleamds[s.Name].Output()) {
			if !strings.Contains(line, "\tINFO\t") {
				fmt.Fprintf(&b, "%s: %s", s.Name, line)
			}
		}
	}
	return b.String()
}

// transfers sends by a unicast, registers the group, and sends by it: in this order, since the
// unicast needs all routes, and the group's transfer may leave a changed fabric.
func (f *fabricRun) transfers(ctx context.Context) (*Result, error) {
	res := f.result()
	var at [3]counts // counts before the unicast, before and after the group's transfer
	var err error
	if at[0], err = f.count(); err != nil {
		return nil, err
	}
	// The farthest receiver is one of another switch, if there is one.
	farthest := f.hosts[len(f.hosts)-1:]
	if err := f.sendByUnicast(ctx, farthest, res); err != nil {
		return nil, err
	}
	start := time.Now()
	if err := f.join(ctx); err != nil {
		return nil, fmt.Errorf("%w\nwhat gleamd said:\n%s", err, f.said())
	}
	f.log.printf("group %s registered: %d members confirmed in %.2f s", f.group, len(f.hosts), time.Since(start).Seconds())
	if at[1], err = f.count(); err != nil {
		return nil, err
	}
	f.begun = at[1]
	f.disturb = f.disturbances(ctx)
	if err := f.sendByGroup(ctx, res); err != nil {
		return nil, f.afterDisturbances(err)
	}
	if at[2], err = f.count(); err != nil {
		return nil, err
	}
	if g, err := f.client.Group(ctx, f.group); err == nil {
		res.Repair = g.Repair
	}
	for _, h := range f.hosts {
		if err := h.group.Close(); err != nil {
			return nil, fmt.Errorf("host %s leaves the group: %w", h.Name, err)
		}
	}
	res.Tree = f.tree(at)
	res.Disturbances = f.disturb.results()
	res.OK = res.Unicast.OK
	for _, v := range res.Receivers {
		res.OK = res.OK && v.OK
	}
	if res.svg = f.opts.SVG; res.svg != "" {
		return res, f.saveSVG(res.Tree)
	}
	return res, nil
}

// counts has what each direction of each link has carried.
type counts map[[2]string]fabric.Traffic

func (f *fabricRun) count() (counts, error) {
	all := make(counts)
	for _, l := range f.opts.topology.Links {
		for _, d := range [][2]string{{l.A, l.B}, {l.B, l.A}} {
			x, err := f.fabric.Traffic(d[0], d[1])
			if err != nil {
				return nil, err
			}
			all[d] = x
		}
	}
	return all, nil
}

// packets is the number of data packets of the payload.
func (r *run) packets() uint64 {
	n := int64(0)
	for i := range r.plan.Count() {
		size := min(r.plan.Message, r.plan.Len-int64(i)*r.plan.Message)
		n += max(1, (size+int64(r.opts.MTU)-1)/int64(r.opts.MTU))
	}
	return uint64(n)
}

// tree compares the counts before the unicast, and before and after the group's transfer.
func (f *fabricRun) tree(at [3]counts) *Tree {
	before, after := at[1], at[2]
	t := &Tree{Packets: f.packets()}
	top, source := f.opts.topology, f.hosts[0]
	for _, l := range top.Links {
		for _, d := range [][2]string{{l.A, l.B}, {l.B, l.A}} {
			x := after[d].Sub(before[d])
			t.Links = append(t.Links, LinkCount{
				From: d[0], To: d[1], Inner: slices.Contains(top.Switches, l.A) && slices.Contains(top.Switches, l.B),
				Data: x.GroupData.Frames, DataBytes: x.GroupData.Bytes, Feedback: x.GroupFeedback.Frames, Envelopes: x.Envelopes.Frames,
			})
		}
	}
	var ends []string
	for _, h := range f.hosts {
		ends = append(ends, h.Port)
		t.Members = append(t.Members, h.Name)
	}
	if links, known := tree.Optimal(top, ends); known {
		t.OptimalLinks = &links
	}
	for i := range t.Links {
		if l := &t.Links[i]; l.Inner {
			t.InnerData += l.Data
			t.MostPerLink = max(t.MostPerLink, l.Data)
		}
	}
	in := [2]string{source.Port, source.Name}
	t.SourceFeedback = after[in].Sub(before[in]).GroupFeedback.Frames
	t.UnicastFeedback = before[in].Sub(at[0][in]).Feedback.Frames
	t.topology, t.source, t.marks = top, source.Name, f.marks()
	return t
}

func (f *fabricRun) saveSVG(t *Tree) (err error) {
	w, err := cli.CreateFile(f.opts.SVG, 0o666)
	if err != nil {
		return fmt.Errorf("--svg: %w", err)
	}
	return errors.Join(t.picture().WriteSVG(w), w.Close())
}
