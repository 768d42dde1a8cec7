// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
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
	"github.com/gleam-rdma/gleam/endpoint"
	"github.com/gleam-rdma/gleam/endpoint/soft"
	"github.com/gleam-rdma/gleam/internal/tools/lab"
	"github.com/gleam-rdma/gleam/internal/tools/testbed"
	"github.com/gleam-rdma/gleam/test/labtest"
)

const (
	restartMemory  = 1 << 20
	restartMessage = 16 << 10
	restartBase    = 0x5000_0000_0000
	restartKey     = 0xABCD
)

// restartHost is a host of a group whose switch restarts.
type restartHost struct {
	qp endpoint.QP
	mr endpoint.MR
}

// startRestartable starts a gleamd that keeps its groups, with a group of three hosts. more
// are further lines of its configuration.
func startRestartable(t *testing.T, more string) (*process, []restartHost) {
	t.Helper()
	p := &process{star: labtest.Star(t, lab.StarConfig{Hosts: 3})}
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	for d := dir; d != "/"; d = filepath.Dir(d) { // gleamd becomes another user
		_ = os.Chmod(d, 0o755)
		if d == os.TempDir() {
			break
		}
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
	reg := &api.Register{Group: lab.StarGroupsIPv4.Addr().Next(), QPN: 0x4242, PMTU: 1024, Policy: "strict", Window: &api.Window{VA: restartBase, Len: restartMemory, RKey: restartKey}}
	var hosts []restartHost
	for i, h := range p.star.Hosts {
		var dev *soft.Device
		if err := h.NS.Do(func() (err error) {
			dev, err = soft.Open(soft.Config{Interface: h.Interface, Seed: uint64(i)})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dev.Close() })
		mr, err := dev.RegisterMemory(make([]byte, restartMemory), 0x7000_0000_0000+uint64(i)<<32, endpoint.LocalWrite|endpoint.RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		qp, err := dev.CreateQP(endpoint.QPConfig{LocalIP: h.IPv4, SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN(), MaxSend: 128, Timeout: 14, RetryCount: 7, RNRRetry: 7})
		if err != nil {
			t.Fatal(err)
		}
		n := qp.Info()
		reg.Members = append(reg.Members, api.RegisterMember{
			IP: n.IP, QPN: api.QPN(n.QPN), SQPSN: api.PSN(n.SQPSN), RQPSN: api.PSN(n.RQPSN), Window: &api.Window{VA: mr.Addr(), Len: restartMemory, RKey: mr.RKey()},
		})
		hosts = append(hosts, restartHost{qp, mr})
	}
	for i := range hosts {
		if err := hosts[i].qp.Connect(t.Context(), endpoint.Remote{IP: reg.Group, QPN: 0x4242, PathMTU: 1024, RQPSN: hosts[i].qp.Info().RQPSN}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.client.Register(t.Context(), reg); err != nil {
		t.Fatal(err)
	}
	return p, hosts
}

// pass writes the region of a host to the group, and checks at its last completion that all
// hosts have it. It returns the longest time between two completions.
func pass(t *testing.T, hosts []restartHost, from, round int) (gap time.Duration) {
	t.Helper()
	h := &hosts[from]
	for i := range h.mr.Bytes() {
		h.mr.Bytes()[i] = byte(i>>8) ^ byte(i*13) ^ byte(round*31+1)
	}
	n := restartMemory / restartMessage
	for m := range n {
		off := m * restartMessage
		if _, err := h.qp.PostSend(endpoint.SendWR{
			ID: uint64(m), Op: endpoint.Write, Local: endpoint.Segment{MR: h.mr, Offset: off, Len: restartMessage}, RemoteAddr: restartBase + uint64(off), RKey: restartKey,
		}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	last := time.Now()
	var wc [16]endpoint.Completion
	for got := 0; got < n; {
		k, err := h.qp.Poll(ctx, wc[:])
		if err != nil {
			t.Fatalf("round %d: %d of %d completions: %v", round, got, n, err)
		}
		now := time.Now()
		gap, last = max(gap, now.Sub(last)), now
		for _, c := range wc[:k] {
			if c.Err() != nil {
				t.Fatalf("round %d: message %d: %v", round, c.ID, c.Err())
			}
			got++
		}
		for i := range hosts {
			if end := got * restartMessage; !bytes.Equal(hosts[i].mr.Bytes()[:end], h.mr.Bytes()[:end]) {
				t.Fatalf("round %d: %d messages are complete, and host %d does not have their bytes", round, got, i)
			}
		}
	}
	return gap
}

// restartTimes are the parts of one restart during a transfer.
type restartTimes struct {
	end   time.Duration // from the signal until the process is gone
	start time.Duration // from then on until gleamd answers by its API
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
				x.gap = max(x.gap, pass(t, hosts, from, round))
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
	pass(t, hosts, 0, 0)
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
	pass(t, hosts, 0, 0)
	for round := range 4 {
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, p.Output())
		}
		p.restart(t)
		if gap := pass(t, hosts, 1-round%2, round+1); gap > 7*time.Second { // a busy machine takes a second
			t.Errorf("member %d has waited for %v after the restart", 1-round%2, gap)
		}
	}
}

// Hosts that are behind other ports when gleamd starts again get the group's data there.
func TestMembersMoveWhileGleamdIsAway(t *testing.T) {
	p, hosts := startRestartable(t, "unconfirmed_moves: follow\n")
	pass(t, hosts, 0, 0)
	for round, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		_ = p.Signal(how)
		<-p.Done()
		a, b := p.star.Ports[1], p.star.Ports[2] // the names: the hosts stay at their interfaces
		for _, x := range [][2]string{{a, "away"}, {b, a}, {"away", b}} {
			rename(t, p.star.Switch, x[0], x[1])
		}
		p.restart(t)
		t.Logf("%v: the longest time between two completions is %v", how, pass(t, hosts, 0, round+1))
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
