// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
)

// tree are two switches with a link between them and two hosts of rxe at each. The link goes
// through a namespace of its own, where packets can get lost: what a switch sends passes no
// queueing discipline of its own port.
type tree struct {
	hosts    []*host // hosts of the first switch and of the second one in turn
	wire     *lab.Namespace
	switches [2]*treeSwitch
	daemons  [2]*daemon
	failed   error // why it could not be made
	fast     bool  // the switches have the fast path
}

type treeSwitch struct {
	lan  *lan
	far  string         // the port that leads to the other one
	link [2]netip.Addr  // its own addresses on the link
	ns   *lab.Namespace // the same as lan.sw
}

const (
	treeHosts     = 4
	firstTreeHost = maxHosts + 2 // the number after those of the star's hosts
	// treeHello is the interval of hellos: emulation on a busy machine may be silent for the hold
	// time of the default.
	treeHello = 400 * time.Millisecond
)

// switchKey is that of the two switches.
const switchKey = "eead36260d616f8b9cd997a178c4f5d88f33fa5ffb38bf24dd092f442a4af3d2"

// network is switch i's network of its hosts.
func network(i int, v6 bool) netip.Prefix {
	if v6 {
		return netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x78, 3: byte(i + 1)}), 64)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 78, byte(i + 1), 0}), 24)
}

// needTree makes the two switches and their hosts, once.
func (b *bench) needTree(ctx context.Context) error {
	if b.tree != nil {
		return b.tree.failed
	}
	t := &tree{}
	b.tree = t // also if it is made in part: it is removed
	if t.failed = b.makeTree(t); t.failed == nil {
		t.failed = t.open(ctx)
	}
	if t.failed == nil {
		t.failed = t.startDaemons(ctx, b)
	}
	return t.failed
}

func (m *machine) makeTree(t *tree) (err error) {
	if t.wire, err = m.lab.Namespace("wire"); err != nil {
		return err
	}
	for i := range t.switches {
		if t.switches[i], err = m.addSwitch(i); err != nil {
			return err
		}
		end := lab.End{NS: t.switches[i].ns, Name: t.switches[i].far, MAC: mac(4, i)}
		if err := lab.Veth(end, lab.End{NS: t.wire, Name: wireName(i)}, linkMTU(maxHosts)); err != nil {
			return err
		}
	}
	for i := range t.switches {
		if err := t.forward(wireName(i), wireName(1-i)); err != nil {
			return err
		}
		if err := t.join(i); err != nil {
			return err
		}
	}
	for i := range treeHosts {
		h, err := m.addHost(firstTreeHost+i, t.switches[i%2].lan)
		if h != nil {
			t.hosts = append(t.hosts, h)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(t.switches[0].ns.WaitUp(linkWait), t.switches[1].ns.WaitUp(linkWait), t.wire.WaitUp(linkWait))
}

func wireName(i int) string { return fmt.Sprintf("w%d", i) }

// addSwitch makes the namespace of switch i, with the bridge of its hosts.
func (m *machine) addSwitch(i int) (_ *treeSwitch, err error) {
	s := &treeSwitch{far: "far"}
	if s.ns, err = m.lab.Namespace(fmt.Sprintf("sw%d", i+1)); err != nil {
		return nil, err
	}
	for _, key := range []string{"net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"} {
		if err := s.ns.Sysctl(key, "1"); err != nil {
			return nil, err
		}
	}
	four, six := network(i, false), network(i, true)
	s.lan = &lan{sw: s.ns, net4: four, net6: six, own4: hostAddr(four, 254), own6: hostAddr(six, 254), routed: true}
	s.link = [2]netip.Addr{netip.AddrFrom4([4]byte{10, 78, 0, byte(i + 1)}), netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x78, 15: byte(i + 1)})}
	return s, s.lan.make(mac(3, i+2))
}

// join gives switch i its addresses on the link, and its routes to the other one's hosts.
func (t *tree) join(i int) error {
	s, other := t.switches[i], t.switches[1-i]
	return errors.Join(
		s.ns.AddAddr(s.far, netip.PrefixFrom(s.link[0], 24)), s.ns.AddAddr(s.far, netip.PrefixFrom(s.link[1], 64)),
		s.ns.AddRoute(other.lan.net4, other.link[0], s.far), s.ns.AddRoute(other.lan.net6, other.link[1], s.far),
	)
}

// forward has what comes in by one end of the wire leave by the other one.
func (t *tree) forward(in, out string) error {
	return t.wire.Do(func() error {
		return errors.Join(
			tc("qdisc", "add", "dev", in, "handle", "ffff:", "ingress"),
			tc("filter", "add", "dev", in, "parent", "ffff:", "protocol", "all", "prio", "1", "u32", "match", "u32", "0", "0",
				"action", "mirred", "egress", "redirect", "dev", out),
			tc("qdisc", "replace", "dev", out, "root", "pfifo", "limit", "10000"),
		)
	})
}

// lose has the link between the switches lose packets of any kind, in both directions.
func (t *tree) lose(rate string) error {
	return t.wire.Do(func() error {
		return errors.Join(
			tc("qdisc", "replace", "dev", wireName(0), "root", "netem", "limit", "10000", "loss", rate),
			tc("qdisc", "replace", "dev", wireName(1), "root", "netem", "limit", "10000", "loss", rate),
		)
	})
}

