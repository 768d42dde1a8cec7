// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package port opens the device of a host for the tools that run on it: `gleam perf`,
// `gleam cp` and `gleam rank`.
package port

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/host/endpoint/verbs"
	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
)

// Soft and Verbs are the backends, as the command line names them.
const (
	Soft  = "soft"  // host/endpoint/soft: any Ethernet interface
	Verbs = "verbs" // host/endpoint/verbs: an RNIC, or rdma_rxe
)

// Backends are all backends.
var Backends = []string{Soft, Verbs}

// Config says which device is opened, and how.
type Config struct {
	Backend   string // Soft or Verbs
	Interface string // network interface [the one that has the address Beside]
	Device    string // RDMA device, for Verbs [the first that fits]
	// Beside is the local address of the connection to the other side. Where neither
	// an interface nor an address is named, those of Beside are used.
	Beside     netip.Addr
	IPv6       bool          // family of the address
	Rate       int64         // bits/s of each queue pair, for Soft [no bound]
	Congestion *dcqcn.Config // congestion control, for Soft [off]
}

// Port is a device with the address to use, and the counters of its interface.
type Port struct {
	endpoint.Device
	IP    netip.Addr
	iface string          // "" if not known
	nl    *netlink.Handle // the handle of the namespace that the port was opened in

	mapped [][]byte
}

// Open opens the device that c describes, in the network namespace of the calling thread.
func Open(c Config) (_ *Port, err error) {
	p := &Port{iface: c.Interface}
	if p.iface == "" && (c.Backend == Soft || c.Device == "") {
		if p.iface, err = interfaceOf(c.Beside); err != nil {
			return nil, fmt.Errorf("%w: name the interface by --interface", err)
		}
	}
	if c.Backend == Verbs {
		p.Device, err = verbs.Open(verbs.Config{Device: c.Device, Interface: p.iface})
	} else {
		p.Device, err = soft.Open(soft.Config{Interface: p.iface, Rate: c.Rate, Congestion: c.Congestion})
	}
	if err != nil {
		return nil, err
	}
	if p.IP, err = chooseAddr(p.Addrs(), c.Beside, c.IPv6); err != nil {
		return nil, errors.Join(err, p.Device.Close())
	}
	if p.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return nil, errors.Join(fmt.Errorf("netlink: %w", err), p.Device.Close())
	}
	return p, nil
}

// chooseAddr returns beside if it is one of a device's addresses, else the first address
// of the family.
func chooseAddr(addrs []netip.Addr, beside netip.Addr, v6 bool) (netip.Addr, error) {
	family := "IPv4"
	if v6 {
		family = "IPv6"
	}
	if beside.Is6() == v6 && slices.Contains(addrs, beside) {
		return beside, nil
	}
	for _, a := range addrs {
		if a.Is6() == v6 {
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("the device has no %s address: it has %v", family, addrs)
}

// interfaceOf finds the interface, in the calling thread's namespace, that has
// an address.
func interfaceOf(ip netip.Addr) (string, error) {
	list, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, i := range list {
		addrs, err := i.Addrs()
		if err != nil {
			continue // the interface has just been removed
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				if x, ok := netip.AddrFromSlice(n.IP); ok && x.Unmap() == ip.Unmap().WithZone("") {
					return i.Name, nil
				}
			}
		}
	}
	return "", fmt.Errorf("no interface has the address %s", ip)
}

// Sent returns the bytes that the interface has sent, as the kernel counts them, if they
// are known: an RNIC's RDMA traffic bypasses the kernel.
func (p *Port) Sent() (bytes uint64, known bool) {
	if p.iface == "" {
		return 0, false
	}
	l, err := p.nl.LinkByName(p.iface)
	if err != nil || l.Attrs().Statistics == nil {
		return 0, false
	}
	return l.Attrs().Statistics.TxBytes, true
}

// Buffer returns registered memory that is aligned to pages, as the verbs backend
// requires, and occupies none until it is written. It is freed with the port.
func (p *Port) Buffer(n int, iova uint64, access endpoint.Access) (endpoint.MR, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes: %w", n, err)
	}
	p.mapped = append(p.mapped, b)
	return p.RegisterMemory(b, iova, access)
}

// Close closes the device first: it may still use the memory until then.
func (p *Port) Close() error {
	p.nl.Close()
	err := p.Device.Close()
	for _, b := range p.mapped {
		err = errors.Join(err, unix.Munmap(b))
	}
	return err
}
