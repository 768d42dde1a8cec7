// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/spsc"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// fillChunk is the least number of frames given to the kernel at a time: each update of
// the ring's shared index costs a cache line, the frames cost none.
const fillChunk = 32

// worker is the data path: one goroutine, locked to one thread, which alone uses the
// sockets' rings, the free frames, the core and every table below. Other goroutines pass
// it closures by do; the worker runs them between batches.
type worker struct {
	ports       []*port
	umem        *xsk.Umem
	pool        *xsk.Pool
	poller      *xsk.Poller
	core        *mcast.Switch
	groups      []groupTable   // by mcast.GroupID
	prefixes    []netip.Prefix // of group addresses
	ops         *rocev2.Operators
	cpu         int // the CPU to run on; -1 for any
	spin        time.Duration
	start       time.Time
	now         time.Duration // since start, read once a batch
	batchNumber uint64        // counts the batches: frames that were staged in the current one can still be changed

	affinity chan error    // the result of pinning the worker to cpu; Open waits for it
	ended    chan struct{} // closed when the worker has ended
	closures chan func()
	wakeFD   int
	quit     bool
	slowPath *slowPath
	changed  changedGroups

	// For a switch with several workers; workers is nil if there is only one.
	workers      *workers
	pauseStatus  pauseStatus
	runBy        time.Duration   // as pauseStatus.due
	pausedTotal  time.Duration   // as pauseStatus.paused
	othersPaused []time.Duration // total pauses of the other workers, by index, as last reported to the core
	index        int             // this worker's, in workers.all
	asleep       atomic.Bool
	handoffOut   []*spsc.Ring[xsk.Desc] // by worker: packets received for that worker's groups
	handoffIn    []*spsc.Ring[xsk.Desc] // packets that other workers received for this worker's groups
	remoteIn     []remoteTXConsumer     // remote TX rings of the ports that this worker transmits for
	remotePacket [xsk.MaxChain]xsk.Desc // scratch: the buffers of one packet from a remote TX ring
	firstRemote  int                    // index into remoteIn: the ring to drain first in the next batch

	fillReserve int  // entries of each fill ring that are left empty
	starved     bool // there were too few free frames to fill a fill ring

	// Scratch, reused for every packet.
	rx            []xsk.Desc
	addrs         []uint64
	chains        chains
	buildAddr     uint64 // the frame between beginFrame and endFrame
	frame         rocev2.Frame
	retainedFrame rocev2.Frame // the decoded retained frame, valid if isDecoded
	pkt           mcast.Packet
	targetScratch []mcast.Target // targets of one target message
	payload       [4096]byte     // of a packet in several buffers: no path MTU is larger
	out           mcast.Output
	count         counters
	prefetched    byte // so that prefetch is not optimised away

	repairSpec    mcast.RepairSpec // of the groups with local repair
	psnProbe      time.Duration    // mcast.GroupSpec.PSNProbe of all groups
	retained      []xsk.Desc       // by handle: buffers that the core retains; chains.nextBuffer links those of one packet
	coreCalls     uint64           // counts the calls of the core (core calls)
	decodedHandle mcast.Handle
	isDecoded     bool
}

func newWorker(ports []*port, umem *xsk.Umem, pool *xsk.Pool, cfg *config.Config, c *workerShared) (*worker, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make the worker's eventfd: %w", err)
	}
	var socks []*xsk.Socket
	for _, p := range ports {
		socks = append(socks, p.rxSockets...)
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
		ports: ports, umem: umem, pool: pool, start: c.start, batchNumber: 1,
		cpu: cfg.Worker.CPUs[0], spin: spin,
		poller:     xsk.NewPoller(socks, fd),
		core:       mcast.New(limits),
		repairSpec: repairSpec(cfg, kept),
		psnProbe:   cfg.PSNProbe,
		retained:   make([]xsk.Desc, umem.Frames()),
		groups:     make([]groupTable, limits.Groups),
		prefixes:   cfg.GroupPrefixes,
		ops:        rocev2.NewOperators(rocev2.MaxShift),
		closures:   make(chan func(), 64), wakeFD: fd,
		affinity:      make(chan error, 1),
		ended:         make(chan struct{}),
		slowPath:      c.slowPath,
		changed:       newChangedGroups(limits.Groups, c.bell),
		rx:            make([]xsk.Desc, max(cfg.Worker.Batch, xsk.MaxChain)),
		chains:        newChains(umem.Frames()),
		targetScratch: make([]mcast.Target, 0, envelope.MaxTargets(4096, true)),
		addrs:         make([]uint64, max(cfg.Rings.Fill, cfg.Rings.Completion)),
	}
	w.out.PortRoom = w.legResends
	// At most half of the frames are in the fill rings, in equal parts: the other half is
	// for copies and feedback.
	w.fillReserve = max(0, cfg.Rings.Fill-cfg.UMEM.Frames/2/max(1, c.sockets))
	// Packets arrive from Attach on. A packet that finds no frame before run starts is
	// lost, such as the only ARP request of a host that has been waiting for the switch.
	for _, s := range socks {
		w.refill(s)
	}
	return w, nil
}

