// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/bedtest"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// Environment variables of the long form.
const (
	RunsEnv  = "GLEAM_BLAME_RUNS"  // runs of each cell
	CellsEnv = "GLEAM_BLAME_CELLS" // a regular expression; those cells alone
	LogEnv   = "GLEAM_BLAME_LOG"   // a file for one line for each naming
	// GleamdEnv is the program that is judged, of another build than this one.
	GleamdEnv = "GLEAM_BLAME_GLEAMD"
)

var programs = labtest.Programs{Packages: []string{"."}}

func TestMain(m *testing.M) {
	if os.Getenv(GleamdEnv) == "" {
		programs.Packages = append(programs.Packages, "../../cmd/gleamd")
	}
	os.Exit(programs.Run(m))
}

// judged is the path of the gleamd that is judged.
func judged(t *testing.T) string {
	if path := os.Getenv(GleamdEnv); path != "" {
		return path
	}
	return programs.Path(t, "gleamd")
}

const (
	watchTime = 7 * time.Second        // the time for which a run is looked at
	afterward = time.Second            // the time for which it is looked at after the guilty member was named
	interval  = 100 * time.Millisecond // the time between two looks
	patience  = 20 * time.Second       // the time for a join
)

// star has a source and three receivers; every link has a wire.
const star = `
switches: [l1]
hosts: [source, b, c, d]
links: [{a: l1, b: source}, {a: l1, b: b}, {a: l1, b: c}, {a: l1, b: d}]
`

// TestBlame: of three receivers of which at most one is guilty of the group's slowness, the switch names the guilty
// one, and never another.
func TestBlame(t *testing.T) {
	labtest.Part(t, "blame", "timing")
	labtest.Require(t)
	runs, long := 1, os.Getenv(RunsEnv) != ""
	if long {
		var err error
		if runs, err = strconv.Atoi(os.Getenv(RunsEnv)); err != nil || runs < 1 {
			t.Fatalf("%s is %q: want a number of runs", RunsEnv, os.Getenv(RunsEnv))
		}
	}
	only, err := regexp.Compile(os.Getenv(CellsEnv))
	if err != nil {
		t.Fatalf("%s: %v", CellsEnv, err)
	}
	s := newStage(t)
	var rows []row
	for _, c := range cells() {
		if only.MatchString(c.String()) && (long || c.short()) {
			rows = append(rows, row{cell: c})
		}
	}
	for i := range runs {
		for k := range rows {
			r, err := s.play(rows[k].cell, i)
			if err != nil {
				t.Fatalf("%v: %v\n%s", rows[k].cell, err, s.gleamd.Output())
			}
			rows[k].runs = append(rows[k].runs, r)
			s.log(rows[k].cell, &r)
		}
	}
	var table strings.Builder
	if err := write(&table, rows); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d receivers, messages of %d bytes\n%s", len(s.receivers()), message, table.String())
	for i := range rows {
		switch v := rows[i].verdict(); {
		case v == "":
		case long || rows[i].innocents() > mostInnocents || s.disturbed <= mostDisturbed:
			t.Errorf("%v: %s", rows[i].cell, v)
		default: // a receiver that is late by the machine's fault may hide another one
			t.Skipf("%v: %s; but other programs used %.2f CPUs meanwhile", rows[i].cell, v, s.disturbed)
		}
	}
}

// mostDisturbed is the number of CPUs that other programs may use in the short form.
const mostDisturbed = 0.3

// stage is the lab on which all runs are played.
type stage struct {
	t      *testing.T
	bed    *testbed.Fabric
	gleamd *testbed.Gleamd
	group  netip.Addr // the group of the last run
	lines  *os.File
	// disturbed is the most CPUs that other programs have used in a run.
	disturbed float64
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, group: fabric.GroupsIPv4.Addr()}
	top, err := fabric.Parse([]byte(star))
	if err != nil {
		t.Fatal(err)
	}
	s.bed = bedtest.Fabric(t, testbed.FabricConfig{Gleamd: judged(t), Fabric: fabric.Config{Topology: top, Count: true}})
	s.gleamd = s.bed.Gleamds["l1"]
	if path := os.Getenv(LogEnv); path != "" {
		if s.lines, err = os.Create(path); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.lines.Close() })
	}
	return s
}

// log writes what a run has shown.
func (s *stage) log(c cell, r *run) {
	if s.lines == nil {
		return
	}
	fmt.Fprintf(s.lines, "%v: guilty %q, waits for %v, %.1f Mbit/s, lab %.2f CPUs, others %.2f\n", c, r.guilty, r.waits, r.goodput*8/1e6, r.lab, r.others)
	for i := range r.members {
		if m := &r.members[i]; m.Cost != nil {
			fmt.Fprintf(s.lines, "    %s %+v\n", s.nameOf(m.IP), *m.Cost)
		}
	}
	for _, n := range r.named {
		mark := ""
		if n.member != r.guilty {
			mark = "  INNOCENT"
		}
		fmt.Fprintf(s.lines, "    %5.1f s %s %s %s%s\n", n.after.Seconds(), n.member, n.by, n.cause, mark)
	}
}

func (s *stage) receivers() []*fabric.Host { return s.bed.Hosts[1:] }

// nameOf is the name of the host with an address.
func (s *stage) nameOf(ip netip.Addr) string {
	if i := slices.IndexFunc(s.bed.Hosts, func(h *fabric.Host) bool { return h.IPv4 == ip }); i >= 0 {
		return s.bed.Hosts[i].Name
	}
	return ip.String()
}

