// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
	"github.com/gleam-rdma/gleam/dataplane/ntuple"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
)

// ErrStopped means that the workers have ended.
var ErrStopped = errors.New("the switch has stopped")

// Notify receives messages for the operator: msg, and pairs of key and value. warn marks
// a message about a problem. Notify is called from several goroutines.
type Notify func(warn bool, msg string, kv ...any)

// PhaseMark is the message of a part of the start or the end that is over, for a debug log: a
// switch serves nothing meanwhile.
const PhaseMark = "phase is over"

// Phase says that a part of the start or the end is over.
func (n Notify) Phase(name string) { n(false, PhaseMark, "phase", name) }

// Plane is the data plane of a switch: its ports and the workers that move packets between
// them. Open makes it, Run moves packets, and Close returns the ports to the kernel. Its
// other methods are for the control plane. They may be called while Run runs, by one
// goroutine unless they say otherwise, and wait until the workers have done what they ask
// for, which takes no longer than a batch of packets.
type Plane struct {
	cfg      *config.Config // the configuration of the start
	notify   Notify
	steering *bpf.Steering // nil if the ports are not attached
	fast     fastMaps
	umem     *xsk.Umem
	ports    []*port        // ports by slot
	indexes  []atomic.Int64 // the indexes of their interfaces; 0: none
	programs programs
	thread   *portThread // nil if the ports are not attached
	opened   []*port     // opened, and not installed yet; of the port thread
	workers  *workers
	slowPath *slowPath
	start    time.Time // the start of the clock
	// neighbourPorts are the ports of the neighbours that are up; of the control loop.
	neighbourPorts map[mcast.Neighbor]int
}

// Open attaches to every configured port. If it fails, it undoes everything. The errors
// name the port and a remedy. The ports serve no packet before Program has got its policy.
// Programs are still being loaded when it returns, until Loaded.
//
// It calls meanwhile while the kernel loads programs, before it attaches any, and fails with its
// error.
func Open(cfg *config.Config, notify Notify, meanwhile func() error) (_ *Plane, err error) {
	p := &Plane{cfg: cfg, notify: notify, indexes: make([]atomic.Int64, len(cfg.Ports)+sparePorts)}
	p.programs.bySlot = make([]*bpf.PortProgram, len(p.indexes))
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	var memory sync.WaitGroup // all of the packet memory is written once, which takes some time
	var umemErr error
	memory.Go(func() { p.umem, umemErr = xsk.NewUmem(cfg.UMEM.Frames, cfg.UMEM.FrameSize) })
	defer memory.Wait()
	go operators()
	if cfg.FastPath != config.FastPathOff {
		go growTable()
	}
	if p.thread, err = newPortThread(); err != nil {
		return nil, err
	}
	found, err := p.findPorts()
	if err != nil {
		return nil, err
	}
	notify.Phase("interfaces found")
	if p.steering, err = bpf.NewSteering(cfg.GroupPrefixes, cfg.Envelope.UDPPort, len(p.indexes)); err != nil {
		return nil, err
	}
	notify.Phase("maps of the XDP programs")
	if err := p.fast.open(p.steering, cfg, found, notify); err != nil {
		return nil, err
	}
	p.steering.Preload(false)
	p.steering.Preload(true) // any port's MTU may change
	if err := meanwhile(); err != nil {
		return nil, err
	}
	if memory.Wait(); umemErr != nil {
		return nil, umemErr
	}
	notify.Phase("packet memory")
	for i := range cfg.Ports {
		x, err := openPort(&found[i], cfg, p.umem, func(ifindex, mtu int) (*bpf.PortProgram, error) {
			return p.loadProgram(i, ifindex, mtu, found[i].Mode)
		})
		if err != nil {
			return nil, err
		}
		p.ports = append(p.ports, x)
		p.indexes[i].Store(int64(x.ifindex))
		p.reportMode(x)
		p.openRules(x, cfg)
	}
	if err := p.fast.check(p.steering, cfg, notify); err != nil {
		return nil, err
	}
	p.thread.put(func() { p.programs.spareErr = p.programs.loadSpares(p.steering) })
	p.addEmptySlots()
	if n := runtime.NumCPU(); cfg.Worker.Spin > 0 && !maySpin(cfg.Worker.CPUs, n) {
		notify(true, "the machine has too few CPUs for each worker to have one to itself, and one more: workers sleep whenever they have nothing to do, which costs latency",
			"workers", len(cfg.Worker.CPUs), "cpus", n, "remedy", "fewer workers in worker.cpu, or spin: 0 to agree")
	}
	if err := p.makeWorkers(cfg); err != nil {
		return nil, err
	}
	p.fast.enable(p.workers, notify, p.start)
	return p, nil
}

