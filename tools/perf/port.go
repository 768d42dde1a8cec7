// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/dcqcn"
	"github.com/gleam-rdma/gleam/endpoint"
	"github.com/gleam-rdma/gleam/endpoint/soft"
	"github.com/gleam-rdma/gleam/endpoint/verbs"
)

// Backends, as the command line names them.
const (
	Soft  = "soft"  // endpoint/soft: any Ethernet interface
	Verbs = "verbs" // endpoint/verbs: an RNIC, or rdma_rxe
)

// port is a device with the address to use, and the counters of its interface.
type port struct {
	endpoint.Device
	ip    netip.Addr
	iface string          // "" if not known
	nl    *netlink.Handle // of the namespace that the port was opened in

	mapped [][]byte
}

// openPort opens the device that l describes, for a test of params. beside is the local
// address of the connection to the other side: where l names no interface or address,
// those of beside are used. v6 selects the family of the address.
func openPort(l *Local, params *Params, beside netip.Addr, v6 bool) (_ *port, err error) {
	p := &port{iface: l.Interface}
	if p.iface == "" && (l.Backend == Soft || l.Device == "") {
		if p.iface, err = interfaceOf(beside); err != nil {
			return nil, fmt.Errorf("%w: name the interface by --interface", err)
		}
	}
	if l.Backend == Verbs {
		p.Device, err = verbs.Open(verbs.Config{Device: l.Device, Interface: p.iface})
	} else {
		cfg := soft.Config{Interface: p.iface, Rate: int64(params.Rate)}
		if params.Congestion {
			cfg.Congestion = &dcqcn.Config{}
		}
		p.Device, err = soft.Open(cfg)
	}
	if err != nil {
		return nil, err
	}
	if p.ip, err = chooseAddr(p.Addrs(), beside, v6); err != nil {
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

// sent returns the bytes that the interface has sent, as the kernel counts them, if they
// are known: an RNIC's RDMA traffic bypasses the kernel.
func (p *port) sent() (bytes uint64, known bool) {
	if p.iface == "" {
		return 0, false
	}
	l, err := p.nl.LinkByName(p.iface)
	if err != nil || l.Attrs().Statistics == nil {
		return 0, false
	}
	return l.Attrs().Statistics.TxBytes, true
}

// buffer returns registered memory that is aligned to pages, as the verbs backend
// requires, and occupies none until it is written. It is freed with the port.
func (p *port) buffer(n int, iova uint64, access endpoint.Access) (endpoint.MR, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes: %w", n, err)
	}
	p.mapped = append(p.mapped, b)
	return p.RegisterMemory(b, iova, access)
}

// close closes the device first: it may still use the memory until then.
func (p *port) close() error {
	p.nl.Close()
	err := p.Device.Close()
	for _, b := range p.mapped {
		err = errors.Join(err, unix.Munmap(b))
	}
	return err
}
