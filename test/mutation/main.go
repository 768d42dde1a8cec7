// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Mutants checks that the tests notice mistakes. It builds the module with one small
// mistake at a time, a mutant, runs the tests of the package with the mistake, and prints
// the test that failed. It fails if a mutant survives, or no longer fits the code.
// The tests of each package declare its mistakes: see the package mutant.
//
// The tree stays unchanged: the mistake is in a copy of a file, by which go's -overlay
// replaces the original.
package main

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/test/mutation/module"
)

func main() {
	name := flag.String("run", "", "only mutants whose name, rule, package or function (Type.Method) matches this regular expression")
	every := flag.Int("every", 1, "one mutant of `N` or so")
	sample := flag.Uint("sample", 0, "the `number` of the sample that -every takes: numbers 0 to N-1 have all mutants")
	parallel := flag.Int("parallel", 2, "mutants at a time")
	verbose := flag.Bool("v", false, "run all tests, and name each that notices; else the first ends the run")
	flag.Parse()
	if err := run(*name, *every, *sample, *parallel, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(name string, every int, sample uint, parallel int, verbose bool) error {
	if parallel < 1 || every < 1 {
		return fmt.Errorf("-parallel %d, -every %d: must be at least 1", parallel, every)
	}
	match, err := regexp.Compile(name)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	root, err := module.Root()
	if err != nil {
		return err
	}
	ms, err := declared(root)
	if err != nil {
		return err
	}
	var chosen []mutant
	for _, m := range ms {
		if slices.ContainsFunc(m.words(), match.MatchString) && sampled(m, every, sample) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("-run %q -every %d: no such mutant", name, every)
	}
	start := time.Now()
	killed, bad, tried := 0, 0, len(chosen)
	for r := range runAll(&sources{root: root, limits: usual, every: verbose}, chosen, parallel) {
		fmt.Println(r.line())
		switch {
		case r.err != nil:
			bad++
		case r.skipped:
			tried--
		case len(r.killers) > 0:
			killed++
		}
	}
	fmt.Printf("%d/%d killed in %v\n", killed, tried, time.Since(start).Round(time.Second))
	if tried < len(chosen) {
		fmt.Printf("%d were not tried: they need root\n", len(chosen)-tried)
	}
	if killed < tried {
		return fmt.Errorf("%d live on, %d do not fit the code or do not build", tried-killed-bad, bad)
	}
	return nil
}

// sampled reports whether the sample of one mutant in every with that number has m. It depends on the
// mutant alone: a new one does not replace those of a sample.
func sampled(m mutant, every int, sample uint) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(m.dir + "\x00" + m.name)) // never fails
	return h.Sum32()%uint32(every) == uint32(sample%uint(every))
}
