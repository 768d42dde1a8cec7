// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// mpiLines runs mpi-bcast, which prints one line with ok, and fails unless the number of lines about
// groups is this.
func (b *bench) mpiLines(ctx context.Context, k *mpiKind, lines int, env []string, args ...string) error {
	out, err := b.mpi(ctx, k, env, args...)
	if err != nil {
		return err
	}
	if n := b.noteMPI(out, mpiOK, mpiGroup, mpiNoGroup); n[mpiOK] != 1 || n[mpiGroup] != lines || n[mpiNoGroup] != 0 {
		return fmt.Errorf("want one line with ok and %d about groups:\n%s", lines, out)
	}
	return b.noGroups(ctx)
}

// mpiMode runs mpi-bcast with these arguments.
func mpiMode(lines int, args ...string) func(context.Context, *bench, *mpiKind) error {
	return func(ctx context.Context, b *bench, k *mpiKind) error { return b.mpiLines(ctx, k, lines, nil, args...) }
}

func mpiSegments(ctx context.Context, b *bench, k *mpiKind) error {
	return b.mpiLines(ctx, k, 2, []string{"GLEAM_MPI_SEGMENT=100000"}, "large", "8")
}

// mpiErrors has ranks disagree: each of them gets an error.
func mpiErrors(ctx context.Context, b *bench, k *mpiKind) error {
	out, err := b.mpi(ctx, k, nil, "errors")
	if err != nil {
		return err
	}
	const report = "error at rank "
	if n := b.noteMPI(out, mpiOK, report); n[mpiOK] != 1 || n[report] != mpiStar {
		return fmt.Errorf("want one line with ok and an error at each rank:\n%s", out)
	}
	return b.noGroups(ctx)
}

// mpiBuffers has buffers that come and go at one address. Rank 0 has four for each root, each broadcast twice, one that
// is dropped once, and those of malloc.
func mpiBuffers(ctx context.Context, b *bench, k *mpiKind) error {
	const report = "gleam-mpi: buffers "
	for _, cache := range []string{"1000000", "0"} {
		out, err := b.mpirun(ctx, k, mpiStar, []string{"GLEAM_MPI_CACHE=" + cache}, "mpi-buffers-"+k.name)
		if err != nil {
			return err
		}
		n := b.noteMPI(out, mpiOK, mpiGroup, report)
		if n[mpiOK] != 1 || n[mpiGroup] != 2 || n[report] != 1 {
			return fmt.Errorf("want one line with ok, two about a group and one about buffers:\n%s", out)
		}
		if cache == "0" {
			continue
		}
		var made, found, returned int
		if _, err := fmt.Sscanf(out[strings.Index(out, report):], report+"of rank 0: %d registered, %d found registered, %d returned", &made, &found, &returned); err != nil {
			return fmt.Errorf("%w:\n%s", err, out)
		}
		const roots = 4 * mpiStar
		if made < roots+2 || made > roots+2+20 || found < roots || returned < roots+2 {
			return fmt.Errorf("%d registered, %d found and %d returned, want %d to %d, %d or more and %d or more", made, found, returned, roots+2, roots+2+20, roots, roots+2)
		}
	}
	return b.noGroups(ctx)
}

func mpiIPv6(ctx context.Context, b *bench, k *mpiKind) error {
	index, err := b.hosts[0].gidIndex(b.hosts[0].addr6)
	if err != nil {
		return err
	}
	groups := groupAddr(16, true).String() + "-" + groupAddr(47, true).String()
	return b.mpiLines(ctx, k, 2, []string{"GLEAM_MPI_GROUPS=" + groups, "GLEAM_MPI_GID_INDEX=" + strconv.Itoa(index)}, "large", "1")
}

// mpiUnkeyed has neither the switch nor the ranks authenticate.
func mpiUnkeyed(ctx context.Context, b *bench, k *mpiKind) (err error) {
	d := b.daemon
	keyed, err := os.ReadFile(d.file)
	if err != nil {
		return err
	}
	restart := func(ctx context.Context, text []byte) error {
		if err := errors.Join(d.process.Stop(10*time.Second), os.WriteFile(d.file, text, 0o644)); err != nil {
			return err
		}
		return d.start(ctx)
	}
	if err := restart(ctx, regexp.MustCompile(`(?m)^envelope: .*$`).ReplaceAll(keyed, []byte("envelope: {insecure: true}"))); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, restart(context.WithoutCancel(ctx), keyed)) }()
	return b.mpiLines(ctx, k, 2, []string{"GLEAM_MPI_KEY_FILE="}, "large", "1")
}

// killed is what mpirun says of it: Open MPI's "signal 9", and MPICH's "KILLED BY SIGNAL: 9".
var killed = regexp.MustCompile(`(?i)signal:? 9`)

// mpiDeath has a rank end by a signal while the others broadcast: mpirun ends the job.
func mpiDeath(ctx context.Context, b *bench, k *mpiKind) error {
	limited, cancel := context.WithTimeoutCause(ctx, 100*time.Second, errors.New("mpirun has not ended"))
	defer cancel()
	begin := time.Now()
	out, err := b.mpi(limited, k, nil, "die")
	switch {
	case limited.Err() != nil:
		return errors.Join(context.Cause(limited), err)
	case err == nil || !killed.MatchString(err.Error()):
		return fmt.Errorf("mpirun ended with %v, want the rank's signal:\n%s", err, out)
	case !strings.Contains(out, mpiGroup):
		return fmt.Errorf("there was no group:\n%s", out)
	}
	b.note("%v, after %.0f s", strings.SplitN(err.Error(), "\n", 2)[0], time.Since(begin).Seconds())
	// Nobody leaves the group: its lease ends it.
	return until(ctx, "the switch deletes the group", func() (bool, error) { return b.noGroups(ctx) == nil, nil })
}

func mpiRefusal(ctx context.Context, b *bench, k *mpiKind) error {
	out, err := b.mpi(ctx, k, []string{"GLEAM_MPI_GROUPS=192.0.2.1"}, "all")
	if err != nil {
		return err
	}
	if n := b.noteMPI(out, mpiOK, mpiGroup, mpiNoGroup); n[mpiOK] != 1 || n[mpiGroup] != 0 || n[mpiNoGroup] != 7 {
		return fmt.Errorf("want one line with ok, none about groups and one reason for each of seven communicators:\n%s", out)
	}
	return nil
}
