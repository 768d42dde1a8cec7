// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Command cases proves a switch against the kernel's own RC transport: it makes
// a lab of rxe devices around gleamd, runs the cases in it and prints a table.
// It is built with -tags verbs and runs as root on a kernel that has rdma_rxe;
// test/rxe/run.sh boots one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// options of the command line.
type options struct {
	gleamd string // the program
	broken string // a gleamd that forwards the first ACK
	out    string // folder for logs and captures
	long   bool
	mpi    bool
	record bool // capture every case
	run    *regexp.Regexp
	times  int           // the number of times that the cases run
	limit  time.Duration // the time limit of one case
}

func main() {
	var o options
	pattern := flag.String("run", "", "run only the cases whose names match this regular `expression`")
	flag.StringVar(&o.gleamd, "gleamd", "gleamd", "the switch's `program`")
	flag.StringVar(&o.broken, "broken", "", "a gleamd `program` that forwards the first ACK: the negative control")
	flag.StringVar(&o.out, "out", ".", "`folder` for logs and captures")
	flag.BoolVar(&o.record, "record", false, "capture the packets of every case")
	flag.BoolVar(&o.long, "long", false, "run the long sweeps as well")
	flag.BoolVar(&o.mpi, "mpi", false, "run all cases of MPI, and not the quick ones alone")
	flag.IntVar(&o.times, "times", 1, "run the cases that `many` times")
	flag.DurationVar(&o.limit, "limit", 180*time.Second, "longest `time` for one case")
	flag.Parse()
	var err error
	if o.run, err = regexp.Compile(*pattern); err != nil || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ok, err := runAll(ctx, &o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// bench is the environment of the cases.
type bench struct {
	*machine
	*options
	daemon *daemon
	notes  []string // lines to print below a case's own
}

func (b *bench) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

// testCase is one line of the table.
type testCase struct {
	name string
	run  func(context.Context, *bench) error
	long bool // only with --long
	mpi  bool // only with --mpi

	programs int // the number of programs that it runs one after the other, each with --limit; 0: one
}

func runAll(ctx context.Context, o *options) (ok bool, err error) {
	begin := time.Now()
	m, err := newMachine(ctx, maxHosts)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	b := &bench{machine: m, options: o}
	if b.daemon, err = startDaemon(ctx, m, o.gleamd, o.out); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, b.daemon.stop(), b.tree.stop()) }()

	fmt.Printf("%d hosts and the switch are up after %.1f s\n", len(m.all()), time.Since(begin).Seconds())
	begin = time.Now()
	passed := 0
	var failed, flaky []string // lines for the end
	fmt.Printf("%-62s %-6s %7s\n", "case", "result", "seconds")
	var cases []testCase
	for _, c := range allCases() {
		if (o.long || !c.long) && (o.mpi || !c.mpi) && o.run.MatchString(c.name) {
			cases = append(cases, c)
		}
	}
	for _, c := range slices.Repeat(cases, o.times) {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		start := time.Now()
		var err error
		if o.record {
			err = b.recorded(ctx, c)
		} else {
			err = b.once(ctx, c)
		}
		result := "ok"
		if err != nil {
			result = "FAIL"
		}
		fmt.Printf("%-62s %-6s %7.1f\n", c.name, result, time.Since(start).Seconds())
		for _, n := range b.notes {
			fmt.Printf("    %s\n", n)
		}
		b.notes = nil
		if err == nil {
			passed++
			continue
		}
		fmt.Printf("    %v\n", err)
		again := err
		if !o.record {
			again = b.recorded(ctx, c) // with a capture: there is something to look at
			fmt.Printf("    again with a capture: %v\n", again)
		}
		line, _, _ := strings.Cut(err.Error(), "\n")
		if isFlaky(err, again) && len(flaky) < maxFlaky {
			flaky = append(flaky, fmt.Sprintf("FLAKY: %s: %s", c.name, line))
			passed++
		} else {
			failed = append(failed, fmt.Sprintf("FAILED: %s: %s", c.name, line))
		}
	}
	for _, line := range slices.Concat(flaky, failed) {
		fmt.Println(line)
	}
	fmt.Printf("%d passed, %d failed in %.0f s\n", passed, len(failed), time.Since(begin).Seconds())
	return len(failed) == 0 && passed > 0, nil
}

// maxFlaky bounds the cases that may fail once and pass then: as scripts/gotest has it, other programs of a shared
// machine take a case's time.
const maxFlaky = 2

// isFlaky reports whether a case that failed with err is excused by its second run.
func isFlaky(err, again error) bool { return again == nil && !errors.As(err, new(wrongBytes)) }

// wrongBytes is the error of a receiver that has other bytes than were sent: it is never excused by a second run.
type wrongBytes struct{ error }

func (w wrongBytes) Unwrap() error { return w.error }

// once runs a case with its time limit.
func (b *bench) once(ctx context.Context, c testCase) error {
	limit := time.Duration(max(1, c.programs)) * b.limit
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %v", limit))
	defer cancel()
	stuck := time.AfterFunc(time.Duration(diagnosisPart*float64(limit)), func() {
		if err := b.diagnose(ctx, fileName(c.name)); err != nil {
			fmt.Printf("    no diagnosis: %v\n", err)
		}
	})
	defer stuck.Stop()
	err := c.run(ctx, b)
	if err == nil {
		return nil
	}
	// The switch's state helps to understand the failure.
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if s, e := b.daemon.client.Stats(ctx); e == nil {
		err = fmt.Errorf("%w\n    switch: %+v", err, *s)
	}
	return err
}

// recorded runs a case with a capture of all hosts' packets.
func (b *bench) recorded(ctx context.Context, c testCase) error {
	stop, err := b.captureTo(filepath.Join(b.out, fileName(c.name)+".pcap"))
	if err != nil {
		return err
	}
	return errors.Join(b.once(ctx, c), stop())
}

// fileName is a case's name as part of a file's.
func fileName(name string) string {
	return regexp.MustCompile("[^a-zA-Z0-9]+").ReplaceAllString(name, "-")
}
