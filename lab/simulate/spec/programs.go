// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/config/yamlpanic"
	"github.com/gleam-rdma/gleam/lab/sim"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
)

// Program is a program of a phase, with what the formulas need of it.
type Program struct {
	workload.Program
	Kind, Algorithm string
	Bytes           int64
	Communicators   int
	Ranks           int
	Chunks          int
	Overhead        topology.Time
}

// keysOf are the keys of each kind of program besides those of all.
var keysOf = map[string][]string{
	"hpl":         {"algorithm", "bytes", "communicators", "ranks", "along", "chunks", "synchronous", "rendezvous", "overhead"},
	"mpi":         {"algorithm", "bytes", "communicators", "ranks", "along", "rendezvous", "overhead"},
	"nccl":        {"algorithm", "bytes", "communicators", "ranks", "along", "chunk", "overhead"},
	"storage":     {"algorithm", "bytes", "clients", "replicas", "writes", "depth", "overhead"},
	"weights":     {"algorithm", "bytes", "trainers", "receivers", "parts", "chunk"},
	"permutation": {"bytes", "hosts", "at"},
	"incast":      {"bytes", "hosts", "at"},
	"trace":       {"path"},
}

// programs makes the programs of a phase for a network, seeded.
func (p *Point) programs(t *topology.Topology, phase int, seed uint64) ([]Program, error) {
	var all []Program
	for i := range p.file.Phases[phase].Programs {
		f := &p.file.Phases[phase].Programs[i]
		key := fmt.Sprintf("phases[%d].programs[%d]", phase, i)
		b := builder{reader: p.reader, file: f, key: key, t: t, seed: seed ^ uint64(phase)<<32 ^ uint64(i)<<40, dir: p.dir, trees: p.cfg.Trees}
		before := len(p.reader.errs)
		made, err := b.build()
		if err != nil && len(p.reader.errs) == before {
			p.reader.fail(key, "", "%v", err)
		}
		if len(p.reader.errs) > before {
			return nil, p.reader.err()
		}
		all = append(all, made)
	}
	return all, nil
}

// checkProgram reports keys that a kind of program does not have, and those that it needs.
func (r *reader) checkProgram(key string, f *fileProgram) {
	keys, ok := keysOf[f.Program]
	if !ok {
		var kinds []string
		for k := range keysOf {
			kinds = append(kinds, k)
		}
		slices.Sort(kinds)
		r.oneOf(key+".program", f.Program, kinds...)
		return
	}
	has := map[string]string{"algorithm": f.Algorithm, "bytes": f.Bytes, "communicators": f.Communicators, "ranks": f.Ranks, "along": f.Along, "chunks": f.Chunks, "chunk": f.Chunk,
		"clients": f.Clients, "replicas": f.Replicas, "writes": f.Writes, "depth": f.Depth, "trainers": f.Trainers, "receivers": f.Receivers, "parts": f.Parts, "hosts": f.Hosts, "at": f.At, "path": f.Path}
	if f.Synchronous {
		has["synchronous"] = "true"
	}
	if f.Rendezvous {
		has["rendezvous"] = "true"
	}
	if f.Overhead != "0" {
		has["overhead"] = f.Overhead
	}
	for _, k := range slices.Sorted(mapKeys(has)) {
		switch belongs := slices.Contains(keys, k); {
		case has[k] != "" && !belongs:
			r.fail(key+"."+k, has[k], "%s has no such key", f.Program)
		case has[k] == "" && belongs && k != "synchronous" && k != "rendezvous" && k != "overhead":
			r.fail(key+"."+k, "", "%s needs it", f.Program)
		}
	}
}

func mapKeys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// builder makes one program.
type builder struct {
	*reader
	file *fileProgram
	key  string
	t    *topology.Topology
	seed uint64
	dir  string

	trees sim.TreeChoice
}

func (b *builder) build() (Program, error) {
	f, out := b.file, Program{Kind: b.file.Program, Algorithm: b.file.Algorithm, Chunks: 1}
	if f.Bytes != "" {
		out.Bytes = b.bytes(b.key+".bytes", f.Bytes)
	}
	out.Overhead = b.time(b.key+".overhead", f.Overhead)
	var err error
	switch f.Program {
	case "hpl", "mpi", "nccl":
		out.Communicators, out.Ranks = b.count(b.key+".communicators", f.Communicators, topology.MaxHosts), b.count(b.key+".ranks", f.Ranks, topology.MaxHosts)
		var cs []workload.Communicator
		if cs, err = b.communicators(out.Communicators, out.Ranks); err != nil {
			return out, err
		}
		out.Program, err = b.collective(&out, cs)
	case "storage":
		out.Communicators = b.count(b.key+".clients", f.Clients, 1<<18)
		out.Ranks = 1 + b.count(b.key+".replicas", f.Replicas, b.t.Hosts-1)
		s := workload.Storage{Algorithm: f.Algorithm, Bytes: out.Bytes, Overhead: out.Overhead, Writes: b.count(b.key+".writes", f.Writes, 1<<24), Depth: b.count(b.key+".depth", f.Depth, 1<<20)}
		if len(b.errs) > 0 {
			return out, b.err()
		}
		out.Program, err = s.New(b.replicas(out.Communicators, out.Ranks))
	case "weights":
		w := workload.Weights{Algorithm: f.Algorithm, Bytes: out.Bytes, Trainers: b.count(b.key+".trainers", f.Trainers, topology.MaxHosts), Receivers: b.count(b.key+".receivers", f.Receivers, topology.MaxHosts),
			Parts: b.count(b.key+".parts", f.Parts, topology.MaxHosts), Chunk: b.bytes(b.key+".chunk", f.Chunk)}
		out.Ranks = w.Trainers + w.Receivers
		var hosts []topology.Node
		if hosts, err = b.place(out.Ranks); err != nil {
			return out, err
		}
		out.Program, err = w.New(hosts)
	case "permutation", "incast":
		out.Ranks = b.count(b.key+".hosts", f.Hosts, b.t.Hosts)
		var hosts []topology.Node
		if hosts, err = b.place(out.Ranks); err != nil {
			return out, err
		}
		at := b.time(b.key+".at", f.At)
		if f.Program == "permutation" {
			out.Program, err = workload.Permutation(hosts, out.Bytes, at, b.seed)
		} else {
			out.Program, err = workload.Incast(hosts[1:], hosts[0], out.Bytes, at)
		}
	case "trace":
		name := f.Path
		if !filepath.IsAbs(name) {
			name = filepath.Join(b.dir, name)
		}
		var text []byte
		if text, err = os.ReadFile(name); err == nil {
			out.Program, err = workload.ParseTrace(yamlpanic.Text(text), b.t.Hosts)
		}
	}
	return out, err
}