// start starts a host's program.
func (s *stage) start(h *fabric.Host, x habits) (*lab.Process, error) {
	x.IP, x.Interface, x.Group = h.IPv4, fabric.HostInterface, s.group
	x.KeyID, x.Key = testbed.KeyID, s.bed.Key
	x.Exchange = netip.AddrPortFrom(s.bed.Hosts[0].IPv4, 7000).String()
	in, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	c := exec.Command(programs.Path(s.t, "blame"))
	c.Stdin = bytes.NewReader(in)
	return h.NS.Start(c)
}

// play plays a cell once.
func (s *stage) play(c cell, number int) (r run, err error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience+watchTime)
	defer cancel()
	s.group = s.group.Next()
	var guilty *fabric.Host
	if c.fault.cause != "" {
		guilty = s.receivers()[rand.IntN(len(s.receivers()))]
		r.guilty = guilty.Name
	}
	load := c.sourceLoad()
	first := habits{Members: len(s.receivers()), Load: load}
	if c.stop != 0 && number%2 == 1 {
		first.Evict = time.Second
	}
	all := make([]*lab.Process, len(s.bed.Hosts))
	defer func() {
		for _, p := range all {
			if p != nil {
				_ = p.Stop(0) // one that is stopped gets SIGKILL
			}
		}
	}()
	for i, h := range s.bed.Hosts {
		x := habits{Load: load, Posts: c.receives(h == guilty)}
		if i == 0 {
			x = first
		}
		if all[i], err = s.start(h, x); err != nil {
			return r, err
		}
	}
	if err := ready(ctx, all); err != nil {
		return r, err
	}
	before, err := s.gleamd.Client.Events(ctx, 0, 0)
	if err != nil {
		return r, err
	}
	if guilty != nil {
		if err := s.spoil(c, guilty, all); err != nil {
			return r, err
		}
		defer func() {
			if e := s.bed.Impair("l1", guilty.Name, 0, 0, 0); err == nil {
				err = e
			}
		}()
	}
	machine := labtest.Watch()
	used, began := s.used(all), time.Now()
	if err := s.look(ctx, &r, before.Last); err != nil {
		return r, err
	}
	lab := (s.used(all) - used).Seconds() / time.Since(began).Seconds()
	r.lab, r.others = lab, max(0, machine.Others()-lab)
	s.disturbed = max(s.disturbed, r.others)
	return r, s.end(ctx, &r, all, load)
}

// used is the CPU time that the hosts' programs and gleamd have used so far.
func (s *stage) used(all []*lab.Process) (sum time.Duration) {
	for _, p := range append(slices.Clone(all), s.gleamd.Process) {
		t, _ := p.CPUTime() // 0 of one that has ended
		sum += t
	}
	return sum
}

// ready waits until all hosts have joined.
func ready(ctx context.Context, all []*lab.Process) error {
	for _, p := range all {
		for !strings.Contains(p.Output(), "ready\n") {
			select {
			case <-p.Done():
				return fmt.Errorf("a host has ended: %w", p.Wait())
			case <-ctx.Done():
				return fmt.Errorf("the group is not formed: %w; %s", ctx.Err(), p.Output())
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}

// spoil makes one receiver guilty. One that is late is so from the start.
func (s *stage) spoil(c cell, guilty *fabric.Host, all []*lab.Process) error {
	if c.stop != 0 {
		return all[slices.Index(s.bed.Hosts, guilty)].Signal(c.stop)
	}
	if c.link {
		return s.bed.Impair("l1", guilty.Name, 0, c.slow, 0)
	}
	return s.bed.Impair("l1", guilty.Name, c.loss, 0, 0)
}

// look asks the switch again and again whom it names.
func (s *stage) look(ctx context.Context, r *run, last uint64) error {
	r.waits = make(map[string]int)
	began := time.Now()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for now := began; now.Sub(began) < watchTime; now = <-tick.C {
		named := func(ip netip.Addr, by, cause string) {
			r.named = append(r.named, naming{member: s.nameOf(ip), by: by, cause: cause, after: now.Sub(began)})
		}
		g, err := s.gleamd.Client.Group(ctx, s.group)
		if err != nil {
			return err
		}
		r.members = g.Members
		if g.WaitsFor.IsValid() {
			r.waits[s.nameOf(g.WaitsFor)]++
		}
		if g.SlowedBy.IsValid() {
			named(g.SlowedBy, "slowed_by", g.SlowCause)
		}
		for i := range g.Members {
			if m := &g.Members[i]; m.Slow != "" {
				named(m.IP, "slow", m.Slow)
			}
		}
		es, err := s.gleamd.Client.Events(ctx, last, 0)
		if err != nil {
			return err
		}
		last = es.Last
		for i := range es.Events {
			if e := &es.Events[i]; e.Group == s.group && (e.Kind == api.EventSlow || saysItself[e.Kind]) && e.Member.IsValid() {
				named(e.Member, e.Kind, "")
			}
		}
		if at, ok := r.namesGuilty(); ok && now.Sub(began) > at+afterward {
			return nil
		}
	}
	return nil
}

// end ends the group, and reads what the source has sent.
func (s *stage) end(ctx context.Context, r *run, all []*lab.Process, load load) error {
	if err := all[0].Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-all[0].Done():
	case <-ctx.Done():
		return fmt.Errorf("the source does not end: %w", ctx.Err())
	}
	_, line, _ := strings.Cut(all[0].Output(), "ready\n")
	var x sent
	if err := json.Unmarshal([]byte(line), &x); err != nil {
		return fmt.Errorf("what the source has sent: %w: %q", err, line)
	}
	r.goodput = float64(x.Messages*load.Message) / x.Seconds
	return nil
}
