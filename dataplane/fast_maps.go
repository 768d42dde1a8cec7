// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"cmp"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/config"
)

// fastMaps are the maps of the fast path, and the thread that changes them. The zero value is
// none.
type fastMaps struct {
	maps    *fastpath.Maps
	thread  *portThread
	targets *fastTargets
}

// open makes the maps, before the programs are loaded, if the configuration wants them.
func (x *fastMaps) open(s *bpf.Steering, cfg *config.Config, found []foundPort, notify Notify) (err error) {
	if cfg.FastPath == config.FastPathOff {
		return nil
	}
	if x.maps, err = fastpath.New(fastRoom(cfg, found)); err != nil {
		if x.maps = nil; cfg.FastPath == config.FastPathRequire {
			return fmt.Errorf("fast_path is require: %w", err)
		}
		notify(true, "no group takes the fast path", "error", err)
		return nil
	}
	s.UseFastPath(x.maps)
	notify.Phase("maps of the fast path")
	return nil
}

// growTable makes the kernel's table of this process's file descriptors large enough for all DEVMAPs. The kernel waits
// for an RCU grace period each time that the table grows, and only doubles it if no more is asked for (expand_files in fs/file.c).
func growTable() {
	if fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 2*maxFastGroups-1); err == nil { // an error: the limit is lower
		_ = unix.Close(fd)
	}
}

// largeMTU is the MTU from which on packets may need large slots.
const largeMTU = 2000

// maxFastGroups bounds the groups with up to usualLegs receivers that there is room for beside the memory of
// their rings: each has a DEVMAP, which is a file descriptor.
const (
	maxFastGroups = 1 << 10
	usualLegs     = 16
)

// fastRoom returns the room for groups: as many slots as there is memory for, half of it in long ones if
// a port takes long packets, and as many groups as there are smallest rings. DEVMAPs with room for many
// receivers are for few groups, those for few receivers for some: more of these have larger ones.
func fastRoom(cfg *config.Config, found []foundPort) fastpath.Config {
	c := fastpath.Config{Ports: len(cfg.Ports) + sparePorts, Slots: cfg.FastPathMemory / smallestSlot}
	for i := range found {
		if mtu := found[i].Link.Attrs().MTU; mtu >= largeMTU {
			c.Slots, c.LargeSlots = c.Slots/2, cfg.FastPathMemory/2/largestSlot
			break
		}
	}
	rings := min((c.Slots+c.LargeSlots)/minFastSlots, maxFastGroups)
	for legs := 2; legs <= fastpath.MaxGroupLegs; legs *= 2 {
		n := rings / 8
		if legs >= usualLegs {
			n = rings / (legs / usualLegs) / (legs / usualLegs)
		}
		c.Sizes = append(c.Sizes, fastpath.Size{Legs: legs, Groups: max(1, n)})
	}
	return c
}

// enable makes the workers use the maps.
func (x *fastMaps) enable(c *workers, notify Notify, start time.Time) {
	if x.maps == nil {
		return
	}
	s := newFastShared(x.maps, x.thread, x.targets, notify, start)
	for _, w := range c.all {
		w.enableFastPath(s)
	}
	for pi, p := range c.ports {
		x.targets.setPort(pi, &p.portIdentity)
	}
	x.targets.look(time.Since(start))
	x.targets.changed = func(int) { c.do(func(w *worker) { w.disturbFast() }) }
}

// check finds out whether the kernel has taken the programs. The ports are attached.
func (x *fastMaps) check(s *bpf.Steering, cfg *config.Config, notify Notify) error {
	if x.maps == nil {
		return nil
	}
	err := cmp.Or(x.maps.Complete(), s.FastPathError())
	switch {
	case err == nil:
		x.targets = newFastTargets(x.maps, len(cfg.Ports)+sparePorts, cfg.FastPath == config.FastPathRequire, notify)
		x.thread, err = newPortThread()
		return err
	case cfg.FastPath == config.FastPathRequire:
		return fmt.Errorf("fast_path is require, and the kernel refuses its program: %w", err)
	}
	notify(true, "no group takes the fast path: the kernel refuses its program", "error", err)
	err = x.maps.Close()
	x.maps = nil
	return err
}

// stop ends the thread.
func (x *fastMaps) stop() {
	if x.thread != nil {
		x.thread.stop()
	}
}

// close frees the maps. The programs are detached, and closed.
func (x *fastMaps) close() error {
	if x.targets != nil {
		x.targets.close()
	}
	if x.maps == nil {
		return nil
	}
	return x.maps.Close()
}
