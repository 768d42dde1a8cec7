// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/config/linkrate"
)

// End is one end of a veth pair.
type End struct {
	NS     *Namespace
	Name   string           // interface name, at most 15 bytes
	MAC    net.HardwareAddr // nil: the kernel's choice, random
	Queues int              // RX and TX queues each; 0 means 1
	Index  int              // interface index, of the first end of a pair only; 0: the kernel's choice
}

// Veth joins two namespaces by a veth pair and sets both ends up. mtu is in
// bytes without the Ethernet header; 0 means 1500.
//
// One queue by default: on a veth the sender's CPU or flow hash picks the
// receiver's queue, so a test that binds an AF_XDP socket to queue 0 sees all
// traffic only if there is no other queue.
func Veth(a, b End, mtu int) error {
	if mtu == 0 {
		mtu = 1500
	}
	a.Queues, b.Queues = max(a.Queues, 1), max(b.Queues, 1)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr, attrs.Index = a.Name, mtu, a.MAC, a.Index
	attrs.NumTxQueues, attrs.NumRxQueues = a.Queues, a.Queues
	link := &netlink.Veth{
		LinkAttrs: attrs,
		PeerName:  b.Name, PeerHardwareAddr: b.MAC, PeerMTU: uint32(mtu),
		PeerNumTxQueues: uint32(b.Queues), PeerNumRxQueues: uint32(b.Queues),
		PeerNamespace: netlink.NsFd(int(b.NS.file.Fd())),
	}
	if err := a.NS.handle.LinkAdd(link); err != nil {
		return fmt.Errorf("veth %s in %s to %s in %s: %w", a.Name, a.NS.name, b.Name, b.NS.name, err)
	}
	return errors.Join(a.NS.SetUp(a.Name), b.NS.SetUp(b.Name))
}

// Bridge makes a bridge and sets it up: spanning tree off and no forward delay,
// so that ports forward at once, and multicast snooping off, so that group
// traffic of any kind is flooded as by a plain switch.
func (n *Namespace) Bridge(name string, mac net.HardwareAddr, mtu int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU = name, mac, mtu
	snooping := false
	if err := n.handle.LinkAdd(&netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &snooping}); err != nil {
		return fmt.Errorf("bridge %s in %s: %w", name, n.name, err)
	}
	return n.SetUp(name)
}

// Enslave makes an interface a port of a bridge.
func (n *Namespace) Enslave(port, bridge string) error {
	p, err := n.link(port)
	if err != nil {
		return err
	}
	br, err := n.link(bridge)
	if err != nil {
		return err
	}
	if err := n.handle.LinkSetMaster(p, br); err != nil {
		return fmt.Errorf("make %s a port of %s in %s: %w", port, bridge, n.name, err)
	}
	return nil
}

// link finds an interface by name.
func (n *Namespace) link(name string) (netlink.Link, error) {
	l, err := n.handle.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("interface %s in %s: %w", name, n.name, err)
	}
	return l, nil
}

// PacketSocket opens a packet socket for whole frames at an interface. It receives frames of a protocol in
// network byte order, 0 for none. set, unless it is nil, sets options of the socket first.
func (n *Namespace) PacketSocket(name string, protocol uint16, set func(fd int) error) (int, error) {
	l, err := n.link(name)
	if err != nil {
		return -1, err
	}
	return In(n, func() (int, error) {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return -1, fmt.Errorf("packet socket in %s: %w", n.name, err)
		}
		if set != nil {
			err = set(fd)
		}
		if err = errors.Join(err, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: l.Attrs().Index})); err != nil {
			return -1, errors.Join(fmt.Errorf("packet socket at %s in %s: %w", name, n.name, err), unix.Close(fd))
		}
		return fd, nil
	})
}

// AllFrames is the protocol of PacketSocket for every frame.
const AllFrames = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8

// SetUp sets an interface up.
func (n *Namespace) SetUp(name string) error {
	l, err := n.link(name)
	if err != nil {
		return err
	}
	if err := n.handle.LinkSetUp(l); err != nil {
		return fmt.Errorf("set %s in %s up: %w", name, n.name, err)
	}
	return nil
}

// SetDown sets an interface down.
func (n *Namespace) SetDown(name string) error {
	l, err := n.link(name)
	if err != nil {
		return err
	}
	if err := n.handle.LinkSetDown(l); err != nil {
		return fmt.Errorf("set %s in %s down: %w", name, n.name, err)
	}
	return nil
}

// DeleteLink deletes an interface; of a veth pair both ends go.
func (n *Namespace) DeleteLink(name string) error {
	l, err := n.link(name)
	if err != nil {
		return err
	}
	if err := n.handle.LinkDel(l); err != nil {
		return fmt.Errorf("delete %s in %s: %w", name, n.name, err)
	}
	return nil
}

