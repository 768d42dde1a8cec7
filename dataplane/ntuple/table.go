// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package ntuple has NICs put what is for an address into a certain receive queue,
// by the rules that `ethtool -N DEV flow-type udp4 dst-ip A dst-port P action Q`
// makes. Not every driver has such rules, and tables are small: a rule that cannot
// be had costs speed, not correctness.
package ntuple

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// Commands and flags of struct ethtool_rxnfc (include/uapi/linux/ethtool.h).
const (
	cmdCount  = 0x2e // ETHTOOL_GRXCLSRLCNT
	cmdAll    = 0x30 // ETHTOOL_GRXCLSRLALL
	cmdDelete = 0x31 // ETHTOOL_SRXCLSRLDEL
	cmdInsert = 0x32 // ETHTOOL_SRXCLSRLINS

	udp4 = 0x02 // UDP_V4_FLOW
	udp6 = 0x06 // UDP_V6_FLOW

	anyLocation     = 0xffffffff // RX_CLS_LOC_ANY
	specialLocation = 0x80000000 // RX_CLS_LOC_SPECIAL: the driver finds a place itself
)

// Places of the fields of struct ethtool_rxnfc, whose fs is a struct
// ethtool_rx_flow_spec, and within its unions, of the specifications of UDP.
const (
	atData     = 8
	atFlow     = 16
	atValue    = 20
	atMask     = 92
	atQueue    = 168
	atLocation = 176
	atCount    = 184
	atList     = 188
	size       = 192

	dst4, port4 = 4, 10
	dst6, port6 = 16, 34
)

// Table is an interface's table of rules, of which it knows its own. It is for one
// goroutine.
type Table struct {
	name  string
	fd    int
	ioctl func(request []byte) error
	own   []uint32 // locations
}

// ErrUnsupported means that the driver has no such rules.
var ErrUnsupported = errors.New("the driver has no ntuple rules")

// Open returns the table of an interface in the calling thread's network namespace.
// If the driver has no rules the error wraps ErrUnsupported.
func Open(name string) (*Table, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("ntuple rules of %s: %w", name, err)
	}
	t := New(name, func(request []byte) error { return call(fd, name, request) })
	t.fd = fd
	if _, _, err := t.count(); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return t, nil
}

// New returns the table of an interface whose struct ethtool_rxnfc go to ioctl and
// are answered in place.
func New(name string, ioctl func(request []byte) error) *Table {
	return &Table{name: name, fd: -1, ioctl: ioctl}
}

// Add has what is for UDP port port of dst received by a queue, and returns where
// the rule is. Needs CAP_NET_ADMIN.
func (t *Table) Add(dst netip.Addr, port uint16, queue int) (location uint32, err error) {
	if location, err = t.free(); err != nil {
		return 0, err
	}
	b := rule(dst, port, queue, location)
	if err := t.ioctl(b); err != nil {
		return 0, t.fail(fmt.Sprintf("receive %s by queue %d", dst, queue), err)
	}
	location = binary.NativeEndian.Uint32(b[atLocation:])
	t.own = append(t.own, location)
	return location, nil
}

// rule encodes the request for a rule.
func rule(dst netip.Addr, port uint16, queue int, location uint32) []byte {
	b := request(cmdInsert)
	e := binary.NativeEndian
	flow, atDst, atPort, ip := uint32(udp4), dst4, port4, dst.AsSlice()
	if dst.Is6() {
		flow, atDst, atPort = udp6, dst6, port6
	}
	e.PutUint32(b[atFlow:], flow)
	copy(b[atValue+atDst:], ip)
	binary.BigEndian.PutUint16(b[atValue+atPort:], port)
	// Bits that are set are compared.
	for i := range ip {
		b[atMask+atDst+i] = 0xFF
	}
	binary.BigEndian.PutUint16(b[atMask+atPort:], 0xFFFF)
	e.PutUint64(b[atQueue:], uint64(queue))
	e.PutUint32(b[atLocation:], location)
	return b
}

// Delete takes back a rule that Add made.
func (t *Table) Delete(location uint32) error {
	i := slices.Index(t.own, location)
	if i < 0 {
		return fmt.Errorf("ntuple rules of %s: rule %d is not ours", t.name, location)
	}
	t.own = slices.Delete(t.own, i, i+1)
	b := request(cmdDelete)
	binary.NativeEndian.PutUint32(b[atLocation:], location)
	if err := t.ioctl(b); err != nil {
		return t.fail(fmt.Sprintf("delete rule %d", location), err)
	}
	return nil
}

// Close takes back all rules that Add made. If the interface is gone so are they.
func (t *Table) Close() error {
	var errs []error
	for len(t.own) > 0 {
		if err := t.Delete(t.own[len(t.own)-1]); err != nil && !errors.Is(err, unix.ENODEV) {
			errs = append(errs, err)
		}
	}
	if t.fd >= 0 {
		errs = append(errs, unix.Close(t.fd))
		t.fd = -1
	}
	return errors.Join(errs...)
}

// free returns where a rule may be put: wherever the driver likes, or, if it wants
// to be told, the last free place, since the first rule that fits a packet counts
// and somebody may have put his own there.
func (t *Table) free() (uint32, error) {
	rules, special, err := t.count()
	if err != nil {
		return 0, err
	}
	if special {
		return anyLocation, nil
	}
	b := append(request(cmdAll), make([]byte, 4*rules)...)
	binary.NativeEndian.PutUint32(b[atCount:], uint32(rules))
	if err := t.ioctl(b); err != nil {
		return 0, t.fail("list them", err)
	}
	places := int(binary.NativeEndian.Uint64(b[atData:]))
	used := make(map[uint32]bool)
	for i := range min(rules, int(binary.NativeEndian.Uint32(b[atCount:]))) {
		used[binary.NativeEndian.Uint32(b[atList+4*i:])] = true
	}
	for at := places - 1; at >= 0; at-- {
		if !used[uint32(at)] {
			return uint32(at), nil
		}
	}
	return 0, fmt.Errorf("ntuple rules of %s: all %d slots are taken (see `ethtool -n %s`)", t.name, places, t.name)
}

// count returns how many rules there are, and whether the driver finds a place for a
// new one itself.
func (t *Table) count() (rules int, special bool, err error) {
	b := request(cmdCount)
	if err := t.ioctl(b); err != nil {
		return 0, false, t.fail("count them", err)
	}
	return int(binary.NativeEndian.Uint32(b[atCount:])), binary.NativeEndian.Uint64(b[atData:])&specialLocation != 0, nil
}

func request(cmd uint32) []byte {
	b := make([]byte, size)
	binary.NativeEndian.PutUint32(b, cmd)
	return b
}

func (t *Table) fail(what string, err error) error {
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("ntuple rules of %s: %w (%w)", t.name, ErrUnsupported, err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("ntuple rules of %s: %s: %w: this needs CAP_NET_ADMIN", t.name, what, err)
	}
	return fmt.Errorf("ntuple rules of %s: %s: %w; are they on? `ethtool -K %s ntuple on`", t.name, what, err, t.name)
}
