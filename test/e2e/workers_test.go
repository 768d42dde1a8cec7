// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Switches with several workers. Half of the other tests of this package have three, too
// (rig.workers).

// numbered returns group address i.
func numbered(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 254, byte(i + 1)}) }

// crowd registers groups on r's switch, group i with some of the hosts, of which the
// first one is to send.
func (r *rig) crowd(groups int, hosts func(i int) []int) (rs []*rig) {
	r.t.Helper()
	for i := range groups {
		o := r.another(numbered(i), hosts(i)...)
		o.join()
		rs = append(rs, o)
	}
	return rs
}

// leave closes the group's queue pairs and regions.
func (r *rig) leave() {
	for _, h := range r.hosts {
		if err := h.qp.Close(); err != nil {
			r.t.Errorf("close %s's queue pair: %v", h.Name, err)
		}
		if err := h.mr.Close(); err != nil {
			r.t.Errorf("close %s's region: %v", h.Name, err)
		}
	}
}

// rotated are all hosts but one, another one first for each i.
func rotated(hosts, i int) (list []int) {
	for k := range hosts - 1 + i%2 {
		list = append(list, (i+k)%hosts)
	}
	return list
}

// sendAll has all groups' sources send their regions at once, and checks that all
// get them.
func sendAll(rs []*rig, message int) {
	n := make([]int, len(rs))
	for i, r := range rs {
		r.fill(0)
		n[i] = r.post(0, message)
	}
	for i, r := range rs {
		r.complete(r.hosts[0], n[i])
		r.same(0)
	}
}

// owners returns how many groups each worker has.
func (r *rig) owners() []int {
	r.t.Helper()
	groups, err := r.engine.Groups(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	list := make([]int, r.workers())
	for _, g := range groups {
		list[g.Worker]++
	}
	return list
}

// allFramesAreSomewhere waits until every frame of the UMEM is free or in a ring: none
// was lost between workers, and no group retains one.
func (r *rig) allFramesAreSomewhere() {
	r.t.Helper()
	var seen string
	defer func() {
		if r.t.Failed() {
			r.t.Log(seen)
		}
	}()
	until(r.t, "all frames are free or in a ring", func() bool {
		s := r.stats()
		n := s.FramesFree
		ports := r.ports()
		for _, p := range ports {
			for _, k := range p.Sockets {
				n += k.RX.Used + k.Fill.Used + k.TX.Used + k.Completion.Used
			}
		}
		seen = fmt.Sprintf("%d frames of %d: %d free, ports %+v", n, s.Frames, s.FramesFree, ports)
		return n == s.Frames
	})
}

// Many groups, over all workers and all queues of the ports, send at the same time, and
// every receiver gets its own group's data. Members are behind ports that other workers
// receive from and transmit for; there may be more workers than ports.
func TestWorkers(t *testing.T) {
	for _, c := range []struct{ hosts, queues, workers int }{{4, 1, 1}, {4, 2, 2}, {4, 1, 4}, {3, 4, 3}, {2, 1, 5}} {
		t.Run(fmt.Sprintf("%d workers, %d ports of %d queues", c.workers, c.hosts, c.queues), func(t *testing.T) {
			r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: c.hosts, Queues: c.queues}, workers: c.workers, memory: 48 << 10})
			rs := r.crowd(36, func(i int) []int {
				if c.hosts == 2 {
					return []int{i % 2, 1 - i%2}
				}
				return rotated(c.hosts, i)
			})
			if got := r.owners(); slices.Max(got)-slices.Min(got) > 1 {
				t.Errorf("%v groups belong to the workers", got)
			}
			for range 2 {
				sendAll(rs, 20_000)
			}
			receives, transmits := make([]int, c.workers), make([]int, c.workers)
			for _, p := range r.ports() {
				transmits[p.Worker]++
				if len(p.Sockets) != c.queues || p.Sockets[0].Worker != p.Worker || p.Driver != "veth" {
					t.Errorf("port %+v", p)
				}
				for _, s := range p.Sockets {
					receives[s.Worker]++
				}
			}
			t.Logf("receive from %v sockets, transmit for %v ports; drops %v", receives, transmits, r.drops())
			if slices.Max(receives)-slices.Min(receives) > 1 && c.queues == 1 {
				t.Errorf("the workers receive from %v sockets", receives)
			}
			r.allFramesAreSomewhere()
		})
	}
}

// Groups are deleted in the middle of a transfer and registered again, with new queue
// pairs, while others go on: the others are not affected, and the new ones are served,
// whichever worker owns them.
func TestGroupsComeAndGoAmongWorkers(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 4, Queues: 2}, workers: 3, memory: 4 * streamDepth * streamSize})
	steady := r.crowd(6, func(i int) []int { return rotated(4, i) })
	var streams []*stream
	var receivers [][]*receiver
	for _, o := range steady {
		s := o.stream()
		var vs []*receiver
		for _, h := range o.hosts[1:] {
			vs = append(vs, s.receive(h.Name, h.qp, h.mr))
		}
		streams, receivers = append(streams, s), append(receivers, vs)
	}
	r.churn(rand.New(rand.NewPCG(1, 2)), len(steady), 12)
	for i, s := range streams {
		s.stop(receivers[i]...)
	}
	for i, o := range steady {
		g, err := r.engine.Group(o.group)
		if err != nil || g.Counters.DataIn == 0 {
			t.Errorf("group %d: %+v, %v", i, g, err)
		}
	}
	r.allFramesAreSomewhere()
}

