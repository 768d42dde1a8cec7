// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// hplCases run HPL, whose panel broadcast and row swap are calls of MPI_Bcast. They need
// a machine with Open MPI and HPL: test/rxe/run.sh --hpl.
func hplCases() (cs []testCase) {
	if _, err := exec.LookPath(hplProgram); err != nil {
		return nil
	}
	all := []hplGrid{{1, 4}, {2, 2}, {4, 1}}
	return []testCase{
		{name: "HPL by groups: grids", run: hplResiduals(hplInput{sizes: []int{200}, block: 40, grids: all, depths: []int{1}, swap: hplLong})},
		{name: "HPL by groups: look-ahead", long: true, run: hplResiduals(hplInput{sizes: []int{300}, block: 40, grids: all, depths: []int{0, 2}, swap: hplLong})},
		{name: "HPL by groups: U not transposed, in place of binary exchange", long: true,
			run: hplResiduals(hplInput{sizes: []int{300}, block: 40, grids: all[1:], depths: []int{0, 1}, swap: hplExchange, notTransposed: true})},
		{name: "HPL's panel broadcast by a group and by HPL, 5 Mbit/s", long: true, run: hplPanels},
		{name: "HPL's row swap by groups and by HPL, 5 Mbit/s", long: true, run: hplSwaps},
	}
}

const (
	hplProgram = "hpl-openmpi"
	// Of HPL's input.
	hplExchange, hplLong = 0, 1
	hpl1ring, hplBlong   = 0, 4
	// The system that is measured.
	hplOrder, hplBlock = 768, 256
	// Largest parts of the time of HPL's own.
	hplPanelMost, hplSwapMost = 0.4, 0.85
)

type hplGrid struct{ rows, columns int }

// groups is how many rows and columns of several ranks there are: each has a group.
func (g hplGrid) groups() (n int) {
	if g.columns > 1 {
		n += g.rows
	}
	if g.rows > 1 {
		n += g.columns
	}
	return n
}

// hplInput is what HPL reads.
type hplInput struct {
	sizes         []int // orders of systems
	block         int
	grids         []hplGrid
	depths        []int
	broadcast     int
	swap          int
	notTransposed bool // U
}

// solutions is how many systems HPL solves.
func (in *hplInput) solutions() int { return len(in.sizes) * len(in.grids) * len(in.depths) }

func (in *hplInput) text() string {
	var rows, columns []int
	for _, g := range in.grids {
		rows, columns = append(rows, g.rows), append(columns, g.columns)
	}
	list := func(n []int) string { return strings.Trim(fmt.Sprint(n), "[]") }
	form := 0
	if in.notTransposed {
		form = 1
	}
	lines := []any{"HPL", "", "hpccoutf.txt", 8, // which is a file
		len(in.sizes), list(in.sizes), 1, in.block, 0, len(in.grids), list(rows), list(columns), "16.0", // the residual's limit, HPL's usual one
		1, 2, 1, 4, 1, 2, 1, 1, // factorization: right-looking, 4 columns at least, in 2 parts, Crout
		1, in.broadcast, len(in.depths), list(in.depths), in.swap, 60, 0, form, 1, 8}
	var text strings.Builder
	for _, line := range lines {
		fmt.Fprintln(&text, line)
	}
	return text.String()
}

// hplSolution is what rank 0 says of one.
type hplSolution struct {
	grid                hplGrid
	seconds             float64
	panels, swaps       int
	panelBytes          float64
	swapBytes           float64
	panelTime, swapTime float64 // seconds
	broadcast           float64 // bytes given to MPI_Bcast
}

// hplCarried is what groups have carried.
type hplCarried struct {
	groups int
	bytes  float64
}

// hpl runs HPL and returns its solutions, whose residuals it has found small enough.
func (b *bench) hpl(ctx context.Context, in *hplInput, env ...string) (all []hplSolution, carried hplCarried, err error) {
	dir, err := os.MkdirTemp(b.state, "hpl-")
	if err != nil {
		return nil, carried, err
	}
	if err := os.WriteFile(filepath.Join(dir, "hpccinf.txt"), []byte(in.text()), 0o600); err != nil {
		return nil, carried, err
	}
	out, err := b.mpirun(ctx, openMPI, mpiStar, append([]string{"GLEAM_MPI_MIN=1"}, env...), hplProgram, dir)
	if err != nil {
		return nil, carried, err
	}
	result, err := os.ReadFile(filepath.Join(dir, "hpccoutf.txt"))
	if err != nil {
		return nil, carried, err
	}
	want := in.solutions()
	if n := strings.Count(string(result), " ...... PASSED\n"); n != want || strings.Contains(string(result), "FAILED") {
		return nil, carried, fmt.Errorf("%d of %d residuals passed:\n%s\n%s", n, want, result, out)
	}
	for line := range strings.Lines(out) {
		var s hplSolution
		var n, block, depth int
		if _, err := fmt.Sscanf(line, "hpl: %dx%d N %d NB %d depth %d: %g s; %d panels of %g bytes %g s; %d row swaps of %g bytes %g s; MPI_Bcast %g bytes",
			&s.grid.rows, &s.grid.columns, &n, &block, &depth, &s.seconds, &s.panels, &s.panelBytes, &s.panelTime,
			&s.swaps, &s.swapBytes, &s.swapTime, &s.broadcast); err == nil {
			all = append(all, s)
			b.note("%s", strings.TrimSpace(line))
		}
		var address string
		var ranks, broadcasts int
		var bytes float64
		if _, err := fmt.Sscanf(line, mpiGroup+"%s of %d ranks: %d broadcasts, %g bytes", &address, &ranks, &broadcasts, &bytes); err == nil {
			carried.groups++
			carried.bytes += bytes
		}
	}
	if len(all) != want {
		return nil, carried, fmt.Errorf("%d lines about %d solutions:\n%s", len(all), want, out)
	}
	return all, carried, nil
}

