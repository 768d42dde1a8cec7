// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
	"github.com/gleam-rdma/gleam/internal/doctor/kernel"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
)

// network is the kernel's interfaces and neighbours in the namespace of the calling thread.
type network struct {
	links      map[int]netlink.Link // links by index
	neighbours []netlink.Neigh
	learnt     []netlink.Neigh // the entries of bridges
}

func readNetwork() (*network, error) {
	n := &network{links: make(map[int]netlink.Link)}
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	for _, l := range links {
		n.links[l.Attrs().Index] = l
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		list, err := netlink.NeighList(0, family)
		if err != nil {
			return nil, fmt.Errorf("list neighbours: %w", err)
		}
		n.neighbours = append(n.neighbours, list...)
	}
	if n.learnt, err = netlink.NeighList(0, familyBridge); err != nil {
		return nil, fmt.Errorf("list forwarding databases: %w", err)
	}
	return n, nil
}

// link returns the interface of a name, or nil.
func (n *network) link(name string) netlink.Link {
	for _, l := range n.links {
		if l.Attrs().Name == name {
			return l
		}
	}
	return nil
}

func (n *network) name(index int) string {
	if l := n.links[index]; l != nil {
		return l.Attrs().Name
	}
	return fmt.Sprint("interface ", index)
}

// downFinding reports a port that is down, or was so lately.
func downFinding(p *api.Port, groups []api.Group, now time.Time) (f Finding, ok bool) {
	if p.Up && !watch.WasDown(p, now) {
		return f, false
	}
	f = Finding{Severity: Error, Port: p.Name, Text: "it is down", Cost: "members behind it get nothing", Remedy: "see the link and its other end: ip -s link show dev " + p.Name}
	switch {
	case p.Up:
		f.Severity, f.Text = Warning, fmt.Sprintf("it went down at %s, and is up again; %s since gleamd started", p.LastDown.Local().Format(time.TimeOnly), times(p.Downs))
		f.Cost = "groups with members behind it stand still meanwhile, and such members are removed when dead_after ends"
		f.Remedy = "see the cable, the transceiver and the other end: ip -s link show dev " + p.Name + "; gleam events has each time"
	case p.LastDown != nil:
		f.Text = fmt.Sprintf("it is down for %v", now.Sub(*p.LastDown).Round(time.Second))
	}
	if names := membersAt(p.Name, groups); names != "" {
		f.Text += "; members behind it: " + names
	}
	return f, true
}

// times says how often.
func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// membersAt names some members of groups that are behind a port.
func membersAt(port string, groups []api.Group) string {
	const most = 3
	var names []string
	for i := range groups {
		for k := range groups[i].Members {
			m := &groups[i].Members[k]
			if name := m.IP.String(); m.Port == port && !slices.Contains(names, name) {
				if len(names) == most {
					return strings.Join(names, ", ") + " and more"
				}
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}

// checkPorts checks the ports as gleamd has them.
func checkPorts(r *Report, ports []api.Port, groups []api.Group, now time.Time, cfg *config.Config, file string) {
	var xdp, open, fast []Finding
	for i := range ports {
		p := &ports[i]
		if p.State != api.PortOpen && p.State != "" {
			open = append(open, Finding{
				Severity: Error, Port: p.Name, Text: "the port is " + p.State + reason(p.Reason),
				Cost: "members behind it get nothing", Remedy: "see ip link show dev " + p.Name + "; gleamd takes it up again by itself when there is an interface that it can use",
			})
			continue
		}
		if p.Unheard != "" {
			open = append(open, Finding{
				Severity: Error, Port: p.Name, Text: "it is attached, and never heard: " + p.Unheard, Cost: "members behind it do not work",
				Remedy: "xdp: {mode: generic} at this port, if it is native; docs/PORTS.md has what can be a port",
			})
		}
		if p.Blocked {
			if cfg == nil { // else the machine's checks have said so
				open = append(open, Finding{Severity: Note, Port: p.Name, Text: "blocked by the bridge: spanning tree keeps this link in reserve, or the port is disabled", Cost: "no group frames go in or out until the bridge forwards there"})
			}
			continue
		}
		if f, ok := downFinding(p, groups, now); ok {
			open = append(open, f)
		}
		if p.XDPMode == api.XDPGeneric {
			f := degraded(kernel.Generic(p.Name, p.Driver), Warning)
			if k := kindOf(cfg, p.Name); k != nil && k.Mode == config.XDPGeneric {
				f.Severity, f.Remedy = Note, "nothing else works at this kind of interface: "+k.How
			} else if cfg != nil && xdpModeOf(cfg, p.Name) == config.XDPGeneric {
				f.Remedy = "xdp: {mode: auto} at this port in " + file + ", and a reload"
			} else {
				f.Remedy = "a driver with native XDP. Some refuse it with LRO, with an MTU above one page, or with too few queues: gleamd's log has the driver's reason at the start"
			}
			xdp = append(xdp, f)
		}
		told := slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == checks.CheckFastPath && f.Port == p.Name }) // by the machine's checks
		if p.FastPath != nil && !p.FastPath.Used && p.FastPath.Reason != "" && !told {
			severity := Note
			if cfg != nil && cfg.FastPath == config.FastPathRequire {
				severity = Warning
			}
			fast = append(fast, degraded(kernel.OffFastPath(p.Name, p.FastPath.Reason), severity))
		}
	}
	r.add("ports", open...)
	r.add("xdp-mode", xdp...)
	if cfg != nil && cfg.FastPath == config.FastPathOff {
		r.skip("fast-path", "fast_path is off")
	} else {
		r.add("fast-path", fast...)
	}
}

// guarded are ports with what their guards have dropped lately.
func guarded(ports []api.Port, now time.Time) (list []checks.Guarded) {
	for i := range ports {
		p := &ports[i]
		g := checks.Guarded{Port: p.Name, MAC: p.MAC, Blocked: p.Blocked}
		for r := range bpf.NumReasons {
			if last, ok := p.Guard[r.String()]; ok && now.Sub(last.Time) <= watch.Lately {
				g.Drops = append(g.Drops, checks.GuardDrop{Reason: r, Frames: p.XDP[r.String()], MAC: last.MAC})
			}
		}
		list = append(list, g)
	}
	return list
}

func reason(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// degraded is something that gleamd does without, as a finding.
func degraded(d api.Degradation, s Severity) Finding {
	return Finding{Severity: s, Port: d.Port, Text: d.Text, Cost: d.Cost}
}

// kindOf returns the kind of a port's interface on this machine; nil: it is another machine's.
func kindOf(cfg *config.Config, port string) *iface.Kind {
	if cfg == nil {
		return nil
	}
	links, err := iface.ReadLinks()
	if err != nil || links.Named(port) == nil {
		return nil
	}
	return links.Kind(links.Named(port))
}

// xdpModeOf returns the XDP mode that is configured for a port.
func xdpModeOf(cfg *config.Config, port string) config.XDPMode {
	for i := range cfg.Ports {
		if cfg.Ports[i].Name == port {
			return cfg.XDPModeOf(&cfg.Ports[i])
		}
	}
	return cfg.XDP.Mode
}