// run is the worker's goroutine. It returns when a closure set quit.
func (w *worker) run() {
	runtime.LockOSThread()
	defer close(w.ended)
	if w.cpu >= 0 {
		var set unix.CPUSet
		set.Set(w.cpu)
		w.affinity <- unix.SchedSetaffinity(0, &set)
	} else {
		w.affinity <- nil
	}
	idle := newIdlePolicy(w.spin)
	for {
		got := w.runBatch()
		switch {
		case w.quit: // before a sleep, which nothing would end
			return
		case got > 0:
			idle.packetsCame(w.now)
		case idle.shouldSleep(w.now):
			w.sleep()
		}
	}
}

// runBatch runs one batch and returns how many packets came. When it returns, every frame
// that was staged in it, by closures too, has been moved to the rings.
func (w *worker) runBatch() (got int) {
	w.now = time.Since(w.start)
	w.notePauses()
	got = w.receiveAll()
	w.fireDeadlines()
	w.flush()
	if w.runClosures() {
		w.flush()
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

// do runs f on the worker between two batches and returns when it has run. It
// must not be called from the worker. It returns false if the worker has ended.
func (w *worker) do(f func()) bool {
	done := make(chan struct{})
	select {
	case w.closures <- func() { f(); close(done) }:
	case <-w.ended:
		return false
	}
	w.wake()
	select {
	case <-done:
		return true
	case <-w.ended:
		return false
	}
}

// wake ends the worker's poll.
func (w *worker) wake() {
	one := [8]byte{0: 1}
	_, _ = unix.Write(w.wakeFD, one[:]) // EAGAIN: a wakeup is pending already
}

// runClosures runs the closures that wait, and reports whether there were any.
func (w *worker) runClosures() (any bool) {
	for {
		select {
		case f := <-w.closures:
			f()
			w.batchNumber++ // the closure may have changed where groups' packets go
			any = true
		default:
			return any
		}
	}
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
	for _, p := range w.ports {
		if p.staged() {
			return 0
		}
		if at, ok := p.nextRelease(w.now); ok {
			until = min(until, at)
		}
		if at, ok := p.nextKick(); ok {
			until = min(until, at)
		}
	}
	for _, r := range w.handoffOut {
		if r != nil && r.Unpublished() > 0 {
			return 0
		}
	}
	if at, ok := w.nextRemoteRetry(); ok {
		until = min(until, at)
	}
	if w.starved { // completions return frames but wake no worker
		until = min(until, w.now+maxTXRetry)
	}
	return max(0, until-time.Since(w.start))
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
	w.setRunBy(time.Since(w.start) + timeout)
	woken, err := w.poller.Wait(timeout)
	if woken {
		var b [8]byte
		_, _ = unix.Read(w.wakeFD, b[:])
	}
	if err != nil && !errors.Is(err, unix.EINTR) {
		time.Sleep(time.Millisecond) // a socket of a vanished interface makes poll return at once
	}
}

// receive serves one batch of each socket and returns how many packets came.
func (w *worker) receive() (total int) {
	w.starved = false
	for pi, p := range w.ports {
		if p.vanished {
			continue
		}
		for _, s := range p.rxSockets {
			n := s.Receive(w.rx)
			packets := n
			w.prefetch(w.rx[:n])
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
	}
	return total
}

// prefetch brings the bytes of a batch into this CPU's cache. Another CPU has written
// them, and loading one line takes as long as rewriting a packet; loads that are
// requested together overlap.
func (w *worker) prefetch(batch []xsk.Desc) {
	var x byte
	for i := range batch {
		d := &batch[i]
		if int(d.Len) > w.umem.Room(d.Addr) {
			continue
		}
		for b := w.umem.Data(d.Addr, d.Len); len(b) > 0; b = b[min(len(b), cacheLine):] {
			x ^= b[0]
		}
	}
	w.prefetched = x
}

// cacheLine is the size of a cache line on amd64, and on most arm64 CPUs.
const cacheLine = 64

// refill gives s free frames to receive into, at least fillChunk at a time.
func (w *worker) refill(s *xsk.Socket) {
	room := s.FillRoom() - w.fillReserve
	if room < fillChunk {
		return
	}
	want := min(room, len(w.addrs))
	n := w.pool.Take(w.addrs[:want])
	w.starved = w.starved || n < want
	taken := s.Fill(w.addrs[:n])
	w.pool.Give(w.addrs[taken:n])
}
