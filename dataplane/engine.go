// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/locate"
	"github.com/gleam-rdma/gleam/dataplane/ntuple"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/envelope"
)

var errStopped = errors.New("the switch has stopped")

// Notify receives messages for the operator: msg, and pairs of key and value. warn marks
// a message about a problem. Notify is called from several goroutines.
type Notify func(warn bool, msg string, kv ...any)

// Engine is a running switch. Open makes it; Run moves packets until its context ends;
// Close returns the ports to the kernel. Its other methods implement api.Backend.
type Engine struct {
	cfg      *config.Config
	notify   Notify
	steering *bpf.Steering
	umem     *xsk.Umem
	ports    []*port
	workers  *workers
	control  *control
	filter   *locate.Filter // nil if the kernel refused one
	watcher  *locate.Watcher
	changes  *locate.Changes
	bridges  *bridgeFollower
	started  time.Time
	pinner   *pinner // nil if members are not pinned
}

// Open attaches to every configured port. If it fails, it undoes everything. The errors
// name the port and a remedy.
func Open(cfg *config.Config, notify Notify) (_ *Engine, err error) {
	e := &Engine{cfg: cfg, notify: notify, started: time.Now()}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	e.reportFindings()
	if e.steering, err = bpf.NewSteering(cfg.GroupPrefixes, cfg.Envelope.UDPPort); err != nil {
		return nil, err
	}
	if e.umem, err = xsk.NewUmem(cfg.UMEM.Frames, cfg.UMEM.FrameSize); err != nil {
		return nil, err
	}
	var indexes []int
	for i := range cfg.Ports {
		p, err := openPort(&cfg.Ports[i], cfg, e.steering, e.umem)
		if err != nil {
			return nil, err
		}
		e.ports = append(e.ports, p)
		indexes = append(indexes, p.ifindex)
		e.reportMode(p)
		e.openRules(p)
	}
	if n := runtime.NumCPU(); cfg.Worker.Spin > 0 && !maySpin(cfg.Worker.CPUs, n) {
		notify(true, "no CPU to itself for each worker, and one more: workers sleep whenever they have nothing to do, which costs latency",
			"workers", len(cfg.Worker.CPUs), "cpus", n, "remedy", "fewer workers in worker.cpu, or spin: 0 to agree")
	}
	kernel, err := locate.OpenBridges()
	if err != nil {
		return nil, err
	}
	if e.bridges, err = newBridgeFollower(kernel, e.ports, cfg, notify); err != nil {
		kernel.Close()
		return nil, err
	}
	e.bridges.apply = e.bridgeChanged
	if e.workers, err = newWorkers(e.ports, e.umem, cfg); err != nil {
		return nil, err
	}
	if e.filter, err = locate.NewFilter(); err != nil {
		notify(true, "all changes of neighbours and forwarding databases are heard, also those that strangers make", "error", err)
	}
	e.changes = locate.NewChanges()
	if e.watcher, err = locate.NewWatcher(e.changes, e.filter, e.watchReports()); err != nil {
		return nil, err
	}
	locator, err := locate.New(indexes)
	if err != nil {
		return nil, err
	}
	var secret [envelope.SecretLen]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return nil, fmt.Errorf("draw the registrar's secret: %w", err)
	}
	if e.control, err = newControl(e.workers, locator, cfg, secret, notify); err != nil {
		locator.Close()
		return nil, err
	}
	e.control.watcher = e.watcher
	if e.filter != nil {
		e.control.dir.hosts.filter = e.filter
	}
	if cfg.UnconfirmedMoves != config.MoveFollow {
		if err := e.pinMembers(indexes); err != nil {
			return nil, err
		}
	}
	e.control.onLinkChange = e.bridges.wake
	return e, nil
}

