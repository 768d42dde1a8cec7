// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// mpiSuite is some of MPICH's own tests, which run one after the other.
type mpiSuite struct {
	of       string
	programs []string
}

var mpiSuites = []mpiSuite{
	{"broadcasts", []string{"bcasttest", "bcast", "bcastzerotype", "icbcast", "p_bcast", "nonblocking", "nonblocking2", "longuser"}},
	{"MPI_Allgather and MPI_Allgatherv", []string{"allgather2", "allgather3", "allgatherv2", "allgatherv3", "allgather_struct", "coll2", "coll5", "coll6"}},
	{"MPI_Allreduce", []string{"allred2", "allred3", "allred4", "allred5", "allred6", "opsum", "coll8"}},
}

// Programs of MPICH's own tests that want a divisor of ten as ranks, so that one of the hosts has two, or words.
var (
	suiteRanks = map[string]int{"coll2": 5, "coll6": 5}
	suiteWords = map[string]string{"bcast": "-type=MPI_INT -count=4000 -seed=7 -testsize=3 -evenmemtype=host -oddmemtype=host"}
)

// run runs the programs, each in four ranks, with groups for all collectives that libgleam-mpi has. Those that do not
// compile for this MPI are absent: host/mpi/test/mpich/Makefile.
func (s mpiSuite) run(ctx context.Context, b *bench, k *mpiKind) error {
	broadcasts := 0
	for _, p := range s.programs {
		name := "mpich-" + p + "-" + k.name
		if _, err := exec.LookPath(name); err != nil && k != mpich {
			continue
		}
		begin := time.Now()
		words := append([]string{name}, strings.Fields(suiteWords[p])...)
		out, err := b.mpirun(ctx, k, cmp.Or(suiteRanks[p], mpiStar), []string{"GLEAM_MPI_MIN=1", "GLEAM_MPI_IBCAST_MIN=1", "GLEAM_MPI_ALLGATHER_MIN=1", "GLEAM_MPI_ALLREDUCE_MIN=1"}, words...)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		if strings.Count(out, " No Errors\n") != 1 {
			return fmt.Errorf("%s has not said that there are no errors:\n%s", p, out)
		}
		n := 0
		for _, m := range groupEnd.FindAllStringSubmatch(out, -1) {
			one, err := strconv.Atoi(m[1])
			if err != nil {
				return err
			}
			n += one
		}
		b.note("%-16s %5.1f s, %d broadcasts by groups", p, time.Since(begin).Seconds(), n)
		broadcasts += n
	}
	if broadcasts == 0 {
		return errors.New("no program had a broadcast by a group")
	}
	return b.noGroups(ctx)
}

// groupEnd is what libgleam-mpi says of a group that ends.
var groupEnd = regexp.MustCompile(`(?m)^` + mpiGroup + `.*: (\d+) broadcasts`)
