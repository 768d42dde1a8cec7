// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// topologyKinds are the kinds of topologies, each with its own keys.
var topologyKinds = []string{"paper", "fat-tree", "leaf-spine", "clos", "file"}

// checkTopology reads the values of the section.
func (p *Point) checkTopology() {
	p.checkFailures()
	for i, l := range p.file.Topology.Losses {
		p.reader.part("topology.losses["+itoa(i)+"].loss", l.Loss)
	}
	r, t := p.reader, &p.file.Topology
	kind := topologyKinds[r.oneOf("topology.kind", t.Kind, topologyKinds...)]
	c := &p.clos
	number := func(key, s string, into *int) {
		if s == "" {
			r.fail("topology."+key, s, "%s needs it", kind)
			return
		}
		*into = r.count("topology."+key, s, topology.MaxHosts)
	}
	used := map[string]bool{}
	use := func(key, s string, into *int) {
		used[key] = true
		number(key, s, into)
	}
	var err error
	switch kind {
	case "paper":
		*c = topology.Paper()
	case "fat-tree":
		var ports, ratio int
		use("ports", t.Ports, &ports)
		use("oversubscription", t.Oversubscription, &ratio)
		if *c, err = topology.FatTree(ports, ratio); err != nil && len(r.errs) == 0 {
			r.fail("topology.ports", t.Ports, "%v", err)
		}
	case "leaf-spine":
		var leaves, spines, hosts int
		use("leaves", t.Leaves, &leaves)
		use("spines", t.Spines, &spines)
		use("hosts_per_leaf", t.HostsPerLeaf, &hosts)
		*c = topology.LeafSpine(leaves, spines, hosts)
	case "clos":
		use("pods", t.Pods, &c.Pods)
		use("leaves", t.Leaves, &c.Leaves)
		use("hosts_per_leaf", t.HostsPerLeaf, &c.HostsPerLeaf)
		use("spines", t.Spines, &c.Aggs)
		use("uplinks", t.Uplinks, &c.Uplinks)
		use("cores", t.Cores, &c.Cores)
	case "file":
		used["path"] = true
		if t.Path == "" {
			r.fail("topology.path", "", "file needs it")
		}
	}
	for key, s := range map[string]string{"ports": t.Ports, "oversubscription": t.Oversubscription, "pods": t.Pods, "leaves": t.Leaves, "hosts_per_leaf": t.HostsPerLeaf, "spines": t.Spines, "uplinks": t.Uplinks, "cores": t.Cores, "path": t.Path} {
		if s != "" && !used[key] {
			r.fail("topology."+key, s, "%s has no such key", kind)
		}
	}
	if kind == "file" {
		for key, s := range map[string]string{"rate": t.Rate, "host_rate": t.HostRate, "delay": t.Delay, "host_delay": t.HostDelay, "loss": t.Loss, "core_loss": t.CoreLoss, "host_loss": t.HostLoss, "corruption": t.Corruption} {
			if s != "" {
				r.fail("topology."+key, s, "links have it in the topology file")
			}
		}
	} else {
		c.FabricRate, c.HostRate = r.rate("topology.rate", t.Rate), r.rate("topology.host_rate", t.HostRate)
		c.FabricDelay, c.HostDelay = r.time("topology.delay", t.Delay), r.time("topology.host_delay", t.HostDelay)
		c.Loss, c.HostLoss, c.CoreLoss = r.part("topology.loss", t.Loss), r.part("topology.host_loss", t.HostLoss), r.part("topology.core_loss", t.CoreLoss)
		c.Corruption = r.part("topology.corruption", t.Corruption)
	}
}

// Network returns the topology of the point.
func (p *Point) Network() (*topology.Topology, error) {
	t, err := p.shape()
	if err != nil {
		return nil, err
	}
	before := len(p.reader.errs)
	names := p.names(t)
	p.addLosses(t, names)
	p.addFailures(t, names)
	if len(p.reader.errs) > before {
		return nil, p.reader.err()
	}
	return t, nil
}

// names returns the nodes by name, if the file names any.
func (p *Point) names(t *topology.Topology) map[string]topology.Node {
	if len(p.file.Topology.Failures)+len(p.file.Topology.Losses) == 0 {
		return nil
	}
	names := make(map[string]topology.Node, t.Hosts+t.Switches)
	for n := range t.Hosts + t.Switches {
		names[t.Name(topology.Node(n))] = topology.Node(n)
	}
	return names
}

// addLosses gives links the losses that they have in one direction.
func (p *Point) addLosses(t *topology.Topology, names map[string]topology.Node) {
	r := p.reader
	for i, x := range p.file.Topology.Losses {
		key := "topology.losses[" + itoa(i) + "]"
		n := r.link(key, [2]string{".from", ".to"}, []string{x.From, x.To}, t, names)
		if n < 0 {
			continue
		}
		to, l := &t.Links[n].LossToA, &t.Links[n]
		if names[x.To] == l.B {
			to = &l.LossToB
		}
		if *to != 0 {
			r.fail(key, x.From+", "+x.To, "is there twice")
		}
		*to = r.part(key+".loss", x.Loss)
	}
}

