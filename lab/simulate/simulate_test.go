// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/lab/simulate/spec"
)

const study = `name: study
sweep:
  algorithm: [group, 1ring, long]
  n: [2, 4]
topology: {kind: leaf-spine, leaves: 4, spines: 4, hosts_per_leaf: 4}
phases:
  - name: rows
    programs:
      - {program: hpl, algorithm: "${algorithm}", bytes: 256KiB, chunks: 4, communicators: 4, ranks: "${n}"}
`

// command runs `gleam sim` in this process.
func command(ctx context.Context, t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	env := &cli.Env{Stdout: &out, Stderr: &errs, Remote: cli.DefaultRemote(), Build: api.Version{Version: "test"}}
	code = cli.Run(ctx, env, append([]string{"sim"}, args...), Command)
	return out.String(), errs.String(), code
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRunAgreesWithFormulas simulates each algorithm in several parts and in one: the hash is the same,
// and groups and rings take what the formulas say.
func TestRunAgreesWithFormulas(t *testing.T) {
	flows := filepath.Join(t.TempDir(), "flows.csv")
	out, errs, code := command(t.Context(), t, "run", file(t, "study.yaml", study), "-o", "json", "--verify-parallel", "--partitions", "2", "--flows", flows)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 6 {
		t.Fatalf("%d results:\n%s", len(lines), out)
	}
	total := int64(0)
	for _, line := range lines {
		var r Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		p := r.Phases[0]
		total += p.Done
		limit := map[string]float64{"group": 0.001, "1ring": 0.02, "long": 0.5}[r.Vars["algorithm"]]
		if p.Flows != p.Done || p.Failed != 0 || r.Partial || p.Analytic == 0 || math.Abs(p.JCT/p.Analytic-1) > limit {
			t.Errorf("%v: %d of %d flows, %d failed; %.2f µs, analytic %.2f", r.Vars, p.Done, p.Flows, p.Failed, p.JCT, p.Analytic)
		}
		if g := p.Programs[0]; g.Done != p.Done || g.P50 <= 0 || g.P50 > g.P99 || g.P99 > g.Max || g.Last != p.Completed {
			t.Errorf("%v: %+v", r.Vars, g)
		}
	}
	text, err := os.ReadFile(flows)
	if err != nil {
		t.Fatal(err)
	}
	if n := int64(strings.Count(string(text), "\n")); n != total+1 {
		t.Errorf("%d lines of %d flows", n, total)
	}
}

// TestSweep shares a sweep by shards, does it again, joins and reports it.
func TestSweep(t *testing.T) {
	spec, dir := file(t, "study.yaml", study), filepath.Join(t.TempDir(), "results")
	for shard, want := range map[string]string{"0/2": "3 points simulated, 0 had results", "1/2": "3 points simulated, 0 had results"} {
		if _, errs, code := command(t.Context(), t, "sweep", spec, "--out", dir, "--shard", shard, "--no-progress"); code != 0 || !strings.Contains(errs, want) {
			t.Fatalf("shard %s: exit code %d, %s", shard, code, errs)
		}
	}
	if _, errs, code := command(t.Context(), t, "sweep", spec, "--out", dir, "--no-progress"); code != 0 || !strings.Contains(errs, "0 points simulated, 6 had results") {
		t.Errorf("again: exit code %d, %s", code, errs)
	}
	out, errs, code := command(t.Context(), t, "merge", dir, "-o", "csv")
	if code != 0 || strings.Count(out, "\n") != 7 || !strings.HasPrefix(out, "algorithm,n,jct_us,") {
		t.Errorf("merge: exit code %d, %s\n%s", code, errs, out)
	}
	svg := filepath.Join(t.TempDir(), "jct.svg")
	out, errs, code = command(t.Context(), t, "report", dir, "--x", "n", "--series", "algorithm", "--svg", svg)
	if code != 0 || strings.Count(out, "\n") != 7 || !strings.Contains(out, "1.000") {
		t.Errorf("report: exit code %d, %s\n%s", code, errs, out)
	}
	if text, err := os.ReadFile(svg); err != nil || !bytes.Contains(text, []byte("<svg")) {
		t.Errorf("no picture: %v", err)
	}
	if _, errs, code := command(t.Context(), t, "report", dir, "--x", "m"); code != cli.ExitUsage || !strings.Contains(errs, "algorithm, n") {
		t.Errorf("unknown variable: exit code %d, %s", code, errs)
	}

	out, errs, code = command(t.Context(), t, "merge", dir, "-o", "jsonpath=$.vars.n")
	if code != 0 || strings.Count(out, "\n") != 6 || strings.ContainsAny(out, "{\":") {
		t.Errorf("a query: exit code %d, %s\n%s", code, errs, out)
	}
	out, errs, code = command(t.Context(), t, "merge", dir, "-o", "yaml")
	if code != 0 || strings.Count(out, "---\n") != 6 || strings.Count(out, "\njct_us: ") != 6 {
		t.Errorf("YAML: exit code %d, %s\n%s", code, errs, out)
	}
	out, errs, code = command(t.Context(), t, "merge", dir)
	if code != 0 || strings.Count(out, "  JCT ") != 6 || strings.Count(out, "algorithm=") != 6 {
		t.Errorf("text: exit code %d, %s\n%s", code, errs, out)
	}

	// A result of the same point with another hash is an error.
	joined, _, _ := command(t.Context(), t, "merge", dir, "-o", "json")
	line, _, _ := strings.Cut(joined, "\n")
	var r Result
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		t.Fatal(err)
	}
	r.Phases[0].Hash = "other"
	var b bytes.Buffer
	if err := r.writeJSON(&b); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := command(t.Context(), t, "merge", dir, file(t, "other.jsonl", b.String())); code == 0 || !strings.Contains(errs, "has the hashes other here") {
		t.Errorf("another hash: exit code %d, %s", code, errs)
	}
}