// AddAddr gives an interface an address. IPv6 addresses are usable at once:
// duplicate address detection is skipped.
func (n *Namespace) AddAddr(name string, p netip.Prefix) error {
	l, err := n.link(name)
	if err != nil {
		return err
	}
	addr := &netlink.Addr{IPNet: ipNet(p)}
	if p.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	if err := n.handle.AddrAdd(l, addr); err != nil {
		return fmt.Errorf("address %s on %s in %s: %w", p, name, n.name, err)
	}
	return nil
}

// AddRoute routes dst out of an interface, directly if via is not valid.
func (n *Namespace) AddRoute(dst netip.Prefix, via netip.Addr, name string) error {
	l, err := n.link(name)
	if err != nil {
		return err
	}
	r := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: ipNet(dst.Masked())}
	if via.IsValid() {
		r.Gw = via.AsSlice()
	} else if dst.Addr().Is4() {
		r.Scope = netlink.SCOPE_LINK
	}
	if err := n.handle.RouteAdd(r); err != nil {
		return fmt.Errorf("route %s by %s in %s: %w", dst, name, n.name, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// burstBytes of a link with a rate are at least a frame of the largest MTU with segmentation offload off.
const burstBytes = 16 << 10

// LimitRate gives what an interface sends a rate. queue bytes wait; more are dropped.
func LimitRate(h *netlink.Handle, out netlink.Link, rate linkrate.Rate, queue int) error {
	bytes := uint64(rate) / 8
	burst := uint32(max(burstBytes, 2*out.Attrs().MTU))
	q := &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: out.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       bytes, Buffer: netlink.Xmittime(bytes, burst), Limit: uint32(queue),
	}
	if err := h.QdiscAdd(q); err != nil {
		return fmt.Errorf("rate of %v: %w", rate, err)
	}
	return nil
}

// rateQueue is what may wait at an interface with a rate: all that the queue pairs and streams of a host have
// under way.
const rateQueue = 16 << 20

// SetRate gives what an interface sends a rate: see LimitRate.
func (n *Namespace) SetRate(name string, rate linkrate.Rate) error {
	l, err := n.link(name)
	if err != nil {
		return err
	}
	if err := LimitRate(n.handle, l, rate, rateQueue); err != nil {
		return fmt.Errorf("interface %s in %s: %w", name, n.name, err)
	}
	return nil
}

// Sysctl sets a network sysctl of the namespace, such as "net.ipv4.ip_forward"
// or "net/ipv6/conf/eth0.5/accept_dad". A name with a slash is taken as a path,
// so that interface names may contain dots.
func (n *Namespace) Sysctl(key, value string) error {
	path := key
	if !strings.Contains(key, "/") {
		path = strings.ReplaceAll(key, ".", "/")
	}
	if path = filepath.Clean(path); !strings.HasPrefix(path, "net/") {
		return fmt.Errorf("sysctl %s: only net.* belongs to a network namespace", key)
	}
	err := n.Do(func() error {
		return os.WriteFile(filepath.Join("/proc/sys", path), []byte(value), 0)
	})
	if err != nil {
		return fmt.Errorf("sysctl %s=%s in %s: %w", key, value, n.name, err)
	}
	return nil
}

// LinkStats are an interface's own counters. Bytes include the Ethernet header
// and no FCS.
type LinkStats struct {
	RxPackets, TxPackets uint64
	RxBytes, TxBytes     uint64
	RxDropped, TxDropped uint64
	RxErrors, TxErrors   uint64
}

// Sub returns the counts since an earlier reading.
func (s LinkStats) Sub(old LinkStats) LinkStats {
	return LinkStats{
		RxPackets: s.RxPackets - old.RxPackets, TxPackets: s.TxPackets - old.TxPackets,
		RxBytes: s.RxBytes - old.RxBytes, TxBytes: s.TxBytes - old.TxBytes,
		RxDropped: s.RxDropped - old.RxDropped, TxDropped: s.TxDropped - old.TxDropped,
		RxErrors: s.RxErrors - old.RxErrors, TxErrors: s.TxErrors - old.TxErrors,
	}
}

// LinkStats reads the counters of an interface.
func (n *Namespace) LinkStats(name string) (LinkStats, error) {
	l, err := n.link(name)
	if err != nil {
		return LinkStats{}, err
	}
	s := l.Attrs().Statistics
	if s == nil {
		return LinkStats{}, fmt.Errorf("interface %s in %s: the kernel reports no counters", name, n.name)
	}
	return LinkStats{
		RxPackets: s.RxPackets, TxPackets: s.TxPackets, RxBytes: s.RxBytes, TxBytes: s.TxBytes,
		RxDropped: s.RxDropped, TxDropped: s.TxDropped, RxErrors: s.RxErrors, TxErrors: s.TxErrors,
	}, nil
}
