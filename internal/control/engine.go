// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/internal/control/store"
	"github.com/gleam-rdma/gleam/internal/control/tree"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
	"github.com/gleam-rdma/gleam/internal/doctor/kernel"
)

var errStopped = dataplane.ErrStopped

// Notify receives messages for the operator.
type Notify = dataplane.Notify

// PhaseMark is the message of a part of the start or the end that is over.
const PhaseMark = dataplane.PhaseMark

// Engine is a running switch: the data plane with the control plane above it. Open makes
// it; Run moves packets until its context ends; Close returns the ports to the kernel. Its
// other methods implement api.Backend.
type Engine struct {
	cfg      *config.Config
	notify   Notify
	plane    *dataplane.Plane
	control  *control
	filter   *locate.Filter // nil if the kernel refused one
	watcher  *locate.Watcher
	changes  *locate.Changes
	bridges  *location.Bridging
	guardLog *portGuardLog
	started  time.Time
	devices  *locate.Devices
	ranking  ranking
	hearing  hearing
	pinner   *location.Pinner // nil if members are not pinned
	keeper   *store.Keeper    // nil if groups are not kept over a restart
	kernel   *api.Kernel

	switches tree.Runtime
	tracing  traceSlot
}

// addressesPerMember are those that locate.Filter has room for: of the member and its next hop, and
// what it had before a move.
const addressesPerMember = 4

// Open attaches to every configured port. If it fails, it undoes everything. The errors
// name the port and a remedy.
func Open(cfg *config.Config, notify Notify) (*Engine, error) { return OpenFor(0, cfg, notify) }

// OpenFor is Open for a process that becomes user uid before Run; 0: it does not.
func OpenFor(uid int, cfg *config.Config, notify Notify) (_ *Engine, err error) {
	e := &Engine{cfg: cfg, notify: notify, started: time.Now()}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	var filter, keeper, looking sync.WaitGroup
	var filterErr, keeperErr error
	filter.Go(func() {
		e.filter, filterErr = locate.NewFilter(addressesPerMember * cfg.Limits.Groups * cfg.Limits.MembersPerGroup)
	})
	defer filter.Wait()
	looking.Go(func() { e.kernel = kernel.Look() })
	defer looking.Wait()
	keeper.Go(func() { e.keeper, keeperErr = openKeeper(cfg, uid, notify) }) // waits for the disk
	defer keeper.Wait()
	if e.plane, err = dataplane.Open(cfg, notify, func() error {
		if err := e.reportFindings(); err != nil {
			return err
		}
		notify.Phase("machine looked at")
		keeper.Wait()
		notify.Phase("state file read")
		return keeperErr
	}); err != nil {
		return nil, err
	}
	notify.Phase("ports opened")
	var indexes []int
	ports := portsOf(e.plane, cfg)
	for _, p := range ports {
		if p.Ifindex != 0 {
			indexes = append(indexes, p.Ifindex)
		}
	}
	bridges, err := locate.OpenBridges()
	if err != nil {
		return nil, err
	}
	var bridged []location.BridgedPort
	for _, p := range ports {
		bridged = append(bridged, p.bridged())
	}
	if e.bridges, err = location.NewBridging(bridges, bridged, e.bridgeChanged, notify); err != nil {
		bridges.Close()
		return nil, err
	}
	for pi, p := range ports {
		p.bridgeState = e.bridges.State(pi)
		e.plane.PresetIsolated(pi, p.bridgeState.Isolated)
	}
	if e.devices, err = locate.OpenDevices(); err != nil {
		return nil, err
	}
	if filter.Wait(); filterErr != nil {
		notify(true, "all changes of neighbours and forwarding databases are heard, also those that strangers make", "error", filterErr)
	}
	notify.Phase("netlink filter")
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
	if e.control, err = newControl(e.keeper, e.plane, ports, locator, cfg, secret, notify); err != nil {
		locator.Close()
		return nil, err
	}
	e.control.journal.Add(e.keeper.StartedEvent(api.Build(e.started)))
	e.control.kernel.watcher = e.watcher
	if e.filter != nil {
		e.control.dir.hosts.SetFilter(e.filter)
	}
	if cfg.UnconfirmedMoves != config.MoveFollow {
		if err := e.pinMembers(indexes); err != nil {
			return nil, err
		}
	}
	e.guardLog = newPortGuardLog(ports, notify)
	e.guardLog.strips = e.stripsTags
	e.control.hooks.onLinkChange = e.bridges.Wake
	e.control.hooks.onNeighbours = e.bridges.SetNeighbours
	e.control.hooks.onPortOpened = func(pi int) {
		e.bridges.Rebind(pi, ports[pi].bridged())
		e.guardLog.setPort(pi, ports[pi])
	}
	e.control.hooks.onPortState = func(pi int) { e.guardLog.setPort(pi, ports[pi]) }
	if err := e.openSwitches(); err != nil {
		return nil, err
	}
	notify.Phase("control plane made")
	err = e.plane.Loaded()
	notify.Phase("programs of further ports loaded")
	return e, err
}

