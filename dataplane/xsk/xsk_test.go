// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// wire is a veth pair: a port of the switch and the host's end of its cable, on
// which frames are sent and captured with a packet socket.
type wire struct {
	t       *testing.T
	port    string
	ifindex int

	hostName string
	host     int // packet socket
	oob      [64]byte
	prog     *bpf.PortProgram
}

const envelopePort = 4792

var groupPrefix = netip.MustParsePrefix("10.77.0.0/16")

func newSteering(t *testing.T) *bpf.Steering {
	t.Helper()
	st, err := bpf.NewSteering([]netip.Prefix{groupPrefix}, envelopePort, 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func newWire(t *testing.T, st *bpf.Steering, port, host string) *wire {
	t.Helper()
	return newWireIn(t, st, port, host, bpf.Native)
}

func newWireIn(t *testing.T, st *bpf.Steering, port, host string, mode bpf.Mode) *wire {
	t.Helper()
	return newWireMTU(t, st, port, host, mode, 1500)
}

func newWireMTU(t *testing.T, st *bpf.Steering, port, host string, mode bpf.Mode, mtu int) *wire {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.NumRxQueues, attrs.NumTxQueues = port, 1, 1
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: host}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	var ends [2]netlink.Link
	for i, name := range []string{port, host} {
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetMTU(l, mtu)
		}
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = l
	}
	w := &wire{t: t, port: port, hostName: host, ifindex: ends[0].Attrs().Index}
	w.waitUp()
	prog, err := st.Attach(w.ifindex, port, mode, mtu)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { prog.Close() })
	w.prog = prog
	w.host = packetSocket(t, ends[1].Attrs().Index)
	return w
}

// waitUp waits until both ends have a carrier: the kernel follows a change by a
// work item, and until then swallows what is sent.
func (w *wire) waitUp() {
	w.t.Helper()
	for _, name := range []string{w.port, w.hostName} {
		eventually(w.t, name+" is up", func() bool {
			l, err := netlink.LinkByName(name)
			return err == nil && l.Attrs().OperState == netlink.OperUp
		})
	}
}

func packetSocket(t *testing.T, ifindex int) int {
	t.Helper()
	all := int(binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, all)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1); err != nil {
		t.Fatal(err)
	}
	err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(all), Ifindex: ifindex})
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// send puts a frame on the cable towards the port.
func (w *wire) send(frame []byte) {
	w.t.Helper()
	for {
		_, err := unix.Write(w.host, frame)
		if err == nil {
			return
		}
		if err != unix.ENOBUFS && err != unix.EAGAIN {
			w.t.Fatalf("send on the host's end of %s: %v", w.port, err)
		}
	}
}

// capture returns the next group frame that came out of the port, or nil if none
// did for a second. What the host's end sent itself is not returned.
func (w *wire) capture(buf []byte) []byte {
	w.t.Helper()
	for {
		pfd := []unix.PollFd{{Fd: int32(w.host), Events: unix.POLLIN}}
		if n, err := unix.Poll(pfd, 1000); err == unix.EINTR {
			continue
		} else if err != nil || n == 0 {
			return nil
		}
		n, oobn, _, from, err := unix.Recvmsg(w.host, buf, w.oob[:], 0)
		if err != nil || from.(*unix.SockaddrLinklayer).Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		if f := labtest.Retag(buf[:n], w.oob[:oobn]); isGroupFrame(f) {
			return f
		}
	}
}

func isGroupFrame(f []byte) bool {
	for len(f) > 16 && f[12] == 0x81 && f[13] == 0 {
		f = f[4:]
	}
	return len(f) >= 42 && f[12] == 0x08 && f[13] == 0 && f[30] == 10 && f[31] == 77
}