func (b *builder) collective(out *Program, cs []workload.Communicator) (workload.Program, error) {
	f := b.file
	switch f.Program {
	case "hpl":
		out.Chunks = b.count(b.key+".chunks", f.Chunks, 1<<24)
		return workload.HPL{Algorithm: f.Algorithm, Bytes: out.Bytes, Chunks: out.Chunks, Synchronous: f.Synchronous, Rendezvous: f.Rendezvous, Overhead: out.Overhead}.New(cs)
	case "mpi":
		if f.Algorithm == "tuned" {
			out.Algorithm = workload.Tuned(out.Ranks, out.Bytes)
		}
		return workload.Broadcast{Algorithm: out.Algorithm, Bytes: out.Bytes, Rendezvous: f.Rendezvous, Overhead: out.Overhead}.New(cs)
	}
	chunk := b.bytes(b.key+".chunk", f.Chunk)
	if chunk > 0 {
		out.Chunks = int((out.Bytes + chunk - 1) / chunk)
	}
	return workload.NCCL{Algorithm: f.Algorithm, Bytes: out.Bytes, Chunk: chunk, Overhead: out.Overhead}.New(cs)
}

// communicators places ranks along the rows or columns of a matrix of hosts.
func (b *builder) communicators(n, ranks int) ([]workload.Communicator, error) {
	columns := b.oneOf(b.key+".along", b.file.Along, "rows", "columns") == 1
	matrix := func(hosts []topology.Node) ([]workload.Communicator, error) {
		if columns {
			return workload.Columns(hosts, n)
		}
		return workload.Rows(hosts, ranks)
	}
	if b.file.Placement == "adversarial" {
		return b.adversarial(n*ranks, matrix)
	}
	hosts, err := b.place(n * ranks)
	if err != nil {
		return nil, err
	}
	return matrix(hosts)
}

// adversaries is the number of placements of which an adversary takes the worst.
const adversaries = 16

// adversarial returns the placement, of several random ones, with which most trees share a link.
func (b *builder) adversarial(n int, matrix func([]topology.Node) ([]workload.Communicator, error)) (worst []workload.Communicator, err error) {
	if n < 1 || n > b.t.Hosts {
		return nil, fmt.Errorf("%d hosts are wanted; the topology has %d", n, b.t.Hosts)
	}
	most := -1
	for i := range uint64(adversaries) {
		hosts, err := workload.Random(n, b.t.Hosts, b.seed+i)
		if err != nil {
			return nil, err
		}
		cs, err := matrix(hosts)
		if err != nil {
			return nil, err
		}
		program, err := workload.HPL{Algorithm: "group", Bytes: 1, Chunks: 1}.New(cs)
		if err != nil {
			return nil, err
		}
		share, err := sim.MostGroups(sim.Config{Topology: b.t, Program: program, Seed: b.seed, Trees: b.trees})
		if err != nil {
			return nil, err
		}
		if share > most {
			most, worst = share, cs
		}
	}
	return worst, nil
}

// place returns n hosts in the order of the placement.
func (b *builder) place(n int) ([]topology.Node, error) {
	if n < 1 || n > b.t.Hosts {
		return nil, fmt.Errorf("%d hosts are wanted; the topology has %d", n, b.t.Hosts)
	}
	if b.file.Placement == "adversarial" {
		return nil, fmt.Errorf("placement adversarial is of trees: %s has none", b.file.Program)
	}
	switch b.oneOf(b.key+".placement", b.file.Placement, "contiguous", "random", "pods", "adversarial") {
	case 1:
		return workload.Random(n, b.t.Hosts, b.seed)
	case 2:
		return workload.AcrossPods(b.t)[:n], nil
	}
	return workload.Contiguous(n), nil
}

// replicas returns a client and its replicas for each number: clients take turns of all hosts, and
// the replicas are other ones, the next or random.
func (b *builder) replicas(n, size int) [][]topology.Node {
	random := b.oneOf(b.key+".placement", b.file.Placement, "contiguous", "random") == 1
	source := rand.New(rand.NewPCG(b.seed, 1))
	sets := make([][]topology.Node, n)
	for i := range sets {
		client := i % b.t.Hosts
		set := []topology.Node{topology.Node(client)}
		for k := 1; len(set) < size; k++ {
			h := topology.Node((client + k) % b.t.Hosts)
			if random {
				h = topology.Node(source.IntN(b.t.Hosts))
			}
			if !slices.Contains(set, h) {
				set = append(set, h)
			}
		}
		sets[i] = set
	}
	return sets
}

func itoa(i int) string { return strconv.Itoa(i) }

func rateText(rate int64) string { return linkrate.Rate(rate).String() }

func timeText(t topology.Time) string { return strconv.FormatInt(int64(t), 10) + "ps" }