// pinMembers enables the pinning of members in the kernel's tables, and removes entries
// that a killed gleamd has left there.
func (e *Engine) pinMembers(ports []int) error {
	pins, stale, err := locate.NewPins(ports)
	if err != nil {
		return err
	}
	if stale > 0 {
		e.notify(false, "gleamd has removed entries that a killed gleamd had left in the kernel's tables", "entries", stale)
	}
	e.pinner = location.NewPinner(pins, e.plane.Watchlist(), func(ip netip.Addr, err error) {
		e.notify(true, "a member is not pinned in the kernel's tables: other hosts can draw its unicast traffic to them", "member", ip, "error", err)
	})
	e.control.dir.hosts.SetPinner(e.pinner)
	return nil
}

// reportFindings reports conditions of the machine that keep groups from working, and returns
// an error for those with which the switch does not start.
func (e *Engine) reportFindings() error {
	found := checks.This().Run(e.cfg).Findings
	for _, f := range found {
		if f.EndsStart() {
			return errors.New(f.String())
		}
	}
	e.report(found)
	return nil
}

// report tells the operator of findings.
func (e *Engine) report(found []checks.Finding) {
	for _, f := range found {
		if !f.ForLog() {
			continue
		}
		var kv []any
		if f.Port != "" {
			kv = append(kv, "port", f.Port)
		}
		if r := f.Repair(); r != "" {
			kv = append(kv, "remedy", r)
		}
		e.notify(!f.Note, f.Text, kv...)
	}
}

// Run moves packets until ctx ends, and while it closes what they do not need. It may be called
// once.
func (e *Engine) Run(ctx context.Context) error {
	watch, stop := context.WithCancel(ctx)
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	var watches sync.WaitGroup
	defer watches.Wait()
	defer stop()
	watches.Go(func() { e.bridges.Run(watch) })
	watches.Go(func() { e.guardLog.run(watch) })
	watches.Go(func() { e.watchHearing(watch) })
	watches.Go(func() { e.watcher.Run(watch) })
	watches.Go(func() { e.switches.Run(serving) })
	watches.Go(func() {
		defer end()
		<-watch.Done()
		e.switches.CloseSpares()
		e.notify.Phase("spare sockets closed")
	})
	err := e.plane.Run(func() { e.control.run(serving, e.changes) })
	e.notify.Phase("workers stopped")
	e.control.keepLast()
	return err
}

// Close detaches from all ports, which then forward like any other interface again, and
// frees everything that Open made. Run must have returned.
func (e *Engine) Close() error {
	if e.control != nil {
		e.control.kernel.locator.Close()
	}
	if e.bridges != nil {
		e.bridges.Close()
	}
	if e.devices != nil {
		e.devices.Close()
	}
	var beside sync.WaitGroup // the work while the ports are closed
	var keeping, switching error
	beside.Go(func() { keeping = e.keeper.Close() })
	beside.Go(func() { switching = e.switches.Close() })
	var errs []error
	if e.pinner != nil {
		errs = append(errs, e.pinner.Close())
	}
	if e.watcher != nil {
		e.watcher.Close()
	}
	if e.filter != nil {
		errs = append(errs, e.filter.Close())
	}
	if e.plane != nil {
		errs = append(errs, e.plane.Close())
	}
	beside.Wait()
	return errors.Join(append(errs, keeping, switching)...)
}
