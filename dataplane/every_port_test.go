// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// The same traffic through workers whose ports are fakes, and through workers on AF_XDP
// and veths. No goroutine runs the workers: the test calls runBatch of each in turn.

// hostSide is the hosts' ends of a switch's ports.
type hostSide struct {
	*testing.T
	*workers
	bench *bench                     // the bench of the group's owner, which is the last worker
	send  func(i int, frame []byte)  // host i sends
	next  func(i int) (frame []byte) // the next frame for host i; nil: there is none
	real  bool                       // frames take time
	kind  rocev2.Kind                // the kind of the frames that next returns
}

// onEveryPort runs test with fakes, and with veths if the tests may have a lab.
func onEveryPort(t *testing.T, star lab.StarConfig, workers, frameSize int, test func(*hostSide)) {
	cpus := "-1" + string(bytes.Repeat([]byte(", -1"), workers-1))
	more := fmt.Sprintf("umem: {frames: 4096, frame_size: %d}\nworker: {cpu: [%s]}\n", frameSize, cpus)
	t.Run("fake", func(t *testing.T) {
		s := newFakeStar(t, star, fakeConfig(t, star.Hosts, more, ""))
		sent := make([][][]byte, star.Hosts)
		test(s.hostSide(t, star, func(i int) (frame []byte) {
			if sent[i] = append(sent[i], s.queues[i][0].Sent()...); len(sent[i]) == 0 {
				return nil
			}
			frame, sent[i] = sent[i][0], sent[i][1:]
			return frame
		}))
	})
	t.Run("AF_XDP", func(t *testing.T) {
		s := labtest.Star(t, star)
		cfg, err := config.Parse("veths", []byte(s.Config()+"envelope: {insecure: true}\nrings: {rx: 512, tx: 512, fill: 512, completion: 512}\n"+more))
		if err != nil {
			t.Fatal(err)
		}
		var p *Plane
		if err := s.Switch.Do(func() (err error) { p, err = Open(cfg, func(bool, string, ...any) {}, nothing); return err }); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		socks := make([]int, star.Hosts)
		for i, x := range p.Ports()[:len(cfg.Ports)] {
			if err := x.Program.SetPolicy(&bpf.Policy{}); err != nil {
				t.Fatal(err)
			}
			socks[i] = packetSocket(t, s.Hosts[i])
		}
		buf := make([]byte, 10000)
		h := newHostSide(t, p.workers, s.Hosts, star)
		h.real = true
		h.send = func(i int, frame []byte) {
			if _, err := unix.Write(socks[i], frame); err != nil {
				t.Fatal(err)
			}
		}
		h.next = func(i int) []byte {
			for {
				n, _, err := unix.Recvfrom(socks[i], buf, unix.MSG_DONTWAIT)
				if err != nil {
					return nil
				}
				if fromGroup(buf[:n], h.kind, h.bench.group) { // the kernels of hosts and switch send frames, too
					return bytes.Clone(buf[:n])
				}
			}
		}
		test(h)
	})
}

// fromGroup reports whether a frame is of this kind and has the group as its sender.
func fromGroup(frame []byte, kind rocev2.Kind, group netip.Addr) bool {
	var f rocev2.Frame
	if rocev2.Decode(frame, &f) != rocev2.OK || f.Kind != kind {
		return false
	}
	var a rocev2.ARP
	if f.Kind == rocev2.KindARP && rocev2.DecodeARP(&f, &a) == rocev2.OK {
		return a.SenderIP == group
	}
	return f.Src() == group
}

// packetSocket returns a packet socket at host h.
func packetSocket(t *testing.T, h lab.Host) (fd int) {
	t.Helper()
	link, err := h.NS.Handle().LinkByName(h.Interface)
	if err == nil {
		err = h.NS.Do(func() (err error) {
			if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
				return err
			}
			t.Cleanup(func() { unix.Close(fd) })
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20); err != nil {
				return err
			}
			return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: unix.ETH_P_ALL << 8, Ifindex: link.Attrs().Index})
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// hostSide returns the hosts' side of fakes.
func (s *fakeStar) hostSide(t *testing.T, star lab.StarConfig, next func(i int) []byte) *hostSide {
	h := newHostSide(t, s.workers, s.hosts, star)
	h.next = next
	h.send = func(i int, frame []byte) {
		if !s.queues[i][0].Arrive(frame) {
			t.Fatalf("host %d's frame is lost", i)
		}
	}
	return h
}

