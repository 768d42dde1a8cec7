// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"encoding/binary"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// Devices reads the counters of interfaces. Any goroutine may use it.
type Devices struct {
	mu     sync.Mutex
	reader Bridges
}

// OpenDevices opens netlink in the calling thread's network namespace.
func OpenDevices() (*Devices, error) {
	k, err := openKernel()
	if err != nil {
		return nil, fmt.Errorf("open netlink for counters of interfaces: %w", err)
	}
	return &Devices{reader: Bridges{k}}, nil
}

// Close releases the socket.
func (d *Devices) Close() { d.reader.Close() }

// DeviceCounters are those of struct rtnl_link_stats64 (linux/if_link.h).
type DeviceCounters struct {
	RXPackets, TXPackets uint64
	RXBytes, TXBytes     uint64
	RXErrors, TXErrors   uint64
	RXDropped, TXDropped uint64
	RXMissed             uint64 // packets for which the NIC had no buffer
	RXOverruns           uint64
}

// Indexes of fields of struct rtnl_link_stats64.
const (
	statRXPackets = iota
	statTXPackets
	statRXBytes
	statTXBytes
	statRXErrors
	statTXErrors
	statRXDropped
	statTXDropped
	statRXOverruns = 11
	statRXMissed   = 15
	numStats       = 16 // the number of fields that are read
)

// Counters returns the counters of an interface.
func (d *Devices) Counters(ifindex int) (*DeviceCounters, error) {
	d.mu.Lock()
	link, err := d.reader.link(ifindex)
	d.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("ask for the counters of interface %d: %w", ifindex, err)
	}
	b := attribute(link, unix.IFLA_STATS64)
	if len(b) < 8*numStats {
		return nil, fmt.Errorf("the kernel's counters of interface %d have %d bytes, want %d", ifindex, len(b), 8*numStats)
	}
	at := func(i int) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }
	return &DeviceCounters{
		at(statRXPackets), at(statTXPackets), at(statRXBytes), at(statTXBytes), at(statRXErrors), at(statTXErrors),
		at(statRXDropped), at(statTXDropped), at(statRXMissed), at(statRXOverruns),
	}, nil
}
