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
	"strconv"
	"strings"
	"time"
)

// mpiCases run programs of MPI, which are not changed, with libgleam-mpi preloaded. They
// need a machine with Open MPI: test/rxe/run.sh --mpi.
func mpiCases() (cs []testCase) {
	if _, err := exec.LookPath("mpirun.openmpi"); err != nil {
		return nil
	}
	return []testCase{
		{name: "MPI_Bcast by groups: datatypes, roots, sizes, communicators", run: mpiConformance},
		{name: "MPI_Bcast by groups: several ranks of a host", run: mpiHosts},
		{name: "MPI_Bcast by a group: bytes on the root's link", run: mpiLink},
		{name: "MPI_Bcast by a group and by the MPI, 5 Mbit/s", long: true, run: mpiSpeed},
		{name: "MPI_Bcast by a group: 8 MiB in segments", run: mpiLarge("8", "GLEAM_MPI_SEGMENT=100000")},
		{name: "MPI_Bcast by a group: 64 MiB", long: true, run: mpiLarge("64")},
		{name: "MPI_Bcast by a group: a rank is killed", run: mpiDeath},
		{name: "MPI_Bcast without a group: the reason is said once", run: mpiRefusal},
	}
}

const (
	mpiStar     = 4
	mpiLinkRate = "5mbit" // slower than the emulated machine
	mpiFaster   = 1.3     // the aim is 2.5, and is missed: docs/MPI.md
)

// mpi runs mpi-bcast with one rank at each of four hosts, and returns what they said.
func (b *bench) mpi(ctx context.Context, env []string, args ...string) (out string, err error) {
	return b.mpiRanks(ctx, mpiStar, env, args...)
}

// mpiRanks distributes its ranks to the hosts in turn.
func (b *bench) mpiRanks(ctx context.Context, ranks int, env []string, args ...string) (out string, err error) {
	return b.mpirun(ctx, ranks, env, append([]string{"mpi-bcast-openmpi"}, args...)...)
}

// mpirun runs a program, whose ranks it distributes to the hosts in turn, and returns what they said.
func (b *bench) mpirun(ctx context.Context, ranks int, env []string, program ...string) (out string, err error) {
	err = b.asHosts(mpiStar, func(hosts []*host) error {
		key := filepath.Join(b.state, "mpi-key")
		if err := os.WriteFile(key, fmt.Appendf(nil, "%x\n", auth.Keys[1]), 0o600); err != nil {
			return err
		}
		index, err := hosts[0].gidIndex(hosts[0].addr4)
		if err != nil {
			return err
		}
		gid := strconv.Itoa(index)
		library, err := exec.LookPath("libgleam-mpi-openmpi.so")
		if err != nil {
			return err
		}
		words := append([]string{"--mca", "pml", "ucx", "--mca", "osc", "^ucx", "-n", strconv.Itoa(ranks), "mpi-rank.sh"}, program...)
		c := exec.CommandContext(ctx, "mpirun.openmpi", words...)
		c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
		c.WaitDelay = 10 * time.Second
		c.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1",
			"OMPI_MCA_plm=isolated", "UCX_TLS=rc_verbs,ud_verbs,self", "UCX_UD_VERBS_ETH_DGID_CHECK=n", "UCX_UD_TIMEOUT=20s", "UCX_IB_GID_INDEX="+gid,
			"LIBRARY="+library, "HOSTS="+strconv.Itoa(mpiStar), "GLEAM_MPI_GROUPS="+groupAddr(16, false).String()+"-"+groupAddr(47, false).String(),
			"GLEAM_MPI_KEY_FILE="+key, "GLEAM_MPI_GID_INDEX="+gid, "GLEAM_MPI_TIMEOUT=18", "GLEAM_MPI_VERBOSE=1")
		c.Env = append(c.Env, env...)
		text, err := c.CombinedOutput()
		out = string(text)
		if err != nil {
			err = fmt.Errorf("mpirun: %w\n%s", err, out)
		}
		return err
	})
	return out, err
}

// noteMPI notes the lines of output that begin with one of words, and returns how many there
// are of each.
func (b *bench) noteMPI(out string, words ...string) map[string]int {
	n := make(map[string]int)
	for line := range strings.Lines(out) {
		for _, w := range words {
			if strings.HasPrefix(line, w) {
				n[w]++
				b.note("%s", strings.TrimSpace(line))
			}
		}
	}
	return n
}

const (
	mpiOK      = "ok: "
	mpiGroup   = "gleam-mpi: group "
	mpiNoGroup = "gleam-mpi: no group: "
	mpiIbcast  = "gleam-mpi: MPI_Ibcast "
	mpiLinkIs  = "link: "
)

func mpiConformance(ctx context.Context, b *bench) error {
	out, err := b.mpi(ctx, nil, "all")
	if err != nil {
		return err
	}
	n := b.noteMPI(out, mpiOK, mpiGroup, mpiNoGroup, mpiIbcast)
	// MPI_COMM_WORLD, two halves, it backwards and three duplicates: a line at the beginning
	// and one at the end of each.
	if n[mpiOK] != 1 || n[mpiGroup] != 14 || n[mpiNoGroup] != 0 || n[mpiIbcast] != 1 {
		return fmt.Errorf("want one line with ok, one about MPI_Ibcast and 14 about groups:\n%s", out)
	}
	return b.noGroups(ctx)
}