// churn registers a group from number first on, has it send, deletes it before it has
// done, and repeats that under the same address, times in all.
func (r *rig) churn(rng *rand.Rand, first, times int) {
	r.t.Helper()
	workers := make(map[netip.Addr]map[int]bool)
	for range times {
		group := numbered(first + rng.IntN(3))
		o := r.another(group, rng.Perm(len(r.hosts))[:2+rng.IntN(len(r.hosts)-1)]...)
		o.join()
		g, err := r.engine.Group(group)
		if err != nil {
			r.t.Fatal(err)
		}
		if workers[group] == nil {
			workers[group] = make(map[int]bool)
		}
		workers[group][g.Worker] = true
		o.fill(0)
		o.post(0, 30_000)
		if rng.IntN(3) == 0 {
			until(r.t, "the transfer has begun", func() bool {
				g, err := r.engine.Group(group)
				return err == nil && g.Counters.DataIn > uint64(rng.IntN(30))
			})
		}
		if err := r.engine.Delete(group); err != nil {
			r.t.Fatal(err)
		}
		o.leave()

		o = r.another(group, rng.Perm(len(r.hosts))[:2+rng.IntN(len(r.hosts)-1)]...)
		o.join()
		o.fill(0)
		o.write(0, 20_000)
		o.same(0)
		if err := r.engine.Delete(group); err != nil {
			r.t.Fatal(err)
		}
		o.leave()
	}
	r.t.Logf("workers of the groups that came and went: %v", workers)
}

// The interface of one port is deleted while every worker moves packets: groups
// without members behind it lose nothing, the others evict those, and every frame
// that was on its way there is free again.
func TestPortLostAmongWorkers(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 4, Queues: 2}, workers: 4, memory: 1 << 20, policy: "evict"})
	without := r.crowd(6, func(i int) []int { return []int{i % 3, (i + 1) % 3, (i + 2) % 3} })
	with := r.another(numbered(20), 0, 1, 3)
	with.connect()
	reg := with.registration()
	reg.DeadAfterMS = 300
	if err := r.engine.Register(reg); err != nil {
		t.Fatal(err)
	}
	all := append(slices.Clone(without), with)
	n := make([]int, len(all))
	for i, o := range all {
		o.fill(0)
		n[i] = o.post(0, 50_000)
	}
	until(t, "the transfers begin", func() bool { return r.stats().Rx > 500 })
	if err := r.star.Switch.DeleteLink("p4"); err != nil {
		t.Fatal(err)
	}
	until(t, "the switch says so", func() bool { return r.said("true port is gone") })
	for i, o := range without {
		o.complete(o.hosts[0], n[i])
		o.same(0)
	}
	with.complete(with.hosts[0], n[len(without)])
	if !bytes.Equal(with.hosts[1].mr.Bytes(), with.hosts[0].mr.Bytes()) {
		t.Errorf("%s does not have the bytes", with.hosts[1].Name)
	}
	until(t, "eviction", func() bool { return r.said("true member evicted") })
	r.allFramesAreSomewhere()
	sendAll(without, 50_000)
	r.allFramesAreSomewhere()
}

// A port with a rate, which every worker sends by, sends no faster, and its queue is
// bounded as if there were one worker.
func TestRateOfAPortThatWorkersShare(t *testing.T) {
	const queue = 64 << 10
	r := newRig(t, rigConfig{
		star: lab.StarConfig{Hosts: 4}, workers: 4, memory: 128 << 10,
		ports: map[string]string{"p4": fmt.Sprintf("rate: 50mbit\n    queue: %d", queue)},
	})
	rs := r.crowd(8, func(i int) []int { return []int{i % 3, 3} })
	sendAll(rs, 32_000) // every address is resolved
	begin := time.Now()
	before := r.ports()[3]
	sendAll(rs, 32_000)
	took := time.Since(begin)
	after := r.ports()[3]
	frames := after.TxFrames - before.TxFrames
	if least := time.Duration(float64(8*(128<<10)*8) / 50e6 * float64(time.Second)); took < least-maxCatchUp {
		t.Errorf("%d frames in %v: a link of 50 Mbit/s takes at least %v", frames, took, least)
	}
	// The transmitting worker's queue: with the frames in the remote TX rings it is no
	// deeper than the other workers' last read of the port status allowed.
	if e := after.Egress; e.MaxDepthBytes > queue+8<<10+2048 {
		t.Errorf("%d bytes waited in a queue for %d", e.MaxDepthBytes, queue)
	}
	t.Logf("%v; egress %+v; drops %v", took, after.Egress, r.drops())
	r.allFramesAreSomewhere()
}

