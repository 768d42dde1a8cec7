// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
)

// machine is the common interface of envelope.Master and envelope.Member.
type machine interface {
	Input(now time.Duration, from netip.AddrPort, b []byte, out *envelope.Output)
	Advance(now time.Duration, out *envelope.Output)
	NextDeadline() (time.Duration, bool)
}

// driver runs a machine of package envelope on a UDP socket.
type driver struct {
	conn    *net.UDPConn
	started time.Time
	onEvent func(envelope.Event) // called with mu held: it must not call back
	reader  sync.WaitGroup

	mu      sync.Mutex // guards the machine and the fields below
	machine machine
	timer   *time.Timer
	out     envelope.Output
	sendErr error // error of the last failed write
	closed  bool
}

// listenUDP binds a socket in the network namespace of the calling thread.
func listenUDP(local netip.AddrPort) (*net.UDPConn, error) {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(local))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: another process here takes part in groups with this address, and package endpoint serves one process for each (ss -lunp 'sport = :%d' names it): end it, give this one another address of the host, or, within one process, share a Host", err, local.Port())
	}
	return c, err
}

// checkLoopback returns an error if the loopback interface is down, by which a host reaches its
// own addresses, in the network namespace of the calling thread.
func checkLoopback() error {
	list, err := net.Interfaces()
	if err != nil {
		return nil // it is not known
	}
	for _, i := range list {
		if i.Flags&net.FlagLoopback != 0 && i.Flags&net.FlagUp == 0 {
			return fmt.Errorf("the loopback interface %s is down: a master confirms its own membership by it; type `ip link set %s up`", i.Name, i.Name)
		}
	}
	return nil
}

// newDriver starts m on conn, and takes ownership of conn.
func newDriver(conn *net.UDPConn, m machine, onEvent func(envelope.Event)) *driver {
	d := &driver{conn: conn, machine: m, started: time.Now(), onEvent: onEvent}
	d.timer = time.AfterFunc(time.Hour, func() { d.call(d.machine.Advance) })
	d.reader.Go(d.read)
	return d
}

// local returns the socket's address.
func local(c *net.UDPConn) netip.AddrPort {
	a := c.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

func (d *driver) read() {
	buf := make([]byte, envelope.MaxLen)
	for {
		n, from, err := d.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // for example an ICMP error: the machines repeat themselves
			time.Sleep(time.Millisecond)
			continue
		}
		from = netip.AddrPortFrom(from.Addr().Unmap().WithZone(""), from.Port())
		d.call(func(now time.Duration, out *envelope.Output) { d.machine.Input(now, from, buf[:n], out) })
	}
}

// call runs fn, which calls the machine, and sends the packets and handles the events
// that the machine returns.
func (d *driver) call(fn func(now time.Duration, out *envelope.Output)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	d.out = envelope.Output{Packets: d.out.Packets[:0], Events: d.out.Events[:0]}
	fn(time.Since(d.started), &d.out)
	for _, p := range d.out.Packets {
		if _, err := d.conn.WriteToUDPAddrPort(p.Data, p.Dst); err != nil {
			d.sendErr = err // perhaps there is no route: reported if the join fails
		}
	}
	for _, e := range d.out.Events {
		d.onEvent(e)
	}
	if t, ok := d.machine.NextDeadline(); ok {
		d.timer.Reset(max(0, t-time.Since(d.started)))
	} else {
		d.timer.Stop()
	}
}

// lastSendError returns the error of the last failed send, nil if none failed.
func (d *driver) lastSendError() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sendErr
}

// close ends the driver; it makes no more calls of onEvent.
func (d *driver) close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	d.timer.Stop()
	d.mu.Unlock()
	err := d.conn.Close()
	d.reader.Wait()
	return err
}