// mpiHosts has two ranks at two of the hosts, and one at the others.
func mpiHosts(ctx context.Context, b *bench) error {
	out, err := b.mpiRanks(ctx, mpiStar+2, nil, "hosts", strconv.Itoa(mpiStar))
	if err != nil {
		return err
	}
	n := b.noteMPI(out, mpiOK, mpiGroup, mpiNoGroup)
	// MPI_COMM_WORLD and two halves have groups; two communicators are of one host.
	if n[mpiOK] != 1 || n[mpiGroup] != 6 || n[mpiNoGroup] != 2 {
		return fmt.Errorf("want one line with ok, 6 about groups, and two reasons for none:\n%s", out)
	}
	return b.noGroups(ctx)
}

// noGroups fails if the switch has groups.
func (b *bench) noGroups(ctx context.Context) error {
	groups, err := b.daemon.client.Groups(ctx)
	if err == nil && len(groups) > 0 {
		err = fmt.Errorf("the switch still has %d groups after MPI_Finalize", len(groups))
	}
	return err
}

// mpiOnLink broadcasts 8 messages of 1 MiB from host 1 and returns the bytes on its link for
// each byte of them, and the time of one.
func (b *bench) mpiOnLink(ctx context.Context, env ...string) (ratio, ms float64, err error) {
	out, err := b.mpi(ctx, env, "link", "/sys/class/net/"+b.hosts[0].link+"/statistics/tx_bytes")
	if err != nil {
		return 0, 0, err
	}
	if n := b.noteMPI(out, mpiLinkIs, mpiGroup); n[mpiLinkIs] != 1 {
		return 0, 0, fmt.Errorf("want one line about the link:\n%s", out)
	}
	_, rest, _ := strings.Cut(out, mpiLinkIs)
	_, err = fmt.Sscanf(rest, "%g bytes for each byte, %g ms", &ratio, &ms)
	return ratio, ms, err
}

func mpiLink(ctx context.Context, b *bench) error {
	ratio, _, err := b.mpiOnLink(ctx)
	if err == nil && (ratio > 1.1 || ratio < 1) {
		err = fmt.Errorf("the root's link carries %.3f bytes for each byte, want 1 to 1.1", ratio)
	}
	return err
}

// mpiSpeed compares the group with the MPI's own broadcast, in turn, where the hosts' links
// are the bottleneck and not the emulated machine.
func mpiSpeed(ctx context.Context, b *bench) (err error) {
	for _, h := range b.hosts[:mpiStar] {
		if err := h.slow(mpiLinkRate); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, h.fast()) }()
	}
	var own, group float64
	for range 2 {
		_, ms, err := b.mpiOnLink(ctx, "LIBRARY=")
		if err != nil {
			return err
		}
		own += ms
		if _, ms, err = b.mpiOnLink(ctx); err != nil {
			return err
		}
		group += ms
	}
	b.note("1 MiB to 3 ranks at %s: %.0f ms by the MPI, %.0f ms by the group: %.2f", mpiLinkRate, own/2, group/2, own/group)
	if own/group < mpiFaster {
		return fmt.Errorf("the group is %.2f times as fast, want %v or more", own/group, mpiFaster)
	}
	return nil
}

// mpiLarge broadcasts one message of size MiB from each of two roots.
func mpiLarge(size string, env ...string) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		out, err := b.mpi(ctx, env, "large", size)
		if err != nil {
			return err
		}
		if n := b.noteMPI(out, mpiOK, mpiGroup); n[mpiOK] != 1 || n[mpiGroup] != 2 {
			return fmt.Errorf("want one line with ok and two about the group:\n%s", out)
		}
		return nil
	}
}

// mpiDeath has a rank end by a signal while the others broadcast: mpirun ends the job.
func mpiDeath(ctx context.Context, b *bench) error {
	limited, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("mpirun has not ended"))
	defer cancel()
	out, err := b.mpi(limited, nil, "die")
	switch {
	case limited.Err() != nil:
		return errors.Join(context.Cause(limited), err)
	case err == nil || !strings.Contains(err.Error(), "signal 9"):
		return fmt.Errorf("mpirun ended with %v, want the rank's signal:\n%s", err, out)
	case !strings.Contains(out, mpiGroup):
		return fmt.Errorf("there was no group:\n%s", out)
	}
	b.note("%v", strings.SplitN(err.Error(), "\n", 2)[0])
	// Nobody leaves the group: its lease ends it.
	return until(ctx, "the switch deletes the group", func() (bool, error) { return b.noGroups(ctx) == nil, nil })
}

func mpiRefusal(ctx context.Context, b *bench) error {
	out, err := b.mpi(ctx, []string{"GLEAM_MPI_GROUPS=192.0.2.1"}, "all")
	if err != nil {
		return err
	}
	if n := b.noteMPI(out, mpiOK, mpiGroup, mpiNoGroup); n[mpiOK] != 1 || n[mpiGroup] != 0 || n[mpiNoGroup] != 7 {
		return fmt.Errorf("want one line with ok, none about groups and one reason for each of seven communicators:\n%s", out)
	}
	return nil
}