// maxCatchUp is what the queue may be ahead of the link's rate over a short time.
const maxCatchUp = 100 * time.Millisecond

// TestWorkersSoak is a random run of switches with 1 to 4 workers: for the duration in
// GLEAM_SOAK, such as 5m; else some seconds. The seed of a round is in its name.
func TestWorkersSoak(t *testing.T) {
	end := time.Now().Add(soakTime(t, 5*time.Second))
	for seed := uint64(1); seed == 1 || time.Now().Before(end) && !t.Failed(); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { soak(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

// soakTime returns the duration in GLEAM_SOAK, or another one.
func soakTime(t *testing.T, other time.Duration) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(cmp.Or(os.Getenv("GLEAM_SOAK"), other.String()))
	if err != nil {
		t.Fatalf("GLEAM_SOAK: %v", err)
	}
	return d
}

func soak(t *testing.T, rng *rand.Rand) {
	hosts := 2 + rng.IntN(4)
	c := rigConfig{
		star: lab.StarConfig{Hosts: hosts, Queues: 1 + rng.IntN(3)}, workers: 1 + rng.IntN(4),
		memory: 48 << 10, alone: rng.IntN(4) == 0, v6: false,
	}
	if rng.IntN(3) == 0 {
		c.ports = map[string]string{"p1": "rate: 200mbit\n    queue: 65536"}
	}
	if rng.IntN(3) == 0 { // few frames, small rings
		c.rings = "umem: {frames: 2048}\nrings: {rx: 64, tx: 64, fill: 64, completion: 64}\n"
	}
	r := newRig(t, c)
	rs := r.crowd(8+rng.IntN(32), func(i int) []int { return rng.Perm(hosts)[:2+rng.IntN(hosts-1)] })
	for range 2 {
		sendAll(rs, 1+rng.IntN(30_000)+4000)
	}
	r.churn(rng, len(rs), 2)
	for _, o := range rs[:len(rs)/2] {
		if err := r.engine.Delete(o.group); err != nil {
			t.Error(err)
		}
		o.leave()
	}
	sendAll(rs[len(rs)/2:], 20_000)
	r.allFramesAreSomewhere()
	var s *api.Stats = r.stats()
	t.Logf("%d groups, %d hosts, %d queues, %d workers, repair %v: %d packets, %d copies, drops %v",
		len(rs), hosts, c.star.Queues, c.workers, !c.alone, s.Rx, s.Copies, s.Drops)
}

// TestGroupsSoak has groups come and go as fast as the machine can, for the duration in GLEAM_SOAK, else a second. Each
// gets a message to all its members, and ends. What they leave is compared after a fifth of the time and at the end.
func TestGroupsSoak(t *testing.T) {
	const atOnce, packets = 64, 2
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 4, Queues: 2}, workers: 2, memory: packets * 1024})
	r.ctx = context.WithoutCancel(r.ctx) // it ends before a long soak
	rs := r.crowd(atOnce, func(i int) []int { return rotated(len(r.hosts), i) })
	turn, limit, start := 0, soakTime(t, time.Second), time.Now()
	// all registers or deletes all groups at once.
	all := func(do func(o *rig) error) {
		var wait sync.WaitGroup
		for _, o := range rs {
			wait.Go(func() {
				if err := do(o); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	}
	register := func(o *rig) error {
		reg := o.registration()
		for i := range reg.Members { // with the PSNs that the queue pairs are at
			at := &reg.Members[i].RQPSN
			if i == 0 {
				at = &reg.Members[i].SQPSN
			}
			*at = api.PSN(rocev2.PSN(*at).Add(int32(turn * packets)))
		}
		return r.engine.Register(reg)
	}
	run := func(d time.Duration) {
		for ; time.Since(start) < d && !t.Failed(); turn++ {
			if turn > 0 {
				all(register)
			}
			for _, o := range rs {
				for i := range o.hosts[1:] {
					clear(o.hosts[i+1].mr.Bytes())
				}
			}
			sendAll(rs, packets*1024)
			all(func(o *rig) error { return r.engine.Delete(o.group) })
		}
	}
	left := func() (bytes uint64, goroutines int) {
		r.allFramesAreSomewhere()
		if n := r.owners(); slices.Max(n) > 0 {
			t.Errorf("the workers have %v groups", n)
		}
		r.notes.Lock()
		r.notes.lines = nil
		r.notes.Unlock()
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	run(limit / 5)
	bytesBefore, goroutinesBefore := left()
	run(limit)
	bytes, goroutines := left()
	n := turn * atOnce
	t.Logf("%d groups, %.0f a second; %d bytes of heap and %d goroutines, %d and %d before; drops %v", n, float64(n)/time.Since(start).Seconds(), bytes, goroutines, bytesBefore, goroutinesBefore, r.drops())
	if bytes > bytesBefore+1<<20 || goroutines > goroutinesBefore {
		t.Errorf("%d bytes and %d goroutines, %d and %d before", bytes, goroutines, bytesBefore, goroutinesBefore)
	}
}
