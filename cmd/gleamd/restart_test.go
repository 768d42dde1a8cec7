// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/hostgroup"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// startRestartable starts a gleamd that keeps its groups, with a group of three hosts. more
// are further lines of its configuration.
func startRestartable(t *testing.T, more string) (*process, *hostgroup.Group) {
	t.Helper()
	p := &process{star: labtest.Star(t, lab.StarConfig{Hosts: 3})}
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) { // gleamd becomes another user
		_ = os.Chmod(d, 0o755)
	}
	p.file, p.socket = filepath.Join(dir, "gleamd.yaml"), filepath.Join(dir, "run", "s.sock")
	text := p.star.Config() + fmt.Sprintf("envelope: {insecure: true}\napi: {socket: %s}\nstate: %s\numem: {frames: 8192}\nrings: {rx: 512, tx: 512, fill: 512, completion: 512}\n%s", p.socket, state, more)
	if err := os.WriteFile(p.file, []byte(labtest.WithFastPath(text, true)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.client = api.Dial(p.socket)
	t.Cleanup(p.client.Close)
	p.restart(t)
	t.Cleanup(func() {
		n, _ := testbed.FastPackets(context.Background(), p.client)
		labtest.CountFast(n)
	})
	return p, hostgroup.New(t, p.star, p.client)
}

// restartTimes are the parts of one restart during a transfer.
type restartTimes struct {
	end   time.Duration // the time from the signal until the process is gone
	start time.Duration // the time from then on until gleamd answers by its API
	gap   time.Duration // the longest time between two completions
}

// Two members send in turn while gleamd restarts at any moment, by SIGTERM and by kill -9. All
// bytes arrive, none is complete before, and no queue pair is reset. GLEAM_RESTARTS is the
// number of restarts.
func TestTransfersGoOnAfterRestarts(t *testing.T) {
	p, hosts := startRestartable(t, "")
	times := map[syscall.Signal][]restartTimes{}
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	if n, err := strconv.Atoi(os.Getenv("GLEAM_RESTARTS")); err == nil {
		rounds = n
	}
	for round := range rounds {
		how := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[round%2]
		from := rand.IntN(2)
		done, ready := make(chan struct{}), make(chan struct{})
		delay := time.Duration(rand.IntN(30)) * time.Millisecond
		var x restartTimes
		go func() {
			defer close(ready)
			time.Sleep(delay)
			began := time.Now()
			_ = p.Signal(how)
			<-p.Done()
			x.end = time.Since(began)
			p.restart(t)
			x.start = time.Since(began) - x.end
		}()
		go func() {
			defer close(done)
			for restarted := false; ; {
				x.gap = max(x.gap, hosts.Pass(t, from, round))
				if restarted {
					return
				}
				select {
				case <-ready:
					restarted = true
				default:
				}
			}
		}()
		<-done
		<-ready
		times[how] = append(times[how], x)
		if t.Failed() {
			t.Fatalf("round %d, %v after %v\n%s", round, how, delay, p.Output())
		}
		t.Logf("%v: %v, member %d sends for %v: end %v, start %v, longest time between two completions %v", round, how, from, delay, x.end, x.start, x.gap)
	}
	// The file system of the machine and a race detector take some of it.
	gaps := times[syscall.SIGTERM]
	slices.SortFunc(gaps, func(a, b restartTimes) int { return cmp.Compare(a.gap, b.gap) })
	if m := gaps[len(gaps)/2].gap; m > 3*time.Second {
		t.Errorf("half of the planned restarts stop a transfer for %v or more", m)
	}
	for how, xs := range times {
		t.Logf("%d times %v (min, median, max): end %s, start %s, longest time between two completions %s", len(xs), how,
			spread(xs, func(x restartTimes) time.Duration { return x.end }),
			spread(xs, func(x restartTimes) time.Duration { return x.start }),
			spread(xs, func(x restartTimes) time.Duration { return x.gap }))
	}
}

// A switch that ends forwards while it closes what the data path does not need.
func TestDataPathEndsLast(t *testing.T) {
	p, hosts := startRestartable(t, `log: {level: debug}
switch: {id: '0000000000000001', keys: [{id: 1, secret: "hex:600d730e6baddcc909b2682b0e388c3aa12fde4afe7a295fd4f715beb984c163"}]}
`)
	hosts.Pass(t, 0, 0)
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, p.Output())
	}
	log := p.Output()
	for _, phase := range []string{"spare sockets closed", "workers stopped", "ports closed"} {
		_, after, found := strings.Cut(log, `"phase": "`+phase+`"`)
		if !found {
			t.Fatalf("%s: not in its place in\n%s", phase, p.Output())
		}
		log = after
	}
}

// After a planned restart another member than the last source may send at once, if that one
// was at rest: nobody waits for limits.source_timeout.
func TestNextSourceDoesNotWaitAfterAPlannedRestart(t *testing.T) {
	p, hosts := startRestartable(t, "limits: {source_timeout: 15s}\n")
	hosts.Pass(t, 0, 0)
	for round := range 4 {
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, p.Output())
		}
		p.restart(t)
		if gap := hosts.Pass(t, 1-round%2, round+1); gap > 7*time.Second { // a busy machine takes a second
			t.Errorf("member %d has waited for %v after the restart", 1-round%2, gap)
		}
	}
}

// Hosts that are behind other ports when gleamd starts again get the group's data there.
func TestMembersMoveWhileGleamdIsAway(t *testing.T) {
	p, hosts := startRestartable(t, "unconfirmed_moves: follow\n")
	hosts.Pass(t, 0, 0)
	for round, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		_ = p.Signal(how)
		<-p.Done()
		a, b := p.star.Ports[1], p.star.Ports[2] // the names: the hosts stay at their interfaces
		for _, x := range [][2]string{{a, "away"}, {b, a}, {"away", b}} {
			rename(t, p.star.Switch, x[0], x[1])
		}
		p.restart(t)
		t.Logf("%v: the longest time between two completions is %v", how, hosts.Pass(t, 0, round+1))
		if t.Failed() {
			t.Fatalf("%v\n%s", how, p.Output())
		}
	}
}

func rename(t *testing.T, ns *lab.Namespace, from, to string) {
	t.Helper()
	h := ns.Handle()
	l, err := h.LinkByName(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(h.LinkSetDown(l), h.LinkSetName(l, to), h.LinkSetUp(l)); err != nil {
		t.Fatalf("%s becomes %s: %v", from, to, err)
	}
}

// spread prints minimum, median and maximum of a part of restarts.
func spread(xs []restartTimes, part func(restartTimes) time.Duration) string {
	var ds []time.Duration
	for _, x := range xs {
		ds = append(ds, part(x).Round(time.Millisecond))
	}
	slices.Sort(ds)
	return fmt.Sprint(ds[0], " ", ds[len(ds)/2], " ", ds[len(ds)-1])
}
