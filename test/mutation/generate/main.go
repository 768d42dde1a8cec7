// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Generate makes mutants of whole packages from their syntax: conditions negated or
// one operand short, comparisons off by one, sums with the other sign, statements left
// out. All mutants of a package are built into one test program, each behind a number
// in the environment, so that a mutant costs a run of the tests and no build. Names
// play no part in it: a rename changes no mutant. What survives the tests of its package
// is tried with those of others, for some packages (module.Suites).
//
// Mutants that no test notices are listed. Those in accepted.txt are known, each with
// the reason; the others count as survivors.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/gleam-rdma/gleam/test/mutation/module"
)

func main() {
	var o options
	flag.StringVar(&o.match, "run", "", "only mutants whose key matches this regular expression")
	flag.IntVar(&o.every, "every", 1, "one mutant of each `N`")
	flag.IntVar(&o.parallel, "parallel", 2, "mutants at a time")
	flag.IntVar(&o.checks, "checks", 20, "runs of each random test")
	flag.Float64Var(&o.least, "least", 0.95, "part of the mutants that has to be killed")
	flag.BoolVar(&o.list, "list", false, "print the mutants, and try none")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: generate [flags] package...\n\nPackages are folders of the module: mcast rocev2\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := o.run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

type options struct {
	match           string
	every, parallel int
	checks          int
	least           float64
	list            bool
	known           map[string]string
}

func (o *options) run(names []string) error {
	if o.every < 1 || o.parallel < 1 || o.checks < 1 {
		return fmt.Errorf("-every %d, -parallel %d, -checks %d: must be at least 1", o.every, o.parallel, o.checks)
	}
	match, err := regexp.Compile(o.match)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	root, err := module.Root()
	if err != nil {
		return err
	}
	if o.known, err = readAccepted(filepath.Join(root, acceptedFile)); err != nil {
		return err
	}
	bad := 0
	for _, name := range names {
		ok, err := o.one(root, filepath.Clean(name), match)
		if err != nil {
			return err
		}
		if !ok {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d packages have fewer than %.0f %% of their mutants killed", bad, 100*o.least)
	}
	return nil
}

// one tries the mutants of a package.
func (o *options) one(root, name string, match *regexp.Regexp) (bool, error) {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	start := time.Now()
	t, err := build(root, module.Suites(filepath.ToSlash(name)), dir)
	if err != nil {
		return false, err
	}
	accepted := 0
	var chosen []*site
	for i, s := range t.sites {
		if i%o.every != 0 || !match.MatchString(s.key()) {
			continue
		}
		if o.known[s.key()] != "" && !o.list {
			accepted++
			continue
		}
		chosen = append(chosen, s)
	}
	if o.list {
		for _, s := range chosen {
			fmt.Printf("%s:%d: %s\n", s.file, s.line, s.key())
		}
		return true, nil
	}
	if err := t.suites[0].ready(o.checks); err != nil {
		return false, err
	}
	fmt.Printf("%s: %d mutants, of which %d are tried; built after %v, its tests take %v\n", name, len(t.sites), len(chosen),
		time.Since(start).Round(time.Second), t.suites[0].usual.Round(100*time.Millisecond))
	killed := 0
	for r := range t.tryAll(chosen, o.parallel, o.checks) {
		switch {
		case r.err != nil:
			return false, r.err
		case r.killed:
			killed++
		default:
			fmt.Printf("SURVIVED  %s:%d: %s\n", r.file, r.line, r.key())
		}
	}
	tried := len(chosen)
	score := 1.0
	if tried > 0 {
		score = float64(killed) / float64(tried)
	}
	fmt.Printf("%s: %d of %d killed, %.1f %%; %d more make no difference; %v\n", name, killed, tried, 100*score, accepted,
		time.Since(start).Round(time.Second))
	return score >= o.least, nil
}