func (t *tree) heal() error {
	return t.wire.Do(func() error {
		return errors.Join(
			tc("qdisc", "replace", "dev", wireName(0), "root", "pfifo", "limit", "10000"),
			tc("qdisc", "replace", "dev", wireName(1), "root", "pfifo", "limit", "10000"),
		)
	})
}

func (t *tree) open(ctx context.Context) error {
	for _, h := range t.hosts {
		if err := h.open(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startDaemons starts both switches, and waits until they know each other.
func (t *tree) startDaemons(ctx context.Context, b *bench) (err error) {
	for i, s := range t.switches {
		text := fmt.Sprintf("switch: {id: '%016x', keys: [{id: 1, secret: 'hex:%s'}], ports: [%s], hello_interval: %v, grace_period: %v}\n", i+1, switchKey, s.far, treeHello, restartLimit)
		text += "ports:\n  - name: " + s.far + "\n"
		for _, h := range t.hosts {
			if h.lan == s.lan {
				text += "  - name: " + h.port + "\n"
			}
		}
		if text, err = b.machine.withState(text, i); err != nil {
			return err
		}
		if t.daemons[i], err = newDaemon(ctx, b.machine, s.ns, b.gleamd, b.out, text); err != nil {
			return fmt.Errorf("switch %d: %w", i+1, err)
		}
	}
	return t.neighbours(ctx)
}

// neighbours waits until each switch has the other as its neighbour.
func (t *tree) neighbours(ctx context.Context) error {
	for i, d := range t.daemons {
		for {
			top, err := d.client.Topology(ctx)
			if err == nil && len(top.Neighbours) == 1 && top.Neighbours[0].State == api.LinkUp {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("switch %d has not met its neighbour: %w; %+v, %w", i+1, context.Cause(ctx), top, err)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	return nil
}

// say returns what both switches have counted, as an error.
func (t *tree) say() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for i, d := range t.daemons {
		if s, e := d.client.Stats(ctx); e == nil {
			err = errors.Join(err, fmt.Errorf("    switch %d: %+v", i+1, *s))
		}
	}
	return err
}

// stop ends both switches.
func (t *tree) stop() (err error) {
	if t == nil {
		return nil
	}
	for _, d := range t.daemons {
		if d != nil {
			err = errors.Join(err, d.stop())
		}
	}
	return err
}

// inTree runs a case with the hosts of the tree.
func inTree(run func(context.Context, *bench) error) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		if err := b.needTree(ctx); err != nil {
			return err
		}
		if err := b.tree.neighbours(ctx); err != nil { // one may have restarted
			return err
		}
		m, c := *b.machine, *b
		m.hosts, c.machine, c.daemon, c.notes = b.tree.hosts, &m, b.tree.daemons[0], nil
		err := run(ctx, &c)
		b.notes = append(b.notes, c.notes...)
		if err != nil {
			err = errors.Join(err, b.tree.say())
		}
		return err
	}
}

// treeCases are those of two switches.
func treeCases() []testCase {
	const name = "two switches: "
	cs := []testCase{
		{name: name + "all operations, IPv4", run: inTree(treeOperations(false, 1024))},
		{name: name + "all operations, IPv6", run: inTree(treeOperations(true, 2048))},
		{name: name + "1 % lost at hosts and on the link", run: inTree(treeLossy("1%"))},
		{name: name + "5 % lost at hosts and on the link", run: inTree(treeLossy("5%")), long: true},
		{name: name + "a completion waits for the last receiver", run: inTree(lastReceiver)},
		{name: name + "every member the source in turn, twice", run: inTree(rotation)},
		{name: name + "a member waits for its turn while another sends", run: inTree(contend)},
		{name: name + "a receiver dies while the source waits within a message", run: inTree(deadReceiver(late))},
		{name: name + "target messages", run: inTree(targetMessages)},
		{name: name + "RDMA-CM: members at one switch, and one at the other", run: inTree(treeConnect)},
		{name: name + "RDMA-CM: listeners at one switch, and one at the other", run: inTree(treeDial)},
		{name: name + "first PSN 0xfffff0", run: inTree(firstPSN(0xfffff0))},
	}
	return append(append(cs, restartCases(name)...), fastCases()...)
}

// treeOperations sends messages of all kinds, from a host of each switch.
func treeOperations(v6 bool, mtu int) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		for _, first := range []int{0, 1} {
			hosts := append(append([]*host{}, b.hosts[first:]...), b.hosts[:first]...)
			spec := groupSpec{number: 1 + first, v6: v6, mtu: mtu, hosts: hosts}
			if err := withGroup(ctx, &spec, func(g *group) error { return g.transfer(ctx, mixed(0, 1, 4097, 1<<19)...) }); err != nil {
				return fmt.Errorf("source host %d: %w", hosts[0].index, err)
			}
		}
		return nil
	}
}

// treeLossy has the link lose packets too.
func treeLossy(rate string) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		if err := b.tree.lose(rate); err != nil {
			return err
		}
		return errors.Join(lossy(rate)(ctx, b), b.tree.heal())
	}
}