// newHostSide puts a group of all hosts, without local repair, at the last worker.
func newHostSide(t *testing.T, c *workers, hosts []lab.Host, star lab.StarConfig) *hostSide {
	t.Helper()
	owner := len(c.all) - 1
	b := &bench{w: c.all[owner], group: netip.MustParseAddr("10.77.254.1"), hosts: hosts}
	spec, table := b.group0()
	spec.Repair.Bytes = 0
	if star.MTU > 1500 {
		spec.PathMTU = 4096
	}
	b.spec = spec
	if err := b.w.putGroup(spec, table); err != nil {
		t.Fatal(err)
	}
	c.owners.put(b.group, owner)
	return &hostSide{T: t, workers: c, bench: b, kind: rocev2.KindRoCE}
}

// packet has host i send a packet to the group.
func (h *hostSide) packet(i int, k rocev2.Packet, payload []byte) {
	h.send(i, h.bench.build(i, &k, payload))
}

// run has the workers do batches, the last one first, until host i has got want[i] frames,
// and some more batches to see that no further frame follows. It returns the frames.
func (h *hostSide) run(want ...int) [][][]byte {
	h.Helper()
	got := make([][][]byte, len(want))
	quiet := 0
	for deadline := time.Now().Add(5 * time.Second); ; {
		for i := len(h.all) - 1; i >= 0; i-- {
			h.all[i].runBatch()
		}
		missing := false
		for i := range got {
			for f := h.next(i); f != nil; f = h.next(i) {
				got[i] = append(got[i], f)
			}
			missing = missing || len(got[i]) < want[i]
		}
		if !missing {
			quiet++
		}
		if quiet == 10 || time.Now().After(deadline) {
			break
		}
		if h.real {
			time.Sleep(time.Millisecond)
		}
	}
	for i, w := range want {
		if len(got[i]) != w {
			h.Fatalf("host %d got %d frames, want %d; drops of the owner %v", i, len(got[i]), w, h.bench.w.count.drops())
		}
	}
	return got
}

// frames returns how many frames are free or in the fill rings.
func (h *hostSide) frames() int {
	n := h.free()
	for _, p := range h.ports {
		for _, s := range p.sockets {
			n += s.Occupancy().Fill
		}
	}
	return n
}

// decode checks a frame for host i and returns its headers.
func (h *hostSide) decode(i int, frame []byte) (f rocev2.Frame) {
	h.Helper()
	if r := rocev2.Decode(frame, &f); r != rocev2.OK || f.Kind != rocev2.KindRoCE || !f.VerifyICRC() {
		h.Fatalf("host %d: decode %v, kind %v", i, r, f.Kind)
	}
	if to := h.bench.hosts[i]; f.Dst() != to.IPv4 || f.Src() != h.bench.group || f.Eth().Dst() != rocev2.MAC(to.MAC) || f.BTH().DestQP() != rocev2.QPN(0x100+i) {
		h.Errorf("host %d: for %v, QPN %#x, from %v", i, f.Dst(), f.BTH().DestQP(), f.Src())
	}
	return f
}