// pinMembers enables the pinning of members in the kernel's tables, and removes entries
// that a killed gleamd has left there.
func (e *Engine) pinMembers(ports []int) error {
	kernel, stale, err := locate.NewPins(ports)
	if err != nil {
		return err
	}
	if stale > 0 {
		e.notify(false, "entries removed that a gleamd which was killed has left in the kernel's tables", "entries", stale)
	}
	e.pinner = newPinner(kernel, e.steering.Watchlist(), func(ip netip.Addr, err error) {
		e.notify(true, "a member is not pinned in the kernel's tables: other hosts can draw its unicast traffic to them", "member", ip, "error", err)
	})
	e.control.setPinner(e.pinner)
	return nil
}

// reportMode reports the mode of p, with a warning if it is slower than it could be.
func (e *Engine) reportMode(p *port) {
	copyMode := "copy"
	if p.sockets[0].ZeroCopy() {
		copyMode = "zero-copy"
	}
	e.notify(false, "port attached", "port", p.name, "mac", p.mac, "mtu", p.mtu,
		"xdp", p.xdp.Mode().String(), "af_xdp", copyMode, "queues", len(p.sockets), "multi_buffer", p.multiBuffer)
	if err := p.xdp.NativeError(); err != nil {
		e.notify(true, "the driver has no native XDP: this port runs in generic mode, slower", "port", p.name, "error", err)
	}
}

// reportFindings reports conditions of the machine that keep groups from working.
func (e *Engine) reportFindings() {
	for _, f := range Check(e.cfg) {
		if f.Fatal {
			continue // openPort will return an error
		}
		var kv []any
		if f.Port != "" {
			kv = append(kv, "port", f.Port)
		}
		if f.Remedy != "" {
			kv = append(kv, "remedy", f.Remedy)
		}
		e.notify(true, f.Text, kv...)
	}
}

// openRules opens the rule table of p's NIC, if steering by NIC rules is configured and
// useful.
func (e *Engine) openRules(p *port) {
	if !e.cfg.XDP.NTuple || len(e.cfg.Worker.CPUs) == 1 || len(p.sockets) == 1 {
		return
	}
	var err error
	if p.nicRules, err = ntuple.Open(p.name); err != nil {
		e.notify(true, "groups are not steered to their workers' queues", "port", p.name, "error", err)
	}
}

// Run moves packets until ctx ends. It may be called once.
func (e *Engine) Run(ctx context.Context) error {
	watch, stop := context.WithCancel(ctx)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer stop()
	watches.Go(func() { e.bridges.run(watch) })
	watches.Go(func() { newPortGuardLog(e.ports, e.notify).run(watch) })
	list := e.steering.Watchlist()
	watches.Go(func() { e.watcher.Run(watch) })
	watches.Go(func() { e.control.forwardSightings(list) })
	defer list.Stop()
	if w, err := e.workers.run(func() { e.control.run(ctx, e.changes) }); err != nil {
		return fmt.Errorf("keep worker %d on CPU %d (worker.cpu): %w", w.index, w.cpu, err)
	}
	return nil
}

// Close detaches from all ports, which then forward like any other interface again, and
// frees everything that Open made. Run must have returned.
func (e *Engine) Close() error {
	if e.control != nil {
		e.control.locator.Close()
	}
	if e.bridges != nil {
		e.bridges.kernel.Close()
	}
	for _, p := range e.ports {
		p.close()
	}
	var errs []error
	if e.pinner != nil {
		errs = append(errs, e.pinner.close())
	}
	if e.watcher != nil {
		e.watcher.Close()
	}
	if e.filter != nil {
		errs = append(errs, e.filter.Close())
	}
	if e.workers != nil {
		errs = append(errs, e.workers.close())
	}
	if e.umem != nil {
		errs = append(errs, e.umem.Close())
	}
	if e.steering != nil {
		errs = append(errs, e.steering.Close())
	}
	return errors.Join(errs...)
}

func bpfMode(m config.XDPMode) bpf.Mode {
	switch m {
	case config.XDPNative:
		return bpf.Native
	case config.XDPGeneric:
		return bpf.Generic
	}
	return bpf.Auto
}

func xskMode(z config.ZeroCopy) xsk.Mode {
	switch z {
	case config.ZeroCopyNever:
		return xsk.Copy
	case config.ZeroCopyAlways:
		return xsk.ZeroCopy
	}
	return xsk.Auto
}