// shape returns the topology without failures.
func (p *Point) shape() (*topology.Topology, error) {
	if p.file.Topology.Kind != "file" {
		t, err := p.clos.Build()
		if err != nil {
			p.reader.fail("topology", "", "%v", err)
			return nil, p.reader.err()
		}
		return t, nil
	}
	name := p.file.Topology.Path
	if !filepath.IsAbs(name) {
		name = filepath.Join(p.dir, name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		p.reader.fail("topology.path", p.file.Topology.Path, "%v", err)
		return nil, p.reader.err()
	}
	return ParseTopology(name, text)
}

// lab is a topology file: that of the lab's networks, with corruption beside loss.
type lab struct {
	Switches []string  `yaml:"switches"`
	Hosts    []string  `yaml:"hosts"`
	Links    []labLink `yaml:"links"`
}

type labLink struct {
	A          string `yaml:"a"`
	B          string `yaml:"b"`
	MTU        string `yaml:"mtu"` // the MTU of the lab's networks; a simulation has that of its hosts
	Loss       string `yaml:"loss"`
	LossToA    string `yaml:"loss_to_a"`
	LossToB    string `yaml:"loss_to_b"`
	Corruption string `yaml:"corruption"`
	Rate       string `yaml:"rate"`
	Delay      string `yaml:"delay"`
}

// Defaults of a link in a topology file.
const (
	labRate  = "200gbit"
	labDelay = "1us"
)

// ParseTopology reads a topology file of the lab's form: switches, hosts, and links with rate,
// delay, loss and corruption.
func ParseTopology(name string, text []byte) (*topology.Topology, error) {
	var f lab
	r, err := decode(name, text, &f)
	if err != nil {
		return nil, err
	}
	number := make(map[string]topology.Node)
	for kind, list := range [][]string{f.Hosts, f.Switches} {
		for i, n := range list {
			if _, again := number[n]; again {
				r.fail([]string{"hosts", "switches"}[kind]+"["+itoa(i)+"]", n, "is there twice")
			}
			number[n] = topology.Node(len(number))
		}
	}
	var links []topology.Link
	for i, l := range f.Links {
		key := "links[" + itoa(i) + "]"
		a, b := r.node(key+".a", l.A, number), r.node(key+".b", l.B, number)
		orDefault := func(s, v string) string {
			if s == "" {
				return v
			}
			return s
		}
		links = append(links, topology.Link{A: a, B: b, Rate: r.rate(key+".rate", orDefault(l.Rate, labRate)), Delay: r.time(key+".delay", orDefault(l.Delay, labDelay)),
			Loss: r.part(key+".loss", orDefault(l.Loss, "0")), LossToA: r.part(key+".loss_to_a", orDefault(l.LossToA, "0")), LossToB: r.part(key+".loss_to_b", orDefault(l.LossToB, "0")),
			Corruption: r.part(key+".corruption", orDefault(l.Corruption, "0"))})
	}
	if r.err() != nil {
		return nil, r.err()
	}
	t, err := topology.Graph(f.Hosts, f.Switches, links)
	if err != nil {
		return nil, config.Errors{{File: name, Reason: err.Error()}}
	}
	return t, nil
}

func (r *reader) node(key, s string, number map[string]topology.Node) topology.Node {
	n, ok := number[s]
	if !ok {
		r.fail(key, s, "no such host or switch; `gleam sim topology FILE --yaml` has the names")
	}
	return n
}

// PrintTopology returns a topology as a file of the lab's form.
func PrintTopology(t *topology.Topology) ([]byte, error) {
	type link struct {
		A          string  `yaml:"a"`
		B          string  `yaml:"b"`
		Rate       string  `yaml:"rate"`
		Delay      string  `yaml:"delay"`
		Loss       float64 `yaml:"loss,omitempty"`
		LossToA    float64 `yaml:"loss_to_a,omitempty"`
		LossToB    float64 `yaml:"loss_to_b,omitempty"`
		Corruption float64 `yaml:"corruption,omitempty"`
	}
	var f struct {
		Switches []string `yaml:"switches"`
		Hosts    []string `yaml:"hosts"`
		Links    []link   `yaml:"links"`
	}
	for n := range t.Hosts + t.Switches {
		if name := t.Name(topology.Node(n)); t.IsHost(topology.Node(n)) {
			f.Hosts = append(f.Hosts, name)
		} else {
			f.Switches = append(f.Switches, name)
		}
	}
	for _, l := range t.Links {
		f.Links = append(f.Links, link{A: t.Name(l.A), B: t.Name(l.B), Rate: rateText(l.Rate), Delay: timeText(l.Delay), Loss: l.Loss, LossToA: l.LossToA, LossToB: l.LossToB, Corruption: l.Corruption})
	}
	return yaml.Marshal(&f)
}
