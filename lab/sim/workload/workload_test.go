// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestFlowsOfTheMatrix counts the flows of panel broadcast and row swap: the paper's "more than
// four million" are those of 128x128 with 128 chunks.
func TestFlowsOfTheMatrix(t *testing.T) {
	for _, tt := range []struct{ n, want int64 }{{8, 2*64*7 + 8*7}, {16, 2*256*15 + 16*15}, {128, 4_177_792}} {
		n := int(tt.n)
		hosts := Contiguous(n * n)
		ring := must[*Script](t)(HPL{Algorithm: "1ring", Bytes: 63_500_000, Chunks: n}.New(must[[]Communicator](t)(Rows(hosts, n))))
		long := must[*Script](t)(HPL{Algorithm: "long", Bytes: 63_500_000, Chunks: 1}.New(must[[]Communicator](t)(Columns(hosts, n))))
		if got := ring.Flows() + long.Flows(); got != tt.want {
			t.Errorf("%dx%d: %d flows, want %d", n, n, got, tt.want)
		}
		if n > 16 {
			continue
		}
		if rounds, _ := countRounds(t, ring); rounds != n-2+n {
			t.Errorf("%dx%d: ring of %d steps, want %d", n, n, rounds, n-2+n)
		}
		if rounds, _ := countRounds(t, long); rounds != bitsOf(n)+n-1 {
			t.Errorf("%dx%d: long of %d steps, want %d", n, n, rounds, bitsOf(n)+n-1)
		}
		group := must[*Script](t)(HPL{Algorithm: "group", Bytes: 63_500_000, Chunks: 1}.New(must[[]Communicator](t)(Rows(hosts, n))))
		if rounds, flows := countRounds(t, group); flows != tt.n || len(group.Groups()) != n || rounds != 1 {
			t.Errorf("%dx%d: %d flows to %d groups in %d steps", n, n, flows, len(group.Groups()), rounds)
		}
	}
}

func bitsOf(n int) (l int) {
	for 1<<l < n {
		l++
	}
	return l
}

// TestSteps compares numbers of messages, and of steps if each takes as long as any other, with the formulas.
func TestSteps(t *testing.T) {
	type caster interface {
		New([]Communicator) (*Script, error)
	}
	hpl := func(a string) caster { return HPL{Algorithm: a, Bytes: 1 << 20, Chunks: 1} }
	mpi := func(a string) caster { return Broadcast{Algorithm: a, Bytes: 1 << 20} }
	for _, tt := range []struct {
		name         string
		cast         caster
		ranks        int
		steps, flows int
	}{
		{"1ring", hpl("1ring"), 8, 7, 7}, {"1ringM", hpl("1ringM"), 8, 6, 7}, {"2ring", hpl("2ring"), 8, 4, 7}, {"2ringM", hpl("2ringM"), 8, 3, 7},
		{"long", hpl("long"), 16, 4 + 15, 15 + 16*15}, {"longM", hpl("longM"), 17, 4 + 15, 1 + 15 + 16*15}, {"swap", hpl("swap"), 16, 4 + 15, 15 + 16*15},
		{"swap-central", hpl("swap-central"), 16, 1 + 1 + 4 + 15, 1 + 15 + 16*15}, {"exchange", hpl("exchange"), 16, 4, 16 * 4},
		{"linear", mpi("linear"), 8, 1, 7}, {"chain", mpi("chain"), 8, 7, 7}, {"binomial", mpi("binomial"), 16, 4, 15}, {"knomial", mpi("knomial"), 64, 3, 63},
		{"binary", mpi("binary"), 15, 3, 14}, {"split-binary", mpi("split-binary"), 15, 4, 14 + 14},
		{"scatter-allgather", mpi("scatter-allgather"), 16, 8, 15 + 16*4}, {"scatter-ring", mpi("scatter-ring"), 16, 4 + 15, 15 + 16*15},
		{"nccl ring", NCCL{Algorithm: "ring", Bytes: 8 << 20, Chunk: DefaultNCCLChunk}, 8, 8 - 2 + 16, 7 * 16},
		{"nccl tree", NCCL{Algorithm: "tree", Bytes: 8 << 20, Chunk: DefaultNCCLChunk}, 16, 5 - 1 + 8, 15 * 16},
	} {
		s := must[*Script](t)(tt.cast.New(oneCommunicator(tt.ranks, 0)))
		if rounds, flows := countRounds(t, s); rounds != tt.steps || flows != int64(tt.flows) {
			t.Errorf("%s of %d ranks: %d steps, %d messages; want %d, %d", tt.name, tt.ranks, rounds, flows, tt.steps, tt.flows)
		}
	}
}