// findPorts finds the interfaces of the configured ports.
func (p *Plane) findPorts() (found []foundPort, err error) {
	links, err := iface.ReadLinks()
	if err != nil {
		return nil, err
	}
	for i := range p.cfg.Ports {
		f := foundPort{config: &p.cfg.Ports[i]}
		if f.Found, err = links.Find(f.config, p.cfg.XDPModeOf(f.config)); err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	return found, links.CheckTogether(p.cfg.Ports)
}

// Loaded waits until the programs of ports that may be added are loaded. A process gives up
// its privileges after that.
func (p *Plane) Loaded() (err error) {
	if !p.thread.do(func() { err = p.programs.spareErr }) {
		return ErrStopped
	}
	return err
}

// loadProgram loads the program of slot pi and attaches it. It serves no packet before it
// has its policy.
func (p *Plane) loadProgram(pi, ifindex, mtu int, mode config.XDPMode) (*bpf.PortProgram, error) {
	x, err := p.steering.Attach(ifindex, p.cfg.Ports[pi].Name, bpfMode(mode), mtu)
	if err != nil {
		return nil, err
	}
	p.programs.bySlot[pi] = x
	return x, x.SetPolicy(&bpf.Policy{Blocked: true})
}

// addEmptySlots adds the slots of ports that may be added.
func (p *Plane) addEmptySlots() {
	for len(p.ports) < len(p.indexes) {
		p.ports = append(p.ports, emptyPort(p.cfg))
	}
}

func (p *Plane) makeWorkers(cfg *config.Config) (err error) {
	if p.workers, err = newWorkers(p.ports, p.umem, cfg, socketPoller); err != nil {
		return err
	}
	w := p.workers.all[0] // what all workers share
	p.slowPath, p.start = w.slowPath, w.start
	return nil
}

// reportMode reports the mode of x, with a warning if it is slower than it could be.
func (p *Plane) reportMode(x *port) {
	copyMode := "copy"
	if x.sockets[0].ZeroCopy() {
		copyMode = "zero-copy"
	}
	p.notify(false, "port attached", "port", x.name, "mac", x.mac, "mtu", x.mtu,
		"xdp", x.mode.String(), "af_xdp", copyMode, "queues", len(x.sockets), "multi_buffer", x.multiBuffer)
	rejected := ""
	if p.cfg.FastPath == config.FastPathRequire {
		rejected = "; registrations with members there are rejected, as fast_path is require"
	}
	if err := x.xdp.NativeError(); err != nil {
		why := "the driver has no native XDP: this port runs in generic mode, slower"
		if has, known := iface.FeaturesOf(x.ifindex); known == nil && has.Native() {
			why = "the driver refuses native XDP at this MTU, or with the offloads or queues that are set: this port runs in generic mode, slower"
		}
		p.notify(true, why+rejected, "port", x.name, "mtu", x.mtu, "error", err)
	} else if rejected != "" && x.multiBuffer && x.mtu <= bpf.MaxSingleBufferMTU {
		p.notify(true, "the driver takes no program for frames in one buffer at this MTU"+rejected, "port", x.name, "mtu", x.mtu, "remedy", "a shorter MTU")
	}
}

// openRules opens the rule table of x's NIC, if steering by NIC rules is configured and
// useful.
func (p *Plane) openRules(x *port, cfg *config.Config) {
	if !cfg.XDP.NTuple || len(cfg.Worker.CPUs) == 1 || len(x.sockets) == 1 {
		return
	}
	var err error
	if x.nicRules, err = ntuple.Open(x.name); err != nil {
		p.notify(true, "groups are not steered to their workers' queues", "port", x.name, "error", err)
	}
}

// Run starts the workers, calls serve when all are running, and ends them when serve
// returns. It may be called once.
func (p *Plane) Run(serve func()) error {
	done := make(chan struct{})
	var forwarding sync.WaitGroup
	if p.steering != nil {
		forwarding.Go(func() { p.forwardSightings(done) })
	}
	if p.fast.maps != nil {
		forwarding.Go(func() { p.fast.targets.run(done, p.Now) })
	}
	w, err := p.workers.run(serve)
	close(done)
	if p.steering != nil {
		p.steering.Watchlist().Stop() // an error: it has stopped
	}
	forwarding.Wait()
	if err != nil {
		return fmt.Errorf("keep worker %d on CPU %d (worker.cpu): %w", w.index, w.cpu, err)
	}
	return nil
}

// Close detaches from all ports, which then forward like any other interface again, and
// frees everything that Open made. Run must have returned.
func (p *Plane) Close() error {
	if p.thread != nil {
		p.thread.stop()
	}
	p.fast.stop()
	var closing sync.WaitGroup
	all := append(p.ports, p.opened...)
	for _, x := range all { // one after the other: the kernel takes a lock
		x.detach()
	}
	for _, x := range all {
		closing.Go(x.closeSockets) // all wait for the same RCU grace period
	}
	closing.Wait()
	p.notify.Phase("ports closed")
	errs := []error{p.programs.close()}
	if p.workers != nil {
		errs = append(errs, p.workers.close())
	}
	if p.umem != nil {
		errs = append(errs, p.umem.Close())
	}
	if p.steering != nil {
		errs = append(errs, p.steering.Close())
	}
	errs = append(errs, p.fast.close())
	return errors.Join(errs...)
}

// Now returns the time by the clock of workers and core. Any goroutine may call it.
func (p *Plane) Now() time.Duration { return time.Since(p.start) }

// Workers returns the number of workers.
func (p *Plane) Workers() int { return len(p.workers.all) }

// GroupsPerWorker returns how many groups belong to each worker. The control loop calls it.
func (p *Plane) GroupsPerWorker() []int { return slices.Clone(p.workers.owners.load) }

// RepairSpec returns the parameters of local repair of every group.
func (p *Plane) RepairSpec() mcast.RepairSpec { return p.workers.all[0].repairSpec }

// Watchlist returns the table of the addresses that the ports' XDP programs watch for.
func (p *Plane) Watchlist() *bpf.Watchlist { return p.steering.Watchlist() }

// Renewals returns the envelopes that extend leases, as they come.
func (p *Plane) Renewals() <-chan *Datagram { return p.slowPath.renewals.queued }

// Relays returns the envelopes of neighbours.
func (p *Plane) Relays() <-chan *Datagram { return p.slowPath.relays.queued }

// Requests returns all other envelopes.
func (p *Plane) Requests() <-chan *Datagram { return p.slowPath.requests.queued }

// Sightings returns the frames that were seen in a member's name elsewhere than at the
// member's location.
func (p *Plane) Sightings() <-chan Sighting { return p.slowPath.sightings }

// Changed rings when a worker's groups have new outcomes, or other delays.
func (p *Plane) Changed() <-chan struct{} { return p.workers.bell }

// HasChanged reports whether a worker has groups whose outcomes have not been read since
// they changed. Any goroutine may call it.
func (p *Plane) HasChanged(worker int) bool { return p.workers.all[worker].changed.any.Load() }

// Outcomes reads the outcomes of the changed groups of a worker into to, those that have
// waited longest first. It returns the number of these groups, and how many are left.
func (p *Plane) Outcomes(worker int, to []mcast.Outcomes) (n, left int, err error) {
	w := p.workers.all[worker]
	if !w.do(func() { n, left = w.outcomes(to) }) {
		return 0, 0, ErrStopped
	}
	return n, left, nil
}

// Stats reads the counters of all workers. Any goroutine may call it.
func (p *Plane) Stats() (*api.Stats, error) {
	var s api.Stats
	var c counters
	if !p.workers.do(func(w *worker) {
		w.reportGranted() // the counts include what the programs have forwarded until now
		c.add(&w.count)
		c.copies += w.fastCopies()
		s.FramesFree += w.pool.Len()
		for _, x := range w.ports {
			s.CEMarked += x.ceMarked
		}
		s.Workers = append(s.Workers, w.describe())
		w.meters.ack.AddTo(&s.Times.ACK)
		w.meters.stalls.AddTo(&s.Times.Stall)
	}) {
		return nil, ErrStopped
	}
	if p.workers.depot != nil {
		s.FramesFree += p.workers.depot.Len()
	}
	s.Queues = p.slowPath.queues()
	s.RxBytes, s.Resent, s.PSNProbes = c.dataBytes, c.resent, c.keepalives
	s.Rx, s.Copies, s.FeedbackIn, s.FeedbackOut = c.dataIn, c.copies, c.feedbackIn, c.feedbackOut
	s.Neighbour, s.EnvelopeIn, s.EnvelopeOut, s.EnvelopePartial = c.neighbour, c.envelopeIn, c.envelopeOut, c.envelopePartial
	s.Normal, s.Drops = c.unserved()
	return &s, nil
}

// PortIndex returns the index of the port with this interface, or -1. Any goroutine may
// call it.
func (p *Plane) PortIndex(ifindex int) int {
	if ifindex == 0 {
		return -1
	}
	for i := range p.indexes {
		if p.indexes[i].Load() == int64(ifindex) {
			return i
		}
	}
	return -1
}
