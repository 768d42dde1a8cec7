// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// worker is the data path: one goroutine, locked to one thread, which alone uses the
// sockets' rings, the free frames, the core and every table below. Other goroutines pass
// it closures by do; the worker runs them between batches.
type worker struct {
	workers *workers // nil if there is only one worker
	index   int      // this worker's, in workers.all
	thread
	clock
	mailbox
	frameSupply
	forwarding
	scratch
	ports    []*port
	retained retention
	pauses   pauses
	handoff  handoffRings
	remote   remoteConsumers
	ahead    bool // true: the present batch reads nothing (isAhead)
	slowPath *slowPath
	aliases  *groupAliases
	changed  changedGroups
	count    counters
	load     load
	meters   meters
	delays   delays
	fast     fastPath
	tracing  *tracing // nil: no trace runs
}

// forwarding is the groups of a worker: the core, and the headers for what the core says.
type forwarding struct {
	core           *core
	coreCalls      uint64         // number of calls of the core
	groups         []groupTable   // groups by mcast.GroupID
	prefixes       []netip.Prefix // the prefixes of group addresses
	ops            *rocev2.Operators
	repairSpec     mcast.RepairSpec       // the repair of the groups with local repair
	psnProbe       time.Duration          // mcast.GroupSpec.PSNProbe of all groups
	envelopePort   uint16                 // UDP port of envelopes
	neighbourPorts map[mcast.Neighbor]int // the ports of the neighbours that are up; not changed once it is set
	reports        reportAuth
}

// operators are those of all workers. To build them takes some milliseconds.
var operators = sync.OnceValue(func() *rocev2.Operators { return rocev2.NewOperators(rocev2.MaxShift) })

// scratch is reused for every packet, so that none is allocated.
type scratch struct {
	rx            []xsk.Desc // a batch
	frame         rocev2.Frame
	chains        chains
	pkt           mcast.Packet
	targetScratch []mcast.Target // targets of one target message
	payload       [4096]byte     // the payload of a packet in several buffers: no path MTU is larger
	out           mcast.Output
	buildAddr     uint64 // the frame between beginFrame and endFrame
	prefetched    byte   // a byte that keeps prefetch from being optimised away
}

func newWorker(ports []*port, umem *xsk.Umem, pool *xsk.Pool, cfg *config.Config, c *workerShared) (*worker, error) {
	var queues []xsk.BoundQueue
	for _, p := range ports {
		queues = append(queues, p.rxSockets...)
	}
	poller, err := c.poller(queues)
	if err != nil {
		return nil, err
	}
	// Each worker's groups get an equal part of the bytes that may be retained, so that
	// workers need not coordinate.
	kept := cfg.RepairTotal() / len(cfg.Worker.CPUs)
	spin := cfg.Worker.Spin
	if !maySpin(cfg.Worker.CPUs, runtime.NumCPU()) {
		spin = 0
	}
	limits := mcast.Limits{Groups: cfg.Limits.Groups, Members: cfg.Limits.MembersPerGroup, RepairBytes: int64(kept)}
	w := &worker{
		thread:      thread{cpu: cfg.Worker.CPUs[0], spin: spin, affinity: make(chan error, 1)},
		clock:       clock{start: c.start, batchNumber: 1},
		frameSupply: newFrameSupply(umem, pool, max(cfg.Rings.Fill, cfg.Rings.Completion), cfg.Rings.Fill, c.sockets),
		forwarding: forwarding{
			core: newCore(limits), groups: make([]groupTable, limits.Groups), prefixes: cfg.GroupPrefixes,
			ops: operators(), repairSpec: repairSpec(cfg, kept), psnProbe: cfg.PSNProbe, envelopePort: cfg.Envelope.UDPPort, reports: newReportAuth(cfg.Switch.Keys),
		},
		scratch: scratch{
			rx: make([]xsk.Desc, max(cfg.Worker.Batch, xsk.MaxChain)), chains: newChains(),
			targetScratch: make([]mcast.Target, 0, envelope.MaxTargets(4096, true)),
		},
		ports:    ports,
		retained: newRetention(umem),
		slowPath: c.slowPath,
		aliases:  &c.aliases,
		changed:  newChangedGroups(limits.Groups, c.bell),
		meters:   newMeters(limits.Groups),
		delays:   newDelays(limits.Groups, c.bell),
	}
	w.mailbox.init(poller)
	w.out.PortRoom = w.legResends
	// Packets arrive from Attach on. A packet that finds no frame before run starts is
	// lost, such as the only ARP request of a host that has been waiting for the switch.
	for _, s := range queues {
		w.refill(s)
	}
	return w, nil
}

// run is the worker's goroutine. It returns when a closure set quit.
func (w *worker) run() {
	defer close(w.ended)
	w.affinity <- w.pin()
	idle := newIdlePolicy(w.spin)
	for {
		got := w.runBatch()
		switch {
		case w.quit: // before a sleep, which nothing would end
			w.disturbFast()
			w.flush()
			return
		case got > 0:
			idle.packetsCame(w.now)
		case w.ahead:
			w.waitBehind()
		case idle.shouldSleep(w.now, len(w.fast.on) > 0):
			w.sleep()
		}
	}
}