// TestInterrupt: what was done before the end is written, and marked.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	long := strings.Replace(study, "256KiB", "64MiB", 1)
	out, errs, code := command(ctx, t, "run", file(t, "study.yaml", long), "-o", "json", "--partitions", "1", "--set", "n=4", "--set", "algorithm=1ring")
	var r Result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %q: %s", err, out, errs)
	}
	if code != cli.ExitInterrupted || !r.Partial || r.Phases[0].Done >= r.Phases[0].Flows || r.Phases[0].Hops == 0 {
		t.Errorf("exit code %d, partial %v, %d of %d flows", code, r.Partial, r.Phases[0].Done, r.Phases[0].Flows)
	}
}

// TestWatchdog: a run in which nothing moves ends with what was done, and says which group waits for what.
func TestWatchdog(t *testing.T) {
	const text = `topology:
  kind: leaf-spine
  leaves: 3
  spines: 1
  hosts_per_leaf: 2
  failures: [{at: 100us, link: [l3, s1]}]
hosts: {personality: rxe}
phases:
  - name: small
    programs: [{program: hpl, algorithm: group, bytes: 64KiB, ranks: 2}]
  - name: rows
    programs: [{program: hpl, algorithm: group, bytes: 16MB, ranks: 6}]
`
	name := file(t, "stalled.yaml", text)
	for _, tt := range []struct{ watchdog, want string }{
		{"20ms", "no flow was delivered or completed in the last 20ms of simulated time"},
	} {
		out, errs, code := command(t.Context(), t, "run", name, "-o", "json", "--watchdog", tt.watchdog)
		var r Result
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v in %q: %s", err, out, errs)
		}
		if code != cli.ExitFailed || !r.Partial || len(r.Phases) != 2 || r.Phases[0].Done != 1 || r.Phases[1].Done != 0 || r.Phases[1].Lost == 0 {
			t.Errorf("exit code %d: %+v", code, r)
		}
		for _, want := range []string{tt.want, "group 0: 1 messages of h1 are not completed", "the link from s1 to l3 is down", "host h5: rank 4 of communicator 0: step 0, a message from host 0"} {
			if !strings.Contains(errs, want) {
				t.Errorf("watchdog %s: %s\nwant %q", tt.watchdog, errs, want)
			}
		}
	}
	// A receiver that posts no receives is named by its switch.
	late := strings.Replace(strings.Replace(text, "  failures: [{at: 100us, link: [l3, s1]}]\n", "", 1), "personality: rxe", "receive_delay: 10s", 1)
	late = strings.Replace(late, "bytes: 16MB", "bytes: 16KB, chunks: 2", 1)
	if _, errs, code := command(t.Context(), t, "run", file(t, "late.yaml", late), "--watchdog", "20ms"); code != cli.ExitFailed || !strings.Contains(errs, "l1 waits for h2") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestPrint(t *testing.T) {
	spec := file(t, "study.yaml", study)
	if out, errs, code := command(t.Context(), t, "run", spec, "--print-config", "--set", "n=2", "--set", "algorithm=group"); code != 0 || !strings.Contains(out, "retries: \"7\"") {
		t.Errorf("configuration: exit code %d, %s\n%s", code, errs, out)
	}
	out, errs, code := command(t.Context(), t, "topology", spec)
	if code != 0 || !strings.Contains(out, "hosts       16") || !strings.Contains(out, "4 partitions") {
		t.Errorf("topology: exit code %d, %s\n%s", code, errs, out)
	}
	if out, errs, code := command(t.Context(), t, "topology", spec, "--yaml"); code != 0 || !strings.Contains(out, "- h16") {
		t.Errorf("topology file: exit code %d, %s\n%s", code, errs, out)
	}
	for _, args := range [][]string{{"topology", spec, "--dot"}, {"topology", spec, "--group", "0", "--phase", "2"}, {"topology", spec, "--group", "0", "--set", "algorithm=1ring"}, {"run", spec, "--set", "n"}, {"run", spec, "--set", "m=1"}, {"run", spec, "-o", "xml"}, {"sweep", spec, "--shard", "2/2"}, {"merge", spec, "-o", "svg"}} {
		if _, errs, code := command(t.Context(), t, args...); code != cli.ExitUsage {
			t.Errorf("%v: exit code %d, %s", args, code, errs)
		}
	}
}