// groupFrame builds a RoCEv2-shaped UDP packet to the group with payload bytes
// that are a function of seed.
func groupFrame(buf []byte, seed uint64, payload int) []byte {
	f := buf[:42+payload]
	clear(f[:42])
	copy(f, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x08\x00\x45\x00")
	binary.BigEndian.PutUint16(f[16:], uint16(28+payload))
	f[22], f[23] = 64, 17
	copy(f[26:], []byte{10, 1, 0, 1, 10, 77, 0, 1})
	binary.BigEndian.PutUint16(f[34:], 0xC000)
	binary.BigEndian.PutUint16(f[36:], 4791)
	binary.BigEndian.PutUint16(f[38:], uint16(8+payload))
	x := seed*0x9E3779B97F4A7C15 + 1
	p := f[42:]
	for len(p) >= 8 {
		binary.LittleEndian.PutUint64(p, x)
		x = x*6364136223846793005 + 1442695040888963407
		p = p[8:]
	}
	for i := range p {
		p[i] = byte(x >> (8 * i))
	}
	return f
}

// device is a Umem with its pool, and a socket on each of some wires.
type device struct {
	t     *testing.T
	umem  *Umem
	pool  *Pool
	wires []*wire
	socks []*Socket
	addrs []uint64
	rx    []Desc
}

func newDevice(t *testing.T, frames, ringSize, ports int) *device {
	t.Helper()
	d := newEmptyDevice(t, frames, 4096, ringSize)
	st := newSteering(t)
	for i := range ports {
		n := string(rune('0' + i))
		w := newWire(t, st, "p"+n, "h"+n)
		d.wires = append(d.wires, w)
		d.socks = append(d.socks, d.open(w, ringSize))
	}
	return d
}

// newEmptyDevice returns a device without wires, in a network namespace of its
// own.
func newEmptyDevice(t *testing.T, frames, frameSize, ringSize int) *device {
	t.Helper()
	labtest.Enter(t)
	u, err := NewUmem(frames, frameSize)
	if err != nil {
		t.Fatal(err)
	}
	d := &device{t: t, umem: u, pool: NewPool(u), addrs: make([]uint64, ringSize), rx: make([]Desc, 64)}
	t.Cleanup(func() { d.close() })
	return d
}

func (d *device) open(w *wire, ringSize int) *Socket {
	d.t.Helper()
	return d.openAs(w, w.config(ringSize))
}

func (d *device) openAs(w *wire, cfg Config) *Socket {
	d.t.Helper()
	s, err := Open(d.umem, cfg)
	if err != nil {
		d.t.Fatal(err)
	}
	if s.ZeroCopy() {
		d.t.Error("zero-copy on a veth")
	}
	if err := w.prog.SetSocket(0, s.FD()); err != nil {
		d.t.Fatal(err)
	}
	d.refill(s)
	return s
}

func (w *wire) config(ringSize int) Config {
	return Config{
		Ifindex: w.ifindex, Ifname: w.port,
		RxSize: ringSize, TxSize: ringSize, FillSize: ringSize, CompSize: ringSize,
	}
}

func (d *device) close() {
	for _, s := range d.socks {
		if err := s.Close(); err != nil {
			d.t.Error(err)
		}
	}
	if err := d.umem.Close(); err != nil {
		d.t.Error(err)
	}
}

func (d *device) refill(s *Socket) {
	n := d.pool.Take(d.addrs[:min(s.FillRoom(), len(d.addrs))])
	taken := s.Fill(d.addrs[:n])
	d.pool.Give(d.addrs[taken:n])
}

func (d *device) complete(s *Socket) int {
	n := s.Complete(d.addrs)
	d.pool.Give(d.addrs[:n])
	return n
}

// receive waits until s has packets and returns them.
func (d *device) receive(s *Socket) []Desc {
	d.t.Helper()
	p := newPoller(d.t, []*Socket{s})
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		if n := s.Receive(d.rx); n > 0 {
			return d.rx[:n]
		}
		if _, err := p.Wait(time.Second); err != nil {
			d.t.Fatal(err)
		}
	}
	st, err := s.Stats()
	d.t.Fatalf("nothing was received in 5 s; statistics %+v, %v", st, err)
	return nil
}

// newPoller returns a poller for socks that is closed when the test ends.
func newPoller(t testing.TB, socks []*Socket) *SocketPoller {
	t.Helper()
	p, err := NewPoller(socks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// eventually waits until f holds.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !f(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("not in 5 s: %s", what)
		}
	}
}