// Data reaches every receiver in order, with its bytes, and the source gets the ACK of
// the slowest one; then a NAK is passed on. Nothing else leaves, no frame is lost: with
// one worker or several, packets in one buffer or several.
func TestTrafficOnEveryPort(t *testing.T) {
	for _, c := range []struct {
		name                           string
		workers, mtu, frameSize, bytes int
	}{
		{"one worker", 1, 0, 4096, 1024},
		{"three workers", 3, 0, 4096, 1024},
		{"long packets", 1, 4200, 2048, 4096},
		{"long packets, two workers", 2, 4200, 2048, 4096},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEveryPort(t, lab.StarConfig{Hosts: 4, MTU: c.mtu}, c.workers, c.frameSize, func(h *hostSide) {
				const packets = 20
				h.run(0, 0, 0, 0)
				frames := h.frames()
				payload := func(psn int) []byte { return bytes.Repeat([]byte{byte(psn)}, c.bytes-psn) }
				for psn := range packets {
					h.packet(0, rocev2.Packet{Op: rocev2.SendOnly, PSN: rocev2.PSN(psn), AckReq: psn == packets-1}, payload(psn))
				}
				for i, frames := range h.run(0, packets, packets, packets)[1:] {
					for psn, b := range frames {
						f := h.decode(i+1, b)
						if n := f.BTH().PSN(); n != rocev2.PSN(1000*(i+1)+psn) || !bytes.Contains(b, payload(psn)) {
							h.Fatalf("host %d: packet %d has PSN %d, and not the payload that was sent", i+1, psn, n)
						}
					}
				}
				for i := 1; i <= 3; i++ {
					acked := rocev2.PSN(1000*i + packets - i) // of packet 19, 18 and 17
					h.packet(i, rocev2.Packet{Op: rocev2.Acknowledge, PSN: acked, Syndrome: rocev2.SyndromeACK}, nil)
					want := 0
					if i == 3 {
						want = 1
					}
					for _, b := range h.run(want, 0, 0, 0)[0] {
						if f := h.decode(0, b); f.Op != rocev2.Acknowledge || f.AETH().Syndrome().Kind() != rocev2.KindACK || f.BTH().PSN() != packets-3 {
							h.Errorf("the source gets %v of PSN %d, want the ACK of %d", f.Op, f.BTH().PSN(), packets-3)
						}
					}
				}
				h.packet(3, rocev2.Packet{Op: rocev2.Acknowledge, PSN: 3000 + packets - 2, Syndrome: rocev2.SyndromeNAKSequence}, nil)
				f := h.decode(0, h.run(1, 0, 0, 0)[0][0])
				if f.AETH().Syndrome() != rocev2.SyndromeNAKSequence || f.BTH().PSN() != packets-2 {
					h.Errorf("the source gets %v of PSN %d, want the NAK of %d", f.AETH().Syndrome(), f.BTH().PSN(), packets-2)
				}
				if n := h.frames(); n != frames {
					h.Errorf("%d frames are free or in the fill rings, had %d", n, frames)
				}
				var st mcast.GroupStatus
				if h.bench.w.core.Group(0).Snapshot(&st); st.Counters.DataIn != packets || st.Counters.FeedbackIn != 4 {
					h.Errorf("counted %+v", st.Counters)
				}
			})
		})
	}
}

// An ARP request for a group is answered by the port where it came in.
func TestNeighboursOnEveryPort(t *testing.T) {
	onEveryPort(t, lab.StarConfig{Hosts: 2}, 2, 4096, func(h *hostSide) {
		h.kind = rocev2.KindARP
		var buf [200]byte
		host := h.bench.hosts[1]
		path := rocev2.Path{Src: host.IPv4, Dst: h.bench.group, SrcMAC: rocev2.MAC(host.MAC), DstMAC: rocev2.BroadcastMAC}
		n := rocev2.BuildARP(buf[:], &path, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: rocev2.MAC(host.MAC), SenderIP: host.IPv4, TargetIP: h.bench.group})
		h.send(1, buf[:n])
		var f rocev2.Frame
		var a rocev2.ARP
		b := h.run(0, 1)[1][0]
		if r := rocev2.Decode(b, &f); r != rocev2.OK || rocev2.DecodeARP(&f, &a) != rocev2.OK || a.Op != rocev2.ARPReply || a.SenderIP != h.bench.group || a.SenderMAC != h.ports[1].mac {
			h.Errorf("%v: %+v, want a reply for %v", r, a, h.bench.group)
		}
	})
}