// TestSwapWithPivotsAtTheRoot: a swap whose pivots are all at the root has the messages of a uniform one.
func TestSwapWithPivotsAtTheRoot(t *testing.T) {
	for _, n := range []int{4, 7, 16} {
		at := make([]int64, n+1)
		for i := range n {
			at[i+1] = 1000
		}
		root, uniform := newRowSwap(at, false), newRowSwap(uniformPivots(n, 1000), false)
		for rank := range n {
			for k := 0; ; k++ {
				a, more := root.step(rank, k)
				b, ok := uniform.step(rank, k)
				if a != b || more != ok {
					t.Fatalf("%d ranks: step %d of rank %d is %+v, %v; want %+v, %v", n, k, rank, a, more, b, ok)
				}
				if !ok {
					break
				}
			}
		}
	}
}

// TestTuned holds Open MPI's choices at both sides of some limits.
func TestTuned(t *testing.T) {
	for _, tt := range []struct {
		ranks int
		bytes int64
		want  string
	}{
		{4, 64 << 10, "linear"}, {4, 1<<20 - 1, "linear"}, {4, 1 << 20, "chain"}, {4, 1e9, "chain"}, {4, 63, "binary"}, {7, 100, "binomial"},
		{3, 1 << 20, "binary"}, {8, 1e9, "linear"}, {16, 1<<20 - 1, "binomial"}, {16, 1 << 20, "scatter-allgather"}, {63, 2048, "knomial"},
		{100, 1, "knomial"}, {128, 1, "binomial"}, {128, 40 << 10, "binary"}, {512, 20 << 10, "split-binary"}, {2000, 512 << 10, "scatter-allgather"}, {5000, 100, "knomial"},
	} {
		if got := Tuned(tt.ranks, tt.bytes); got != tt.want {
			t.Errorf("%d ranks, %d bytes: %s, want %s", tt.ranks, tt.bytes, got, tt.want)
		}
		s := must[*Script](t)(Broadcast{Algorithm: "tuned", Bytes: tt.bytes}.New(oneCommunicator(tt.ranks, 0)))
		runIdeal(t, s, 3, nil)
	}
}

func TestStorage(t *testing.T) {
	sets := [][]topology.Node{{0, 1, 2, 3}, {1, 2, 3, 0}, {0, 3, 2, 1}}
	for algorithm, flows := range map[string]int64{"unicast": 9, "chain": 12, "group": 3} {
		w := must[*Writes](t)(Storage{Algorithm: algorithm, Bytes: 8192, Writes: 20, Depth: 4}.New(sets))
		got := make(map[topology.Node]int64)
		x := runIdeal(t, w, 4, func(f Flow, at topology.Node) { got[at] += f.Bytes })
		if x.flows != 20*flows {
			t.Errorf("%s: %d flows, want %d", algorithm, x.flows, 20*flows)
		}
		for h, want := range map[topology.Node]int64{0: 1, 1: 2, 2: 3, 3: 3} {
			if got[h] != want*20*8192 {
				t.Errorf("%s: host %d has %d bytes", algorithm, h, got[h])
			}
			if s := w.Waiting(h); s != "" {
				t.Errorf("%s: host %d: %s", algorithm, h, s)
			}
		}
	}
}

func TestBackground(t *testing.T) {
	hosts := Contiguous(9)
	p := must[*List](t)(Permutation(hosts, 1000, topology.Microsecond, 5))
	sent, got := make(map[topology.Node]int), make(map[topology.Node]int)
	runIdeal(t, p, 5, func(f Flow, at topology.Node) { sent[f.Source]++; got[at]++ })
	for _, h := range hosts {
		if sent[h] != 1 || got[h] != 1 {
			t.Errorf("host %d sends %d, receives %d", h, sent[h], got[h])
		}
	}
	if x := runIdeal(t, must[*List](t)(Incast(hosts[1:], 0, 10, 0)), 6, nil); x.flows != 8 {
		t.Errorf("incast of %d flows", x.flows)
	}
	r := must[[]topology.Node](t)(Random(5, 100, 7))
	seen := make(map[topology.Node]bool)
	for _, h := range r {
		seen[h] = true
	}
	if len(seen) != 5 {
		t.Errorf("random hosts %v", r)
	}
}

// TestMix runs programs with groups beside each other: keys and groups stay apart.
func TestMix(t *testing.T) {
	group := func(from int) *Script {
		cs := oneCommunicator(4, 0)
		for i := range cs[0].Ranks {
			cs[0].Ranks[i] += topology.Node(from)
		}
		return must[*Script](t)(Broadcast{Algorithm: "group", Bytes: 100}.New(cs))
	}
	a, b := group(0), group(2)
	m := must[*Mix](t)(NewMix(must[*List](t)(Incast(Contiguous(5), 9, 10, 0)), a, b))
	got := make(map[topology.Node]int64)
	of := make(map[int]int)
	x := runIdeal(t, m, 7, func(f Flow, at topology.Node) { got[at] += f.Bytes; of[ProgramOf(f.Key)]++ })
	if x.flows != 7 || got[9] != 50 || got[11] != 100 || got[12] != 100 || got[13] != 200 || got[15] != 100 {
		t.Errorf("%d flows, bytes by host: %v", x.flows, got)
	}
	if of[0] != 5 || of[1] != 3 || of[2] != 3 || a.Waiting(11) != "" || b.Waiting(15) != "" {
		t.Errorf("deliveries by program: %v", of)
	}
}

