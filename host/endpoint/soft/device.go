// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Device is a software RDMA device. Its methods may be called from any
// goroutine.
type Device struct {
	cfg           Config
	ifindex       int
	mac           rocev2.MAC
	mtu           int
	addrs         []netip.Addr
	started       time.Time
	nl            *netlink.Handle
	nlUse         sync.RWMutex // held for reading while nl is used, for writing to close it
	ctx           context.Context
	cancel        context.CancelFunc // ends ctx
	reservedPorts []int              // UDP sockets that keep the kernel from answering RoCEv2 packets

	sock *socket
	done chan struct{} // closed when the loop has ended

	// pending says that the loop has commands, or work requests of some queue pair, to
	// fetch. sleeping says that the loop must be woken to see them.
	pending  atomic.Bool
	sleeping atomic.Bool

	mu       sync.Mutex // guards the fields below
	commands []func()   // run by the loop, in order
	closing  bool
	qps      map[rocev2.QPN]*qp // all that are not closed

	loop loop // used by the loop's goroutine only
}

var _ endpoint.Device = (*Device)(nil)

// Open makes a device on an interface in the network namespace of the calling
// thread (see lab.Namespace.Do); the device stays there whatever thread uses it
// later. The interface's addresses are read once, here.
func Open(cfg Config) (*Device, error) {
	d, err := open(cfg)
	if err != nil {
		return nil, fmt.Errorf("open soft device on %q: %w", cfg.Interface, err)
	}
	return d, nil
}

func open(cfg Config) (_ *Device, err error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	d := &Device{cfg: cfg, started: time.Now(), done: make(chan struct{}), qps: make(map[rocev2.QPN]*qp)}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if d.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	defer func() {
		if err != nil {
			d.release()
		}
	}()
	if err := d.readInterface(); err != nil {
		return nil, err
	}
	filter, err := roceFilter(d.addrs)
	if err != nil {
		return nil, err
	}
	fd, err := rawSocket(d.ifindex, filter, cfg.ReceiveBuffer)
	if err != nil {
		return nil, err
	}
	if d.sock, err = newSocket(fd, d.mtu+rocev2.EthernetLen+2*rocev2.VLANLen); err != nil {
		return nil, err
	}
	if cfg.paced() {
		if err := d.sock.napper.open(); err != nil {
			return nil, err
		}
	}
	if d.reservedPorts, err = portReservation(); err != nil {
		return nil, err
	}
	if err := d.loop.init(d); err != nil {
		return nil, err
	}
	go d.run()
	return d, nil
}

// readInterface reads the interface's number, addresses and MTU.
func (d *Device) readInterface() error {
	link, err := d.nl.LinkByName(d.cfg.Interface)
	if err != nil {
		return err
	}
	a := link.Attrs()
	switch {
	case len(a.HardwareAddr) != 6:
		return errors.New("it is not an Ethernet interface")
	case a.Flags&net.FlagUp == 0:
		return fmt.Errorf("it is down: ip link set %s up", d.cfg.Interface)
	case pathMTUFor(a.MTU) == 0:
		return fmt.Errorf("its MTU of %d bytes has no room for the smallest path MTU, 256", a.MTU)
	}
	d.ifindex, d.mac, d.mtu = a.Index, rocev2.MAC(a.HardwareAddr), a.MTU
	list, err := d.nl.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("addresses: %w", err)
	}
	for _, l := range list {
		ip, ok := netip.AddrFromSlice(l.IP)
		if ok && !ip.Unmap().IsLinkLocalUnicast() {
			d.addrs = append(d.addrs, ip.Unmap())
		}
	}
	if len(d.addrs) == 0 {
		return errors.New("it has no IP address")
	}
	// IPv4 first, as GID indices usually are; otherwise the kernel's order.
	slices.SortStableFunc(d.addrs, func(x, y netip.Addr) int { return x.BitLen() - y.BitLen() })
	return nil
}

