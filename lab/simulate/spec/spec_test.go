// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/lab/sim"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

const sample = `name: sample
sweep:
  n: [2, 4]
  algorithm: [group, 1ring]
seed: 7
topology:
  kind: leaf-spine
  leaves: 4
  spines: 2
  hosts_per_leaf: 4
  loss: 0.1%
switches:
  trees: hashed
  pfc: {xoff: 1MiB, xon: 512KiB}
hosts:
  congestion: {control: dcqcn, cnp_interval: 4us}
phases:
  - name: rows
    programs:
      - {program: hpl, algorithm: "${algorithm}", bytes: 64KiB, chunks: "${n}", communicators: 4, ranks: "${n}"}
      - {program: incast, bytes: 1MB, hosts: 5, at: 10us, placement: random}
  - programs:
      - program: storage
        algorithm: unicast
        bytes: 8KiB
        clients: 20
        writes: 3
`

func points(t *testing.T, text string) []*Point {
	t.Helper()
	s, err := Parse("sample.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	ps, err := s.Points()
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

func TestPoints(t *testing.T) {
	ps := points(t, sample)
	var names []string
	addresses := make(map[string]bool)
	for _, p := range ps {
		names = append(names, p.String())
		addresses[p.Address] = true
	}
	if want := []string{"n=2 algorithm=group", "n=2 algorithm=1ring", "n=4 algorithm=group", "n=4 algorithm=1ring"}; !slices.Equal(names, want) {
		t.Errorf("points %q, want %q", names, want)
	}
	if len(addresses) != 4 {
		t.Errorf("%d addresses of 4 points", len(addresses))
	}
	net, err := ps[3].Network()
	if err != nil {
		t.Fatal(err)
	}
	if net.Hosts != 16 || net.Links[16].Loss != 0.001 || net.Links[0].Loss != 0 {
		t.Errorf("%d hosts, links %+v", net.Hosts, net.Links[:17])
	}
	rows, err := ps[3].Phase(net, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := rows.Config.Program.Flows(); n != 4*3*4+4 || rows.Programs[0].Chunks != 4 || rows.Config.Host.Congestion.LineRate != 200e9 || rows.Config.PFC.XOn != 512<<10 {
		t.Errorf("%d flows, %+v", n, rows.Programs[0])
	}
	writes, err := ps[3].Phase(net, 1)
	if err != nil {
		t.Fatal(err)
	}
	if n := writes.Config.Program.Flows(); n != 20*3*3 || writes.Name != "phase 2" {
		t.Errorf("%d flows of %s", n, writes.Name)
	}
}

// TestEffectiveConfigurationIsAFile: what is printed says everything, and reads as the same point.
func TestEffectiveConfigurationIsAFile(t *testing.T) {
	p := points(t, sample)[2]
	again := points(t, string(p.Effective()))
	if len(again) != 1 || again[0].Address != p.Address {
		t.Errorf("the printed configuration has another address:\n%s", p.Effective())
	}
	for _, key := range []string{"operation: send", "rnr_timer: 640us"} {
		if !strings.Contains(string(p.Effective()), key) {
			t.Errorf("%s is missing:\n%s", key, p.Effective())
		}
	}
	if with := points(t, strings.Replace(sample, "hosts:\n", "hosts:\n  operation: send\n", 1))[2]; with.Address != p.Address {
		t.Error("a default that is written has another address")
	}
	if with := points(t, strings.Replace(sample, "hosts:\n", "hosts:\n  operation: write\n", 1))[2]; with.Address == p.Address {
		t.Error("another operation has the same address")
	}
	if !strings.Contains(string(p.Effective()), "queue: 32MiB") {
		t.Errorf("a default is missing:\n%s", p.Effective())
	}
}

func TestSet(t *testing.T) {
	s, err := Parse("sample.yaml", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Set("n", "3"); err != nil {
		t.Fatal(err)
	}
	if ps, err := s.Points(); err != nil || len(ps) != 2 || ps[1].String() != "n=3 algorithm=1ring" {
		t.Errorf("points %v, error %v", ps, err)
	}
	if err := s.Set("m", "3"); err == nil {
		t.Error("an unknown variable is set")
	}
}

// TestErrors changes one place of the sample each. Errors have line and key.
func TestErrors(t *testing.T) {
	for _, tt := range []struct{ old, new, want string }{
		{"kind: leaf-spine", "kind: torus", `sample.yaml:7: topology.kind: "torus": want one of paper`},
		{"leaves: 4", "leaves: 0", `sample.yaml:8: topology.leaves: "0": want a number from 1`},
		{"spines: 2", "ports: 2", `sample.yaml:9: topology.ports: "2": leaf-spine has no such key`},
		{"loss: 0.1%", "loss: much", `sample.yaml:11: topology.loss: "much"`},
		{"loss: 0.1%", "rate: fast", `sample.yaml:11: topology.rate: "fast"`},
		{"loss: 0.1%", "delay: 1", `sample.yaml:11: topology.delay: "1"`},
		{"loss: 0.1%", "los: 1", "sample.yaml:11"},
		{"trees: hashed", "trees: oak", `sample.yaml:13: switches.trees: "oak": want one of least-used, hashed, random`},
		{"xon: 512KiB", "xon: 2MiB", `sample.yaml:14: switches.pfc: want xoff, and xon below it`},
		{"seed: 7", "seed: 7\ntrains: {packets: 40}", `trains.packets: "40": want a number from 1 to 32`},
		{"seed: 7", "seed: 7\ntrains: {inexact: true}", `trains.packets: want a number from 1 to 32`},
		{"seed: 7", "seed: 7\ntrains: {packets: 8, inexact: maybe}", `trains.inexact: "maybe": want one of false, true`},
		{"control: dcqcn", "control: swift", `sample.yaml:16: hosts.congestion.control`},
		{"{control: dcqcn, cnp_interval: 4us}", "{control: none}\n  operation: read", `sample.yaml:17: hosts.operation: "read": want one of send, write`},
		{"{control: dcqcn, cnp_interval: 4us}", "{control: none}\n  receives: 0", `sample.yaml:17: hosts.receives: "0": want a number from 1`},
		{"{control: dcqcn, cnp_interval: 4us}", "{control: none}\n  receive_delay: long", `sample.yaml:17: hosts.receive_delay: "long"`},
		{"{control: dcqcn, cnp_interval: 4us}", "{control: none}\n  rate: fast", `sample.yaml:17: hosts.rate: "fast": want a rate`},
		{"{control: dcqcn, cnp_interval: 4us}", "{control: none}\n  rnr_timer: 1s", `sample.yaml:17: hosts.rnr_timer: "1s": want 10us to 655.36ms`},
		{"seed: 7", "seed: -7", `sample.yaml:5: seed: "-7"`},
		{"bytes: 64KiB", "bytes: big", `sample.yaml:20: phases[0].programs[0].bytes: "big"`},
		{", ranks: \"${n}\"", "", "sample.yaml:20: phases[0].programs[0].ranks: hpl needs it"},
		{"ranks: \"${n}\"", "ranks: 2, depth: 3", `phases[0].programs[0].depth: "3": hpl has no such key`},
		{"ranks: \"${n}\"", "ranks: 99", "the topology has 16"},
		{"ranks: \"${n}\"", "ranks: 99, placement: adversarial", "the topology has 16"},
		{"placement: random", "placement: adversarial", "placement adversarial is of trees: incast has none"},
		{"program: hpl", "program: hpcc", `sample.yaml:20: phases[0].programs[0].program: "hpcc": want one of hpl, incast`},
		{"program: storage\n        algorithm: unicast", "program: storage\n        algorithm: raid", "storage algorithm"},
		{"${algorithm}", "${a}", `sample.yaml:20: "${a}": no such variable`},
		{"n: [2, 4]", "n: 2", `sample.yaml:2: sweep: "n": want a name of letters, and a list`},
		{"name: rows", "name: [rows", "sample.yaml:"},
	} {
		text := strings.Replace(sample, tt.old, tt.new, 1)
		if text == sample {
			t.Fatalf("%q is not in the sample", tt.old)
		}
		err := firstErrorOf(text)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q for %q: error %v, want %q in it", tt.new, tt.old, err, tt.want)
		}
	}
}

// firstErrorOf reads all that there is to a text.
func firstErrorOf(text string) error { return firstErrorIn("sample.yaml", text) }

func firstErrorIn(name, text string) error {
	s, err := Parse(name, []byte(text))
	if err != nil {
		return err
	}
	ps, err := s.Points()
	if err != nil {
		return err
	}
	net, err := ps[0].Network()
	if err != nil {
		return err
	}
	for i := range ps[0].Phases() {
		if _, err := ps[0].Phase(net, i); err != nil {
			return err
		}
	}
	return nil
}

// FuzzParse: no text panics.
func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add("phases: !x 1") // a tag before what is no list makes the YAML library panic
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := Parse("x.yaml", []byte(text)); err == nil {
			_, _ = s.Points()
		}
	})
}