func TestTrace(t *testing.T) {
	l := must[*List](t)(ParseTrace(`# two writers
group g1 0 1 2
12.5us 0 > g1 1MiB
1ns 3 > 0 64kB # earlier
0 2 > 1 0
`, 4))
	want := []Flow{{Source: 2, To: 1, Group: None}, {Source: 3, To: 0, Group: None, Bytes: 64000, After: 1000}, {To: None, Group: 0, Bytes: 1 << 20, After: 12_500_000}}
	var got []Flow
	l.Start(func(f Flow) { f.Key = 0; got = append(got, f) })
	if len(got) != len(want) {
		t.Fatalf("%d flows", len(got))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("flow %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	for text, part := range map[string]string{
		"":                                     "0 flows; want 1",
		"\n\n5us 0 > 9 1":                      `line 3: host "9": want a number from 0 to 3, or the name`,
		"5 0 > 1 1":                            `line 1: time "5"`,
		"-5us 0 > 1 1":                         `time "-5us"`,
		"5us 0 > 1 1XB":                        `size "1XB"`,
		"5us 0 > 1":                            "want TIME SOURCE > HOST BYTES",
		"5us 0 > 0 1":                          "to itself",
		"group g 0 1\n5us 3 > g 1":             "host 3, is not in group 0",
		"group g 0 1\ngroup g 0 1":             "line 2: group g is there twice",
		"group 1 0 1":                          "begins with no digit",
		"group g 0":                            "two hosts or more",
		"1us 0 > 1 " + strings.Repeat("9", 30): "size",
	} {
		if _, err := ParseTrace(text, 4); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: error %v, want %q in it", text, err, part)
		}
	}
}

// FuzzTrace: no text panics, and what is accepted is in range.
func FuzzTrace(f *testing.F) {
	f.Add("group g1 0 1 2\n12.5us 0 > g1 1MiB")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseTrace(text, 4)
		if err != nil {
			return
		}
		l.Start(func(f Flow) {
			if f.After < 0 || f.Bytes < 0 || f.Source < 0 || f.Source > 3 {
				t.Errorf("%+v", f)
			}
		})
	})
}

func TestErrors(t *testing.T) {
	two := oneCommunicator(2, 0)
	newHPL := func(h HPL, cs []Communicator) error { _, err := h.New(cs); return err }
	_, rows := Rows(Contiguous(7), 2)
	_, columns := Columns(Contiguous(7), 7)
	_, random := Random(5, 4, 1)
	_, mix := NewMix()
	_, storage := Storage{Algorithm: "raid", Bytes: 1, Writes: 1, Depth: 1}.New([][]topology.Node{{0, 1}})
	_, alone := Storage{Algorithm: "group", Bytes: 1, Writes: 1, Depth: 1}.New([][]topology.Node{{0}})
	_, depth := Storage{Algorithm: "group", Bytes: 1, Writes: 1}.New([][]topology.Node{{0, 1}})
	_, mpi := Broadcast{Algorithm: "best", Bytes: 1}.New(two)
	_, nccl := NCCL{Algorithm: "best", Bytes: 1, Chunk: 1}.New(two)
	_, chunk := NCCL{Algorithm: "ring", Bytes: 1}.New(two)
	_, permutation := Permutation(Contiguous(1), 1, 0, 0)
	for part, err := range map[string]error{
		"HPL algorithm":            newHPL(HPL{Algorithm: "ring", Bytes: 1, Chunks: 1}, two),
		"0 bytes":                  newHPL(HPL{Algorithm: "1ring", Chunks: 1}, two),
		"2 chunks of 1":            newHPL(HPL{Algorithm: "1ring", Bytes: 1, Chunks: 2}, two),
		"power of two":             newHPL(HPL{Algorithm: "exchange", Bytes: 1, Chunks: 1}, oneCommunicator(3, 0)),
		"root 2; want":             newHPL(HPL{Algorithm: "1ring", Bytes: 1, Chunks: 1}, oneCommunicator(2, 2)),
		"host 10 is rank 0":        newHPL(HPL{Algorithm: "1ring", Bytes: 1, Chunks: 1}, append(oneCommunicator(2, 0), oneCommunicator(2, 0)...)),
		"host 65536":               newHPL(HPL{Algorithm: "1ring", Bytes: 1, Chunks: 1}, []Communicator{{Ranks: []topology.Node{65536, 1}}}),
		"overhead of -1":           newHPL(HPL{Algorithm: "1ring", Bytes: 1, Chunks: 1, Overhead: -1}, two),
		"rows of 2":                rows,
		"columns of 2":             columns,
		"5 hosts are wanted of 4":  random,
		"0 programs":               mix,
		"storage algorithm":        storage,
		"client 0 has 0 replicas":  alone,
		"0 at a time":              depth,
		"MPI algorithm":            mpi,
		"NCCL algorithm":           nccl,
		"chunks of 0 bytes":        chunk,
		"a permutation of 1 hosts": permutation,
	} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want %q in it", err, part)
		}
	}
}
