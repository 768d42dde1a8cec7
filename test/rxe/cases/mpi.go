// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mpiKind is an MPI, as Debian has it.
type mpiKind struct {
	name   string   // the name as in its programs' names
	suffix string   // the suffix of its cases' names
	words  []string // the words before those of all MPIs
}

var (
	openMPI = &mpiKind{name: "openmpi", words: []string{"--mca", "pml", "ucx", "--mca", "osc", "^ucx"}}
	mpich   = &mpiKind{name: "mpich", suffix: ", MPICH"}
)

// mpiCases run programs of MPI, which are not changed, with libgleam-mpi preloaded. They
// need a machine with the MPI: test/rxe/run.sh --mpi.
func mpiCases() (cs []testCase) {
	for _, k := range []*mpiKind{openMPI, mpich} {
		if _, err := exec.LookPath("mpirun." + k.name); err != nil {
			continue
		}
		for _, c := range []struct {
			name string
			run  func(context.Context, *bench, *mpiKind) error
			long bool
			mpi  bool // only with --mpi
		}{
			{name: "MPI_Bcast by groups: datatypes, roots, sizes, communicators", run: mpiConformance},
			{name: "MPI_Bcast by groups: several ranks of a host", mpi: true, run: mpiHosts},
			{name: "MPI_Bcast by groups: a program in Fortran", mpi: k == mpich, run: mpiFortran},
			{name: "MPI_Ibcast by groups: orders, ways to wait, beside other collectives", mpi: k == mpich, run: mpiIbcast},
			{name: "MPI_Ibcast by groups: MPI_ERRORS_RETURN", mpi: true, run: mpiIbcastErrors},
			{name: "MPI_Ibcast by groups: MPI_THREAD_MULTIPLE", mpi: true, run: mpiIbcastThreads},
			{name: "MPI_Allgather and MPI_Allgatherv by broadcasts in turn", mpi: true, run: mpiAllgather},
			{name: "MPI_Allreduce by a reduction and a broadcast", mpi: true, run: mpiAllreduce},
			{name: "MPI_Bcast by a group: buffers stay registered until their memory is returned", mpi: true, run: mpiBuffers},
			{name: "MPI_Bcast by a group: bytes on the root's link", mpi: k == mpich, run: mpiLink},
			{name: "MPI_Bcast by a group: 8 MiB in segments", mpi: true, run: mpiSegments},
			{name: "MPI_Bcast by a group: 64 MiB", long: true, run: mpiMode(2, "large", "64")},
			{name: "MPI_Bcast by groups: MPI_ERRORS_RETURN", mpi: true, run: mpiErrors},
			{name: "MPI_Bcast by groups: MPI_THREAD_MULTIPLE", mpi: true, run: mpiMode(6, "threads")},
			{name: "MPI_Bcast by a group: IPv6", mpi: true, run: mpiIPv6},
			{name: "MPI_Bcast by a group: no key", mpi: true, run: mpiUnkeyed},
			{name: "MPI_Bcast by a group: a rank is killed", mpi: true, run: mpiDeath},
			{name: "MPI_Bcast without a group: the reason is said once", mpi: true, run: mpiRefusal},
		} {
			cs = append(cs, testCase{name: c.name + k.suffix, long: c.long, mpi: c.mpi, run: func(ctx context.Context, b *bench) error { return c.run(ctx, b, k) }})
		}
		for _, s := range mpiSpeeds {
			cs = append(cs, testCase{name: s.name + k.suffix, long: true, programs: 2 * s.rounds, run: func(ctx context.Context, b *bench) error { return s.compare(ctx, b, k) }})
		}
		for _, s := range mpiSuites {
			cs = append(cs, testCase{name: "MPICH's own tests of " + s.of + k.suffix, mpi: true, programs: len(s.programs), run: func(ctx context.Context, b *bench) error { return s.run(ctx, b, k) }})
		}
	}
	return cs
}

const (
	mpiStar     = 4       // hosts
	mpiLinkRate = "5mbit" // slower than the emulated machine
)

// mpi runs mpi-bcast with one rank at each of four hosts, and returns what they said.
func (b *bench) mpi(ctx context.Context, k *mpiKind, env []string, args ...string) (out string, err error) {
	return b.mpirun(ctx, k, mpiStar, env, append([]string{"mpi-bcast-" + k.name}, args...)...)
}