// release closes what Open made.
func (d *Device) release() error {
	var errs []error
	if d.sock != nil {
		errs = append(errs, d.sock.close())
	}
	for _, fd := range d.reservedPorts {
		errs = append(errs, unix.Close(fd))
	}
	d.cancel()
	d.nlUse.Lock() // waits for address resolutions under way, which end now
	defer d.nlUse.Unlock()
	d.nl.Close()
	return errors.Join(errs...)
}

// maxHeaders is the greatest length of the headers from IP on, and of the ICRC: those of
// a WRITE ONLY with immediate data over IPv6. Linux assumes 80 (rxe_param.h), which is 4
// too few for that one packet and makes no difference at usual MTUs.
const maxHeaders = rocev2.IPv6Len + rocev2.UDPLen + rocev2.BTHLen + rocev2.RETHLen + rocev2.ImmDtLen + rocev2.ICRCLen

// pathMTUFor returns the largest path MTU that fits an interface MTU, 0 if none.
func pathMTUFor(mtu int) int {
	for p := 4096; p >= 256; p /= 2 {
		if p+maxHeaders <= mtu {
			return p
		}
	}
	return 0
}

// Addrs returns the interface's addresses without link-local ones, IPv4 first.
func (d *Device) Addrs() []netip.Addr { return slices.Clone(d.addrs) }

// MAC returns the interface's Ethernet address.
func (d *Device) MAC() rocev2.MAC { return d.mac }

// MaxPathMTU returns the largest path MTU that fits the interface's MTU.
func (d *Device) MaxPathMTU() int { return pathMTUFor(d.mtu) }

// RegisterMemory makes buf writable by peers, if access says so, at iova and
// up. It fails on an empty buffer, or one past the end of the address space.
func (d *Device) RegisterMemory(buf []byte, iova uint64, access endpoint.Access) (endpoint.MR, error) {
	if access&^(endpoint.LocalWrite|endpoint.RemoteWrite) != 0 {
		return nil, fmt.Errorf("register memory: unknown access bits 0x%x", uint8(access))
	}
	var rights rc.Access
	if access&endpoint.RemoteWrite != 0 {
		rights = rc.RemoteWrite
		access |= endpoint.LocalWrite
	}
	m := &mr{dev: d, buf: buf, access: access}
	var err error
	if e := d.do(func() { m.region, err = d.loop.memory.RegisterMR(buf, iova, rights) }); e != nil {
		return nil, fmt.Errorf("register memory: %w", e)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// mr is an endpoint.MR.
type mr struct {
	dev    *Device
	buf    []byte
	access endpoint.Access
	region *rc.MR
	closed atomic.Bool
}

func (m *mr) Bytes() []byte { return m.buf }
func (m *mr) Addr() uint64  { return m.region.IOVA }
func (m *mr) Len() int      { return len(m.buf) }
func (m *mr) LKey() uint32  { return m.region.RKey }
func (m *mr) RKey() uint32  { return m.region.RKey }

func (m *mr) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	err := m.dev.do(func() { _ = m.dev.loop.memory.Deregister(m.region.RKey) }) // a peer may have invalidated it
	if errors.Is(err, endpoint.ErrClosed) {
		return nil // the device's Close removed it
	}
	return err
}

// do runs fn in the loop and waits for it.
func (d *Device) do(fn func()) error {
	ran := make(chan struct{})
	d.mu.Lock()
	if d.closing {
		d.mu.Unlock()
		return fmt.Errorf("device on %s: %w", d.cfg.Interface, endpoint.ErrClosed)
	}
	d.commands = append(d.commands, func() { fn(); close(ran) })
	d.mu.Unlock()
	d.kick()
	<-ran // the loop runs every command that was queued before Close
	return nil
}

// kick makes the loop fetch commands and work requests.
func (d *Device) kick() {
	d.pending.Store(true)
	if d.sleeping.Load() {
		d.sock.wake()
	}
}

// Close flushes all queue pairs and releases the socket. A further call only waits.
func (d *Device) Close() error {
	d.mu.Lock()
	first := !d.closing
	d.closing = true
	d.mu.Unlock()
	d.kick()
	<-d.done
	if !first {
		return nil
	}
	return d.release()
}

// now is the loop's clock, monotonic.
func (d *Device) now() time.Duration { return time.Since(d.started) }