// hplResiduals has groups carry exactly what HPL gave to MPI_Bcast, which is no less than its
// panels and the rows of U, and the residuals pass.
func hplResiduals(in hplInput) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		all, carried, err := b.hpl(ctx, &in)
		if err != nil {
			return err
		}
		var sum float64
		for _, s := range all {
			if s.broadcast < s.panelBytes+s.swapBytes || s.broadcast == 0 {
				return fmt.Errorf("%dx%d: %.0f bytes by MPI_Bcast, want those of panels and row swaps at least", s.grid.rows, s.grid.columns, s.broadcast)
			}
			if (s.grid.columns > 1) != (s.panels > 0) || (s.grid.rows > 1) != (s.swaps > 0) {
				return fmt.Errorf("%dx%d: %d panels and %d row swaps", s.grid.rows, s.grid.columns, s.panels, s.swaps)
			}
			sum += s.broadcast
		}
		b.note("%.0f bytes by %d groups", carried.bytes, carried.groups)
		groups := 0
		for _, g := range in.grids {
			groups += g.groups()
		}
		if carried != (hplCarried{groups, sum}) {
			return fmt.Errorf("%.0f bytes by %d groups, want the %.0f of MPI_Bcast by %d", carried.bytes, carried.groups, sum, groups)
		}
		return b.noGroups(ctx)
	}
}

// hplWay is a way to communicate that is measured.
type hplWay struct {
	name      string
	broadcast int // HPL's number of the broadcast
	env       []string
}

// hplMeasure solves a system in each way, where the hosts' links are the bottleneck, and
// returns the time for each way. The ranks of a row or column wait for
// each other before the clock starts, and a small system comes first, so that connections and
// groups are there: in all ways alike.
func (b *bench) hplMeasure(ctx context.Context, grid hplGrid, ways []hplWay, took func(*hplSolution) float64) (times []float64, err error) {
	for _, h := range b.hosts[:mpiStar] {
		if err := h.narrow(mpiLinkRate); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, h.fast()) }()
	}
	times = make([]float64, len(ways))
	for i, w := range ways {
		in := hplInput{sizes: []int{hplBlock / 4, hplOrder}, block: hplBlock, grids: []hplGrid{grid}, depths: []int{0}, broadcast: w.broadcast, swap: hplLong}
		all, carried, err := b.hpl(ctx, &in, append([]string{"GLEAM_HPL_BARRIER=1"}, w.env...)...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		if want := all[0].broadcast + all[1].broadcast; carried.bytes != want {
			return nil, fmt.Errorf("%s: groups carried %.0f bytes, want %.0f", w.name, carried.bytes, want)
		}
		times[i] = took(&all[1])
	}
	return times, nil
}

var hplOwn = []string{"GLEAM_HPL_OWN=1", "LIBRARY="}

func hplPanels(ctx context.Context, b *bench) error {
	t, err := b.hplMeasure(ctx, hplGrid{1, 4}, []hplWay{{"1ring", hpl1ring, hplOwn}, {"group", hpl1ring, nil}, {"long", hplBlong, hplOwn}},
		func(s *hplSolution) float64 { return s.panelTime })
	if err != nil {
		return err
	}
	b.note("panel broadcast: 1ring %.3f s, long %.3f s, group %.3f s: %.3f of 1ring", t[0], t[2], t[1], t[1]/t[0])
	return hplCompare(t[1]/t[0], hplPanelMost)
}

func hplSwaps(ctx context.Context, b *bench) error {
	t, err := b.hplMeasure(ctx, hplGrid{4, 1}, []hplWay{{"HPL", hpl1ring, hplOwn}, {"group", hpl1ring, nil}},
		func(s *hplSolution) float64 { return s.swapTime })
	if err != nil {
		return err
	}
	b.note("row swap: spread and roll %.3f s, groups %.3f s: %.3f", t[0], t[1], t[1]/t[0])
	return hplCompare(t[1]/t[0], hplSwapMost)
}

func hplCompare(part, most float64) error {
	if part > most {
		return fmt.Errorf("groups take %.3f of the time of HPL's own, want %.2f or less", part, most)
	}
	return nil
}