// mpirun runs a program in ranks that are distributed to four hosts in turn, and returns what
// they said.
func (b *bench) mpirun(ctx context.Context, k *mpiKind, ranks int, env []string, program ...string) (out string, err error) {
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
		library, err := exec.LookPath("libgleam-mpi-" + k.name + ".so")
		if err != nil {
			return err
		}
		words := slices.Concat(k.words, []string{"-n", strconv.Itoa(ranks), "mpi-rank.sh"}, program)
		c := exec.CommandContext(ctx, "mpirun."+k.name, words...)
		c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
		c.WaitDelay = 10 * time.Second
		c.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1",
			"OMPI_MCA_plm=isolated", "MPIR_CVAR_POLLS_BEFORE_YIELD=1", "UCX_TLS=rc_verbs,ud_verbs,self", "UCX_UD_VERBS_ETH_DGID_CHECK=n", "UCX_UD_TIMEOUT=20s", "UCX_IB_GID_INDEX="+gid,
			"LIBRARY="+library, "HOSTS="+strconv.Itoa(mpiStar), "GLEAM_MPI_GROUPS="+groupAddr(16, false).String()+"-"+groupAddr(47, false).String(),
			"GLEAM_MPI_KEY_FILE="+key, "GLEAM_MPI_GID_INDEX="+gid, "GLEAM_MPI_TIMEOUT=18", "GLEAM_MPI_MIN=4096", "GLEAM_MPI_IBCAST_MIN=4096", "GLEAM_MPI_VERBOSE=1")
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
	mpiOwn     = "gleam-mpi: MPI_Ibcast is the MPI's own: "
)

func mpiConformance(ctx context.Context, b *bench, k *mpiKind) error {
	out, err := b.mpi(ctx, k, nil, "all")
	if err != nil {
		return err
	}
	n := b.noteMPI(out, mpiOK, mpiGroup, mpiNoGroup, mpiOwn)
	// MPI_COMM_WORLD, two halves, it backwards and three duplicates: a line at the beginning
	// and one at the end of each.
	if n[mpiOK] != 1 || n[mpiGroup] != 14 || n[mpiNoGroup] != 0 || n[mpiOwn] != 0 {
		return fmt.Errorf("want one line with ok and 14 about groups:\n%s", out)
	}
	return b.noGroups(ctx)
}

// mpiFortran runs a program that has MPI_Bcast and MPI_Ibcast of mpif.h, of the module mpi and of mpi_f08.
func mpiFortran(ctx context.Context, b *bench, k *mpiKind) error {
	out, err := b.mpirun(ctx, k, mpiStar, nil, "mpi-fortran-"+k.name)
	if err != nil {
		return err
	}
	n := b.noteMPI(out, mpiOK, mpiGroup, mpiNoGroup)
	// Each root has three broadcasts and two of MPI_Ibcast in MPI_COMM_WORLD, and another communicator has one.
	if n[mpiOK] != 1 || n[mpiGroup] != 4 || n[mpiNoGroup] != 0 || !strings.Contains(out, fmt.Sprintf("of %d ranks: %d broadcasts", mpiStar, 5*mpiStar)) ||
		!strings.Contains(out, fmt.Sprintf("; %d by MPI_Ibcast", 2*mpiStar)) {
		return fmt.Errorf("want one line with ok and four about groups, with all broadcasts:\n%s", out)
	}
	return b.noGroups(ctx)
}

// mpiHosts has two ranks at two of the hosts, and one at the others.
func mpiHosts(ctx context.Context, b *bench, k *mpiKind) error {
	out, err := b.mpirun(ctx, k, mpiStar+2, nil, "mpi-bcast-"+k.name, "hosts", strconv.Itoa(mpiStar))
	if err != nil {
		return err
	}
	n := b.noteMPI(out, mpiOK, mpiGroup, mpiNoGroup, mpiOwn)
	// MPI_COMM_WORLD and two halves have groups, of which the first and one half have two ranks of a host; two communicators are of one host.
	if n[mpiOK] != 1 || n[mpiGroup] != 6 || n[mpiNoGroup] != 2 || n[mpiOwn] == 0 {
		return fmt.Errorf("want one line with ok, 6 about groups, and two reasons for none:\n%s", out)
	}
	return b.noGroups(ctx)
}

