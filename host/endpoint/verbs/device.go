// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

//go:build verbs && cgo

package verbs

// #cgo LDFLAGS: -libverbs
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Built says whether this program has the backend.
const Built = true

// device is an endpoint.Device.
type device struct {
	name  string
	port  uint8
	gids  []gid // one for each address
	ctx   *C.struct_ibv_context
	pd    *C.struct_ibv_pd
	limit limits

	mu     sync.Mutex // guards what follows, and ctx and pd from being closed under somebody
	mtu    int        // active path MTU when it was last read
	closed bool
	qps    map[*qp]bool
	mrs    map[*mr]bool
}

// limits are the device's own.
type limits struct {
	workRequests int // work requests of one queue
	completions  int // completions of one completion queue
	message      int // bytes
}

func open(cfg Config) (endpoint.Device, error) {
	ifindex := 0
	if cfg.Interface != "" {
		i, err := net.InterfaceByName(cfg.Interface)
		if err != nil {
			return nil, err
		}
		ifindex = i.Index
	}
	var count C.int
	list, err := C.ibv_get_device_list(&count)
	if list == nil {
		return nil, callError(callList, errnoOf(err))
	}
	defer C.ibv_free_device_list(list)
	var tried []candidate
	var failed []error // errors of devices that agree
	names := make(map[string]bool)
	for _, dev := range unsafe.Slice(list, int(count)) {
		name := C.GoString(C.ibv_get_device_name(dev))
		names[name] = true
		if cfg.Device != "" && cfg.Device != name {
			continue
		}
		d, other, err := openDevice(dev, name, cfg, ifindex)
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		case d != nil:
			return d, nil
		}
		tried = append(tried, other)
	}
	if failed != nil {
		return nil, errors.Join(failed...)
	}
	return nil, noDevice(cfg, tried, kernelOnly(names))
}

// kernelOnly returns the kernel's devices that are not in known.
func kernelOnly(known map[string]bool) (lacking []string) {
	entries, _ := os.ReadDir("/sys/class/infiniband") // there is none without devices
	for _, e := range entries {
		if !known[e.Name()] {
			lacking = append(lacking, e.Name())
		}
	}
	return lacking
}

// openDevice returns a device if it agrees with cfg, an error if it does and yet
// cannot be used, else what it is.
func openDevice(dev *C.struct_ibv_device, name string, cfg Config, ifindex int) (*device, candidate, error) {
	other := candidate{name: name}
	ctx, err := C.ibv_open_device(dev)
	if ctx == nil {
		other.err = callError(callOpen, errnoOf(err))
		return nil, other, nil
	}
	d := &device{name: name, ctx: ctx, qps: make(map[*qp]bool), mrs: make(map[*mr]bool)}
	other.table, other.err = d.readGIDs()
	if d.gids = chooseGIDs(other.table, cfg, ifindex); d.gids == nil {
		C.ibv_close_device(ctx)
		return nil, other, nil
	}
	if err := d.start(); err != nil {
		C.ibv_close_device(ctx)
		return nil, other, err
	}
	return d, other, nil
}

// readGIDs returns the GID table of all ports.
func (d *device) readGIDs() ([]gid, error) {
	entries := make([]C.struct_ibv_gid_entry, 256)
	for {
		n, err := C._ibv_query_gid_table(d.ctx, &entries[0], C.size_t(len(entries)), 0, C.sizeof_struct_ibv_gid_entry)
		if n < 0 && unix.Errno(-n) == unix.EINVAL && len(entries) < 1<<16 { // too small a table
			entries = make([]C.struct_ibv_gid_entry, 4*len(entries))
			continue
		}
		if n < 0 {
			if n < -1 {
				err = unix.Errno(-n)
			}
			return nil, callError(callGIDs, errnoOf(err))
		}
		entries = entries[:n]
		break
	}
	table := make([]gid, 0, len(entries))
	for _, e := range entries {
		if e.gid_index > math.MaxUint8 { // ibv_global_route has no room for it
			continue
		}
		table = append(table, gid{
			addr: gidAddr(e.gid), port: uint8(e.port_num), index: uint8(e.gid_index),
			rocev2: e.gid_type == C.IBV_GID_TYPE_ROCE_V2, ifindex: int(e.ndev_ifindex),
		})
	}
	return table, nil
}

// start makes what queue pairs need.
func (d *device) start() error {
	d.port = d.gids[0].port
	port, err := d.queryPort()
	if err != nil {
		return err
	}
	if port.state != C.IBV_PORT_ACTIVE {
		return fmt.Errorf("port %d is not active (%s): is its network interface up?", d.port, C.GoString(C.ibv_port_state_str(port.state)))
	}
	var attr C.struct_ibv_device_attr
	if rc := C.ibv_query_device(d.ctx, &attr); rc != 0 {
		return callError(callDevice, unix.Errno(rc))
	}
	d.mtu = rocev2.PathMTUOfCode(uint32(port.active_mtu))
	d.limit = limits{workRequests: int(attr.max_qp_wr), completions: int(attr.max_cqe), message: int(port.max_msg_sz)}
	if d.pd, err = C.ibv_alloc_pd(d.ctx); d.pd == nil {
		return callError(callPD, errnoOf(err))
	}
	return nil
}

func (d *device) queryPort() (port C.struct_ibv_port_attr, err error) {
	if rc := C.gleam_query_port(d.ctx, C.uint8_t(d.port), &port); rc != 0 {
		err = callError(callPort, unix.Errno(-rc))
	}
	return port, err
}

// errnoOf returns the errno that cgo found after a call, EIO if none.
func errnoOf(err error) unix.Errno {
	var e unix.Errno
	if errors.As(err, &e) && e != 0 {
		return e
	}
	return unix.EIO
}

// Addrs returns the addresses of the device's GIDs.
func (d *device) Addrs() []netip.Addr {
	all := make([]netip.Addr, len(d.gids))
	for i, g := range d.gids {
		all[i] = g.addr
	}
	return all
}

// MaxPathMTU returns the port's active MTU, which follows that of its network
// interface.
func (d *device) MaxPathMTU() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.mtu
	}
	if port, err := d.queryPort(); err == nil {
		d.mtu = rocev2.PathMTUOfCode(uint32(port.active_mtu))
	}
	return d.mtu
}

func (d *device) errClosed() error { return fmt.Errorf("device %s: %w", d.name, endpoint.ErrClosed) }

// Close destroys queue pairs, regions and the device, in that order.
func (d *device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	qps, mrs := slices.Collect(maps.Keys(d.qps)), slices.Collect(maps.Keys(d.mrs))
	d.mu.Unlock()
	var errs []error
	for _, q := range qps {
		errs = append(errs, q.Close())
	}
	for _, m := range mrs {
		errs = append(errs, m.Close())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if rc := C.ibv_dealloc_pd(d.pd); rc != 0 {
		errs = append(errs, callError("ibv_dealloc_pd", unix.Errno(rc)))
	}
	if rc := C.ibv_close_device(d.ctx); rc != 0 {
		errs = append(errs, callError("ibv_close_device", errnoOf(nil)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close %s: %w", d.name, err)
	}
	return nil
}
