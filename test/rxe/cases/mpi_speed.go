// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// mpiTimes is a line of gleam-mpi-bench.
type mpiTimes struct {
	bytes            int
	avg, least, most float64 // us
	ratio            float64 // bytes on the root's link for each byte
}

// mpiBench times a collective of least to most bytes; its root is at host 1.
func (b *bench) mpiBench(ctx context.Context, k *mpiKind, collective string, ranks, least, most, iterations int, env ...string) (all []mpiTimes, err error) {
	out, err := b.mpirun(ctx, k, ranks, env, "gleam-mpi-bench-"+k.name, "-c", collective, "-m", fmt.Sprintf("%d:%d", least, most), "-i", strconv.Itoa(iterations),
		"-f", "/sys/class/net/"+b.hosts[0].link+"/statistics/tx_bytes")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		var t mpiTimes
		var n int
		if _, err := fmt.Sscan(line, &t.bytes, &t.avg, &t.least, &t.most, &n, &t.ratio); err == nil {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no times:\n%s", out)
	}
	b.noteMPI(out, mpiNoGroup)
	return all, nil
}

// mpiSpeed compares broadcasts by a group with a collective of the MPI's own, in turn, where the
// hosts' links are the bottleneck and not the emulated machine. Ranks of one host may use shared
// memory.
type mpiSpeed struct {
	ranks, least, most, iterations, rounds int

	own, group string // collectives of gleam-mpi-bench, by the MPI alone and with groups; "": bcast

	// Bounds of the last ratio of their times.
	openMPI, mpich ratios
}

// ratios is from low to high; 0: no bound.
type ratios struct{ low, high float64 }

var (
	faster = ratios{low: 1}
	slower = ratios{high: 1.2} // docs/MPI.md leaves it to the MPI
)

var mpiSpeeds = []struct {
	name string
	mpiSpeed
}{
	{"MPI_Bcast by a group and by the MPI, 5 Mbit/s", mpiSpeed{ranks: mpiStar, least: 1 << 20, most: 1 << 20, iterations: 2, rounds: 2, openMPI: ratios{low: 2.5}, mpich: ratios{low: 1.8}}},
	{"MPI_Bcast by a group and by the MPI, sizes, 5 Mbit/s", mpiSpeed{ranks: mpiStar, least: 1 << 10, most: 1 << 18, iterations: 8, rounds: 1, openMPI: faster, mpich: faster}},
	{"MPI_Bcast by a group and by the MPI, 8 ranks, 5 Mbit/s", mpiSpeed{ranks: 2 * mpiStar, least: 1 << 18, most: 1 << 18, iterations: 8, rounds: 2, openMPI: faster, mpich: faster}},
	{"MPI_Ibcast by a group and by the MPI, 5 Mbit/s", mpiSpeed{ranks: mpiStar, own: "ibcast", group: "ibcast", least: 1 << 12, most: 1 << 20, iterations: 3, rounds: 1, openMPI: faster, mpich: faster}},
	{"MPI_Allgather by the MPI and by broadcasts in turn, 5 Mbit/s", mpiSpeed{ranks: mpiStar, own: "allgather", group: "turns", least: 1 << 12, most: 1 << 20, iterations: 4, rounds: 1, openMPI: faster, mpich: slower}},
	{"MPI_Allreduce by the MPI and by a reduction and a broadcast, 5 Mbit/s", mpiSpeed{ranks: mpiStar, own: "allreduce", group: "reduce", least: 1 << 12, most: 1 << 18, iterations: 4, rounds: 1, openMPI: slower, mpich: slower}},
}

func (s mpiSpeed) compare(ctx context.Context, b *bench, k *mpiKind) (err error) {
	for _, h := range b.hosts[:mpiStar] {
		if err := h.narrow(mpiLinkRate); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, h.fast()) }()
	}
	tls := "UCX_TLS=rc_verbs,ud_verbs,self"
	if s.ranks > mpiStar {
		tls += ",posix"
	}
	var own, group []mpiTimes
	for range s.rounds {
		for _, r := range []struct {
			to         *[]mpiTimes
			collective string
			env        []string
		}{{&own, s.own, []string{tls, "LIBRARY="}}, {&group, s.group, []string{tls, "GLEAM_MPI_MIN=1", "GLEAM_MPI_IBCAST_MIN=1"}}} {
			all, err := b.mpiBench(ctx, k, cmp.Or(r.collective, "bcast"), s.ranks, s.least, s.most, s.iterations, r.env...)
			if err != nil {
				return err
			}
			*r.to = append(*r.to, all...)
			if err := b.noteDropped(r.env[1]); err != nil {
				return err
			}
		}
	}
	n := len(own) / s.rounds
	b.note("%9s %34s %34s %6s", "bytes", "the MPI: avg, max ms, bytes/byte", "group: avg, max ms, bytes/byte", "ratio")
	ratio := 0.0
	for i := range n {
		o, g := mean(own[i:], n), mean(group[i:], n)
		ratio = o.most / g.most
		b.note("%9d %12.2f %12.2f %8.3f %12.2f %12.2f %8.3f %6.2f", o.bytes, o.avg/1000, o.most/1000, o.ratio, g.avg/1000, g.most/1000, g.ratio, ratio)
	}
	want := s.openMPI
	if k == mpich {
		want = s.mpich
	}
	if ratio < want.low {
		return fmt.Errorf("the group is %.2f times as fast, want %v or more", ratio, want.low)
	}
	if want.high != 0 && ratio > want.high {
		return fmt.Errorf("%s by groups is %.2f times as fast as by the MPI: docs/MPI.md leaves it to the MPI", s.own, ratio)
	}
	return nil
}

// noteDropped notes how many packets the hosts' queues have dropped so far. Any would be a fault of the test: an
// adapter drops none of its own.
func (b *bench) noteDropped(after string) error {
	n, err := b.droppedAll()
	b.note("%d packets dropped by the hosts' queues after %s", n, after)
	return err
}

// mean is that of every n-th.
func mean(all []mpiTimes, n int) (t mpiTimes) {
	rounds := float64((len(all) + n - 1) / n)
	t.bytes = all[0].bytes
	for i := 0; i < len(all); i += n {
		t.avg += all[i].avg / rounds
		t.most += all[i].most / rounds
		t.ratio += all[i].ratio / rounds
	}
	return t
}