// runBatch runs one batch and returns how many packets came. When it returns, every frame
// that was staged in it, by closures too, has been moved to the rings.
func (w *worker) runBatch() (got int) {
	w.load.begin(w.readClock())
	if w.ahead = w.isAhead(); w.ahead { // the time counts as a pause: nothing is read, and so no deadline is due
		got = w.drainRemote()
	} else {
		w.notePauses()
		got = w.receiveAll()
		w.fireDeadlines()
		w.lookAtDelays()
	}
	w.flush()
	if w.fast.shared != nil {
		w.tendFast()
	}
	closures := w.runClosures()
	if closures {
		w.flush()
	}
	w.load.note(got, closures)
	if w.tracing != nil {
		w.tracing.Publish()
	}
	return got
}

// receiveAll serves the packets that wait at the sockets and in the rings from other
// workers, and returns how many there were.
func (w *worker) receiveAll() int {
	if w.workers == nil {
		return w.receive()
	}
	w.refreshTXLimits()
	return w.receive() + w.drainHandoff() + w.drainRemote()
}

// runClosures runs the closures that wait, and reports whether there were any.
func (w *worker) runClosures() (any bool) {
	for f := w.next(); f != nil; f = w.next() {
		f()
		w.batchNumber++ // the closure may have changed where groups' packets go
		any = true
	}
	return any
}

// maxSleep bounds the time for which a link event can go unnoticed.
const maxSleep = time.Second

// sleepTime returns how long w may sleep: until the core's next deadline, the release of
// a queued frame, or the next retry of a ring that was full. It is 0 while a frame is
// staged: staged frames do not wait for the next packet.
func (w *worker) sleepTime() time.Duration {
	until := w.now + maxSleep
	if at, ok := w.core.NextDeadline(); ok {
		until = min(until, at)
	}
	if at, ok := w.delays.next(); ok {
		until = min(until, at)
	}
	for _, p := range w.ports {
		if p.hasStaged() {
			return 0
		}
		if at, ok := p.nextEvent(w.now); ok {
			until = min(until, at)
		}
	}
	for _, r := range w.handoff.out {
		if r != nil && r.Unpublished() > 0 {
			return 0
		}
	}
	if at, ok := w.remote.nextRetry(w.now); ok {
		until = min(until, at)
	}
	until = min(until, w.nextFast())
	if w.starved { // completions return frames but wake no worker
		until = min(until, w.now+maxTXRetry)
	}
	return max(0, until-w.elapsed())
}

// sleep returns when a frame, a closure or something from another worker comes, at the
// latest after sleepTime.
func (w *worker) sleep() {
	timeout := w.sleepTime()
	if len(w.closures) > 0 {
		return
	}
	if w.workers != nil {
		defer w.asleep.Store(false)
		if !w.prepareSleep() {
			return
		}
	}
	w.load.slept = w.elapsed()
	w.pauses.setRunBy(w.load.slept + timeout)
	if _, err := w.poller.Wait(timeout); err != nil {
		time.Sleep(time.Millisecond) // a socket of a vanished interface makes poll return at once
	}
}

// receive serves one batch of each socket and returns how many packets came.
func (w *worker) receive() (total int) {
	w.starved = false
	for pi, p := range w.ports {
		if !p.vanished {
			total += w.receivePort(pi)
		}
	}
	return total
}

// receivePort serves one batch of each socket of a port.
func (w *worker) receivePort(pi int) (total int) {
	p := w.ports[pi]
	for _, s := range p.rxSockets {
		n := s.Receive(w.rx)
		w.fast.taken++
		packets := n
		p.rxBytes += w.prefetch(w.rx[:n])
		switch {
		case w.workers != nil:
			packets = w.dispatch(pi, w.rx[:n])
		case p.multiBuffer:
			packets = w.serveChains(pi, w.rx[:n])
		default:
			for i := range n {
				w.servePacket(pi, w.rx[i:i+1]...)
			}
		}
		p.rxFrames += uint64(packets)
		total += packets
		w.refill(s)
	}
	return total
}

// prefetch brings the bytes of a batch into this CPU's cache. Another CPU has written
// them, and loading one line takes as long as rewriting a packet; loads that are
// requested together overlap. It returns the number of bytes.
func (w *worker) prefetch(batch []xsk.Desc) (bytes uint64) {
	var x byte
	for i := range batch {
		d := &batch[i]
		if int(d.Len) > w.umem.Room(d.Addr) {
			continue
		}
		bytes += uint64(d.Len)
		for b := w.umem.Data(d.Addr, d.Len); len(b) > 0; b = b[min(len(b), cacheLine):] {
			x ^= b[0]
		}
	}
	w.prefetched = x
	return bytes
}

// cacheLine is the size of a cache line on amd64, and on most arm64 CPUs.
const cacheLine = 64