const labFile = `switches: [l1, l2, s1]
hosts: [h1, h2]
links:
  - {a: l1, b: s1, mtu: 4200, loss: 0.5%, rate: 1gbit, delay: 100us}
  - {a: l2, b: s1}
  - {a: l1, b: h1}
  - {a: l2, b: h2, corruption: 0.01}
`

// TestTopologyFile reads the lab's form of a network, by itself and named by a file.
func TestTopologyFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lab.yaml"), []byte(labFile), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "topology: {kind: file, path: lab.yaml}\nhosts: {congestion: {control: dcqcn}}\nphases:\n  - programs: [{program: mpi, bytes: 10kB, ranks: 2}]\n"
	s, err := Parse(filepath.Join(dir, "run.yaml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	ps, err := s.Points()
	if err != nil {
		t.Fatal(err)
	}
	net, err := ps[0].Network()
	if err != nil {
		t.Fatal(err)
	}
	if l := net.Links[0]; net.Hosts != 2 || l.Rate != 1e9 || l.Delay != 100*topology.Microsecond || l.Loss != 0.005 || net.Links[3].Corruption != 0.01 {
		t.Errorf("%d hosts, first link %+v", net.Hosts, l)
	}
	if ph, err := ps[0].Phase(net, 0); err != nil || ph.Programs[0].Algorithm != "pipeline" && ph.Programs[0].Algorithm != "linear" || ph.Config.Host.Congestion.LineRate != 200e9 {
		t.Errorf("phase %+v, error %v", ph, err)
	}
	printed, err := PrintTopology(net)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParseTopology("printed.yaml", printed); err != nil || len(again.Links) != 4 || again.Links[0].Delay != net.Links[0].Delay {
		t.Errorf("printed:\n%s\nerror %v", printed, err)
	}
	for old, want := range map[string]string{"b: h1": `lab.yaml:6: links[2].b: "h9": no such host`, "hosts: [h1, h2]": `lab.yaml:2: hosts[1]: "h1": is there twice`, "delay: 100us": `lab.yaml:4: links[0].delay: "fast"`} {
		news := map[string]string{"b: h1": "b: h9", "hosts: [h1, h2]": "hosts: [h1, h1]", "delay: 100us": "delay: fast"}
		if _, err := ParseTopology("lab.yaml", []byte(strings.Replace(labFile, old, news[old], 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// TestAdversarialPlacement: more trees share a link than with random hosts on the average.
func TestAdversarialPlacement(t *testing.T) {
	shares := func(placement string, seed int) int {
		text := fmt.Sprintf("seed: %d\ntopology: {kind: fat-tree, ports: 8}\nphases: [{programs: [{program: hpl, algorithm: group, bytes: 1MB, communicators: 16, ranks: 8, placement: %s}]}]\n", seed, placement)
		p := points(t, text)[0]
		net, err := p.Network()
		if err != nil {
			t.Fatal(err)
		}
		ph, err := p.Phase(net, 0)
		if err != nil {
			t.Fatal(err)
		}
		n, err := sim.MostGroups(ph.Config)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	random, adversarial := 0, 0
	for seed := range 8 {
		random += shares("random", seed+1)
		adversarial += shares("adversarial", seed+1)
	}
	if contiguous := shares("contiguous", 1); adversarial <= random || random <= 8*contiguous {
		t.Errorf("groups that share a link, in 8 runs: %d with random hosts, %d adversarial, 8 times %d contiguous", random, adversarial, contiguous)
	}
}

// TestFailures reads failures of switches and links, by name.
func TestFailures(t *testing.T) {
	const text = `topology:
  kind: leaf-spine
  leaves: 4
  hosts_per_leaf: 4
  failures:
    - {at: 1ms, until: 2ms, node: s1}
    - at: 500us
      link: [l2, s1]
phases: [{programs: [{program: incast, bytes: 1MB, hosts: 5}]}]
`
	p := points(t, text)[0]
	net, err := p.Network()
	if err != nil {
		t.Fatal(err)
	}
	want := []topology.Failure{{At: topology.Millisecond, Link: -1, Node: 20}, {At: 2 * topology.Millisecond, Link: -1, Node: 20, Up: true}, {At: 500 * topology.Microsecond, Link: 17, Node: -1}}
	if !slices.Equal(net.Failures, want) || net.Name(20) != "s1" || net.Links[17].A != 17 || net.Links[17].B != 20 {
		t.Errorf("failures %+v, want %+v; node 20 is %s, link 17 %+v", net.Failures, want, net.Name(20), net.Links[17])
	}
	if again := points(t, string(p.Effective())); again[0].Address != p.Address || !strings.Contains(string(p.Effective()), "detect: 1ms") {
		t.Errorf("the printed configuration has another address, or no time of detection:\n%s", p.Effective())
	}
	for _, tt := range []struct{ old, new, want string }{
		{"node: s1", "node: s2", `sample.yaml:6: topology.failures[0].node: "s2": no such host or switch`},
		{"[l2, s1]", "[l2, l3]", `sample.yaml:8: topology.failures[1].link: "l2, l3": no link joins them`},
		{"[l2, s1]", "[l2, x]", `sample.yaml:8: topology.failures[1].link[1]: "x": no such host or switch`},
		{"[l2, s1]", "[l2]", `sample.yaml:8: topology.failures[1].link: want the names of its two ends`},
		{"until: 2ms", "until: 1ms", `sample.yaml:6: topology.failures[0].until: "1ms": want a time after at, 1ms`},
		{"until: 2ms, node: s1", "until: 2ms", `sample.yaml:6: topology.failures[0]: want a node or a link`},
		{"at: 500us", "at: soon", `sample.yaml:7: topology.failures[1].at: "soon": want a time`},
		{"at: 500us\n      link: [l2, s1]", "link: [l2, s1]", `sample.yaml:7: topology.failures[1].at: want a time`},
		{"at: 1ms", "when: 1ms", `sample.yaml:6`},
		{"phases:", "switches: {detect: 0}\nphases:", `sample.yaml:9: switches.detect: "0": want more than 0`},
	} {
		if err := firstErrorOf(strings.Replace(text, tt.old, tt.new, 1)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q for %q: error %v, want %q in it", tt.new, tt.old, err, tt.want)
		}
	}
}

// TestExamples reads the files under docs.
func TestExamples(t *testing.T) {
	names, err := filepath.Glob("../../../docs/simulation/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d examples, %v", len(names), err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := firstErrorIn(name, string(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLosses reads losses in one direction, by the names of a link's ends, and prints and reads the network again.
func TestLosses(t *testing.T) {
	const text = `topology:
  kind: leaf-spine
  leaves: 1
  hosts_per_leaf: 3
  corruption: 0.1
  losses:
    - {from: l1, to: h2, loss: 1%}
    - {from: h3, to: l1, loss: 0.02}
phases: [{programs: [{program: incast, bytes: 1MB, hosts: 3}]}]
`
	net, err := points(t, text)[0].Network()
	if err != nil {
		t.Fatal(err)
	}
	printed, err := PrintTopology(net)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseTopology("again.yaml", printed)
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]*topology.Topology{"the file's network": net, "the printed one": again} {
		l := n.Links
		if l[0].LossToA != 0 || l[0].LossToB != 0 || l[1].LossToA != 0.01 || l[1].LossToB != 0 || l[2].LossToA != 0 || l[2].LossToB != 0.02 || l[3].Corruption != 0.1 {
			t.Errorf("%s: %+v; want losses only to h2, and from h3, and the corruption", name, l)
		}
	}
	for _, tt := range []struct{ old, new, want string }{
		{"to: h2", "to: h4", `sample.yaml:7: topology.losses[0].to: "h4": no such host or switch`},
		{"from: h3, to: l1", "from: h3, to: h1", `sample.yaml:8: topology.losses[1]: "h3, h1": no link joins them`},
		{"from: h3, to: l1", "from: l1, to: h2", `sample.yaml:8: topology.losses[1]: "l1, h2": is there twice`},
		{"0.02", "2", `sample.yaml:8: topology.losses[1].loss: "2": want a number from 0 to 1`},
	} {
		if err := firstErrorOf(strings.Replace(text, tt.old, tt.new, 1)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q for %q: error %v, want %q in it", tt.new, tt.old, err, tt.want)
		}
	}
}

// TestByteOrderMark: a specification, its topology and its trace are read as an editor has saved them: with a byte order
// mark, or with line ends of Windows.
func TestByteOrderMark(t *testing.T) {
	dir := t.TempDir()
	for name, change := range map[string]func(string) string{
		"a mark":           func(s string) string { return "\ufeff" + s },
		"a mark and CR LF": func(s string) string { return "\ufeff" + strings.ReplaceAll(s, "\n", "\r\n") },
		"neither":          func(s string) string { return s },
	} {
		for file, text := range map[string]string{
			"net.yaml": "switches: [s1]\nhosts: [h1, h2, h3]\nlinks: [{a: h1, b: s1}, {a: h2, b: s1}, {a: h3, b: s1}]\n",
			"a.trace":  "group g1 0 1 2\n1us 0 > g1 64KiB\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(change(text)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Parse(filepath.Join(dir, "a.yaml"), []byte(change("name: a\ntopology: {kind: file, path: net.yaml}\nphases:\n  - programs:\n      - {program: trace, path: a.trace}\n")))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ps, err := s.Points()
		if err != nil || len(ps) != 1 {
			t.Errorf("%s: %d points, %v", name, len(ps), err)
			continue
		}
		network, err := ps[0].Network()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if phase, err := ps[0].Phase(network, 0); err != nil || len(phase.Programs) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