// mpiAllgather counts the broadcasts of MPI_COMM_WORLD. Blocks of 4000 bytes and more go by its group: of
// four ranks in seven gathers, and of three, as rank 0's is empty, in six.
func mpiAllgather(ctx context.Context, b *bench, k *mpiKind) error {
	out, err := b.mpirun(ctx, k, mpiStar, []string{"GLEAM_MPI_ALLGATHER_MIN=4000"}, "mpi-allgather-"+k.name)
	if err != nil {
		return err
	}
	n := b.noteMPI(out, mpiOK, mpiGroup, mpiNoGroup)
	if n[mpiOK] != 1 || n[mpiGroup] != 4 || n[mpiNoGroup] != 0 || !strings.Contains(out, fmt.Sprintf("of %d ranks: %d broadcasts", mpiStar, 7*mpiStar+6*(mpiStar-1))) {
		return fmt.Errorf("want one line with ok, and four about groups, with all broadcasts:\n%s", out)
	}
	return b.noGroups(ctx)
}

// mpiAllreduce counts the broadcasts of MPI_COMM_WORLD: those of two sizes in two ways, and two more, are within the bounds.
func mpiAllreduce(ctx context.Context, b *bench, k *mpiKind) error {
	out, err := b.mpirun(ctx, k, mpiStar, []string{"GLEAM_MPI_ALLREDUCE_MIN=16000", "GLEAM_MPI_ALLREDUCE_MAX=200000"}, "mpi-allreduce-"+k.name)
	if err != nil {
		return err
	}
	n := b.noteMPI(out, mpiOK, mpiGroup, mpiNoGroup)
	if n[mpiOK] != 1 || n[mpiGroup] != 4 || n[mpiNoGroup] != 0 || !strings.Contains(out, fmt.Sprintf("of %d ranks: 6 broadcasts", mpiStar)) {
		return fmt.Errorf("want one line with ok, and four about groups, with all broadcasts:\n%s", out)
	}
	return b.noGroups(ctx)
}

// mpiIbcast counts the broadcasts that were begun and that groups have carried: of MPI_COMM_WORLD, of two duplicates, and of
// one that has its group by MPI_Barrier.
func mpiIbcast(ctx context.Context, b *bench, k *mpiKind) error {
	out, err := b.mpirun(ctx, k, mpiStar, nil, "mpi-ibcast-"+k.name, "all")
	if err != nil {
		return err
	}
	n := b.noteMPI(out, mpiOK, mpiGroup, mpiNoGroup, mpiOwn)
	// Of the 24 of each of ten orders, 21 are long enough.
	world := 10*21 + 4*3 + mpiStar*(4+1+2)
	if n[mpiOK] != 1 || n[mpiGroup] != 8 || n[mpiNoGroup] != 0 || n[mpiOwn] != 0 {
		return fmt.Errorf("want one line with ok, and 8 about groups:\n%s", out)
	}
	for begun, want := range map[int]int{world: 1, 3: 2, 2: 1} {
		if got := strings.Count(out, fmt.Sprintf("; %d by MPI_Ibcast", begun)); got != want {
			return fmt.Errorf("%d groups have carried %d broadcasts of MPI_Ibcast, want %d:\n%s", got, begun, want, out)
		}
	}
	return b.noGroups(ctx)
}

// mpiIbcastErrors has ranks disagree about the bytes of an MPI_Ibcast.
func mpiIbcastErrors(ctx context.Context, b *bench, k *mpiKind) error {
	out, err := b.mpirun(ctx, k, mpiStar, nil, "mpi-ibcast-"+k.name, "errors")
	if err != nil {
		return err
	}
	const report = "error at rank "
	if n := b.noteMPI(out, mpiOK, report); n[mpiOK] != 1 || n[report] != mpiStar {
		return fmt.Errorf("want one line with ok and one of each rank:\n%s", out)
	}
	return b.noGroups(ctx)
}

func mpiIbcastThreads(ctx context.Context, b *bench, k *mpiKind) error {
	out, err := b.mpirun(ctx, k, mpiStar, nil, "mpi-ibcast-"+k.name, "threads")
	if err != nil {
		return err
	}
	const threads = 3
	if n := b.noteMPI(out, mpiOK, mpiGroup); n[mpiOK] != 1 || n[mpiGroup] != 2*threads || strings.Count(out, "; 210 by MPI_Ibcast") != threads {
		return fmt.Errorf("want one line with ok, and %d about groups with 210 broadcasts each:\n%s", 2*threads, out)
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

func mpiLink(ctx context.Context, b *bench, k *mpiKind) error {
	all, err := b.mpiBench(ctx, k, "bcast", mpiStar, 1<<20, 1<<20, 8)
	if err != nil {
		return err
	}
	b.note("%.4f bytes on the root's link for each byte, %.1f ms for each MiB", all[0].ratio, all[0].most/1000)
	if r := all[0].ratio; r > 1.1 || r < 1 {
		return fmt.Errorf("the root's link carries %.3f bytes for each byte, want 1 to 1.1", r)
	}
	return nil
}