// TestTreeOfAGroup shows a tree in each form, before and after the spine that it goes over has failed.
func TestTreeOfAGroup(t *testing.T) {
	const text = `topology:
  kind: leaf-spine
  leaves: 2
  spines: 2
  hosts_per_leaf: 3
  failures: [{at: 1us, node: "${failed}"}]
sweep: {failed: [s1]}
phases: [{name: rows, programs: [{program: hpl, algorithm: group, bytes: 1KiB, ranks: 6}]}]
`
	name, svg := file(t, "tree.yaml", text), filepath.Join(t.TempDir(), "tree.svg")
	show := func(args ...string) string {
		out, errs, code := command(t.Context(), t, append([]string{"topology", name, "--group", "0"}, args...)...)
		if code != 0 {
			t.Fatalf("%v: exit code %d, %s", args, code, errs)
		}
		return out
	}
	before := show()
	used, other := "s1", "s2"
	if strings.Contains(before, "s2") {
		used, other = other, used
	}
	if want := "l1: h1 h2 h3\n  " + used + "\n    l2: h4 h5 h6\n"; before != want {
		t.Errorf("the tree is\n%swant\n%s", before, want)
	}
	if after := show("--after-failures", "--set", "failed="+used); after != strings.Replace(before, used, other, 1) {
		t.Errorf("after the failure of %s:\n%s", used, after)
	}
	if dot := show("--dot"); !strings.Contains(dot, `"l1" -- "`+used+`";`) || !strings.Contains(dot, `"l2" -- "h4 h5 h6";`) {
		t.Error(dot)
	}
	show("--svg", svg)
	drawn, err := os.ReadFile(svg)
	if err != nil || strings.Count(string(drawn), "<line") != 2 || !strings.Contains(string(drawn), ">3 hosts, h4 to h6<") || xml.Unmarshal(drawn, new(struct{})) != nil {
		t.Errorf("error %v\n%s", err, drawn)
	}
	if _, errs, code := command(t.Context(), t, "topology", name, "--group", "7"); code == 0 || !strings.Contains(errs, "group 7 does not exist; there are 1") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestQuantiles(t *testing.T) {
	r := newRecord(2, &spec.Phase{Name: "p", Programs: make([]spec.Program, 1)}, nil)
	for i := range 1000 {
		r.completed(i%2, workload.Flow{Key: uint64(i)}, 0, topology.Time(i+1)*topology.Microsecond)
	}
	sum := r.program(0)
	for share, want := range map[float64]float64{0.5: 500, 0.99: 990, 1: 1000} {
		if got := micro(sum.quantile(share)); math.Abs(got/want-1) > 1./32 {
			t.Errorf("quantile %v: %v µs, want %v", share, got, want)
		}
	}
	if sum.flows != 1000 || micro(sum.longest) != 1000 {
		t.Errorf("%d flows, longest %v", sum.flows, sum.longest)
	}
}

// TestModes: where trains are to be exact and are not, packets are simulated instead, with their result and
// their flows; a result says which.
func TestModes(t *testing.T) {
	const text = `topology: {kind: leaf-spine, leaves: 2, hosts_per_leaf: 8}
sweep: {train: [1], inexact: ["false"], algorithm: [group]}
trains: {packets: "${train}", inexact: "${inexact}"}
phases:
  - programs:
      - {program: hpl, algorithm: "${algorithm}", bytes: 2MB, chunks: 8, ranks: 16}
`
	run := func(algorithm, train, inexact string) (hash, mode, flows string) {
		t.Helper()
		name := filepath.Join(t.TempDir(), "flows")
		out, stderr, code := command(t.Context(), t, "run", file(t, "modes.yaml", text), "-o", "json", "--flows", name, "--set", "algorithm="+algorithm, "--set", "train="+train, "--set", "inexact="+inexact, "--no-progress")
		var r Result
		if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
			t.Fatalf("%s: exit %d, %v: %s", algorithm, code, err, stderr)
		}
		lines, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return r.Phases[0].Hash, r.Mode, string(lines)
	}
	for _, c := range []struct {
		algorithm, train, inexact, mode string
		same                            bool
	}{
		{"group", "1", "false", "packets", true},
		{"group", "16", "false", "trains, exact", true},
		{"group", "16", "true", "trains, exact", true},
		{"1ring", "16", "false", "packets", true},
		{"1ring", "16", "true", "trains, not exact", false},
	} {
		wantHash, _, wantFlows := run(c.algorithm, "1", "false")
		hash, mode, flows := run(c.algorithm, c.train, c.inexact)
		if mode != c.mode || (hash == wantHash) != c.same || c.same && flows != wantFlows {
			t.Errorf("%s, trains of %s, inexact %s: mode %q, hash %s, flows\n%swant mode %q, hash of packets %s: %v, flows\n%s", c.algorithm, c.train, c.inexact, mode, hash, flows, c.mode, wantHash, c.same, wantFlows)
		}
	}
}
