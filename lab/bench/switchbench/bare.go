// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// bare is the least that a program in Go can do to replicate RoCEv2 packets to several
// queue pairs by AF_XDP: copy, write the fields that differ per receiver, which are the
// same for every packet, and send. It serves one flow of packets of one length, without
// decoding, feedback and checks.
type bare struct {
	umem   *xsk.Umem
	pool   *xsk.Pool
	in     *xsk.Socket
	out    []*xsk.Socket // the sockets by receiver
	legs   []bareLeg
	tx     [][]xsk.Desc
	rx     []xsk.Desc
	addrs  []uint64
	poller *xsk.SocketPoller
}

// bareLeg has the fields of a receiver's copy that replace the source's.
type bareLeg struct {
	headers [rocev2.EthernetLen + rocev2.IPv4Len + rocev2.UDPLen + rocev2.BTHLen - 4]byte // the headers up to the PSN
	icrc    uint32                                                                        // the value to be XORed
}

// standard has gleamd's numbers for batch, spin and UMEM.
var standard = config.Default()

func openBare(s *testbed) error {
	b := &bare{rx: make([]xsk.Desc, standard.Worker.Batch), addrs: make([]uint64, xsk.DefaultRingSize)}
	var err error
	if b.umem, err = xsk.NewUmem(standard.UMEM.Frames, standard.UMEM.FrameSize); err != nil {
		return err
	}
	s.onClose(b.umem.Close)
	b.pool = xsk.NewPool(b.umem)
	var all []*xsk.Socket
	for i, name := range s.star.Ports {
		index, err := ifindex(s.star.Switch, name)
		if err != nil {
			return err
		}
		k, err := lab.In(s.star.Switch, func() (*xsk.Socket, error) {
			return xsk.Open(b.umem, xsk.Config{Ifindex: index, Ifname: name, MultiBuffer: s.benchCase.jumbo()})
		})
		if err != nil {
			return err
		}
		s.onClose(k.Close)
		all = append(all, k)
		if i == 0 {
			b.in = k
			if err := attachSocket(s, index, k); err != nil {
				return err
			}
			continue
		}
		b.out = append(b.out, k)
		b.tx = append(b.tx, make([]xsk.Desc, 0, standard.Worker.Batch))
		leg, err := newBareLeg(s, i)
		if err != nil {
			return err
		}
		b.legs = append(b.legs, *leg)
	}
	if b.poller, err = xsk.NewPoller(all[:1]); err != nil {
		return err
	}
	s.onClose(b.poller.Close)
	s.onClose(onCPU(s.cpu, b.run).stop)
	return nil
}

// attachSocket steers the frames that come in by a port to its socket.
func attachSocket(s *testbed, index int, k *xsk.Socket) error {
	spec, err := loadReplicate()
	if err != nil {
		return err
	}
	name := "to_socket"
	if s.benchCase.jumbo() {
		name = "to_socket_frags"
	}
	// The program replaces to_socket, under either name.
	spec.Programs["to_socket"] = spec.Programs[name]
	var o struct {
		ToSocket *ebpf.Program `ebpf:"to_socket"`
		Xsks     *ebpf.Map     `ebpf:"xsks"`
	}
	if err := spec.LoadAndAssign(&o, nil); err != nil {
		return fmt.Errorf("load the bare loop's program: %w", err)
	}
	s.onClose(func() error { return closeAll(o.ToSocket, o.Xsks) })
	if err := o.Xsks.Put(uint32(0), uint32(k.FD())); err != nil {
		return err
	}
	return s.attachXDP(index, o.ToSocket)
}

func newBareLeg(s *testbed, i int) (*bareLeg, error) {
	from := s.dataPath()
	to := rewritten(s, i)
	mac, err := s.portMAC(i)
	if err != nil {
		return nil, err
	}
	path := rocev2.Path{SrcMAC: mac, DstMAC: to.mac, Src: groupIP, Dst: to.dst, SrcPort: from.SrcPort}
	was, err := s.benchCase.dataFrame(from, 0)
	if err != nil {
		return nil, err
	}
	now, err := build(&path, &rocev2.Packet{Op: dataOp, DestQP: to.qpn}, payloadOf(was))
	if err != nil {
		return nil, err
	}
	l := &bareLeg{icrc: icrcOf(was) ^ icrcOf(now)}
	copy(l.headers[:], now)
	return l, nil
}

// payloadOf returns the payload of a frame of dataFrame.
func payloadOf(frame []byte) []byte {
	n := rocev2.PacketLen(&rocev2.Path{Src: netip.IPv4Unspecified(), Dst: netip.IPv4Unspecified()}, dataOp, 0)
	return frame[n-rocev2.ICRCLen : len(frame)-rocev2.ICRCLen]
}

func icrcOf(frame []byte) uint32 {
	return binary.LittleEndian.Uint32(frame[len(frame)-rocev2.ICRCLen:])
}

// run is the loop, on a thread of its own.
func (b *bare) run(stopped <-chan struct{}) error {
	var idleSince time.Time
	for {
		select {
		case <-stopped:
			return nil
		default:
		}
		b.refill()
		n := b.in.Receive(b.rx)
		if n == 0 {
			if err := b.flush(); err != nil {
				return err
			}
			switch now := time.Now(); {
			case idleSince.IsZero():
				idleSince = now
			case now.Sub(idleSince) >= standard.Worker.Spin:
				if _, err := b.poller.Wait(100 * time.Millisecond); err != nil {
					return err
				}
				idleSince = time.Time{}
			}
			continue
		}
		idleSince = time.Time{}
		for at := 0; at < n; {
			chain := b.rx[at : at+xsk.ChainLen(b.rx[at:n])]
			if at += len(chain); len(chain) == 1 {
				b.replicate(chain[0])
			} else {
				b.replicateChain(chain)
			}
		}
		if err := b.flush(); err != nil {
			return err
		}
	}
}

func (b *bare) refill() {
	n := b.pool.Take(b.addrs[:min(b.in.FillRoom(), b.pool.Len()/2)])
	took := b.in.Fill(b.addrs[:n])
	b.pool.Give(b.addrs[took:n])
}

// replicate stages a copy for each receiver; the last one is the frame itself.
func (b *bare) replicate(d xsk.Desc) {
	frame := b.umem.Data(d.Addr, d.Len)
	icrc := binary.LittleEndian.Uint32(frame[len(frame)-rocev2.ICRCLen:])
	last := len(b.legs) - 1
	for i := range b.legs {
		l := &b.legs[i]
		addr, out := d.Addr, frame
		if i < last {
			free, ok := b.pool.TakeOne()
			if !ok {
				continue
			}
			addr, out = free, b.umem.Data(free, d.Len)
			copy(out[len(l.headers):], frame[len(l.headers):])
		}
		copy(out, l.headers[:])
		binary.LittleEndian.PutUint32(out[len(out)-rocev2.ICRCLen:], icrc^l.icrc)
		b.tx[i] = append(b.tx[i], xsk.Desc{Addr: addr, Len: d.Len})
	}
}

// replicateChain is replicate for a packet in several buffers.
func (b *bare) replicateChain(chain []xsk.Desc) {
	last := len(b.legs) - 1
	for i := range b.legs {
		if i < last && b.pool.Len() < len(chain) {
			continue
		}
		l, left, icrc := &b.legs[i], 0, b.legs[i].icrc
		for _, d := range chain {
			left += int(d.Len)
		}
		for k, d := range chain {
			out := b.umem.Data(d.Addr, d.Len)
			if i < last {
				addr, _ := b.pool.TakeOne()
				copy(b.umem.Data(addr, d.Len), out)
				d.Addr, out = addr, b.umem.Data(addr, d.Len)
			}
			if k == 0 {
				copy(out, l.headers[:])
			}
			for at := max(0, left-rocev2.ICRCLen); at < len(out); at++ { // it may begin in the buffer before
				out[at] ^= byte(icrc)
				icrc >>= 8
			}
			left -= int(d.Len)
			b.tx[i] = append(b.tx[i], d)
		}
	}
}

// flush sends staged frames and takes back those that were sent.
func (b *bare) flush() error {
	for i, s := range b.out {
		if len(b.tx[i]) > 0 {
			n := s.Send(b.tx[i])
			for _, d := range b.tx[i][n:] {
				b.pool.GiveOne(d.Addr)
			}
			b.tx[i] = b.tx[i][:0]
		}
		if s.TxPending() > 0 {
			if err := s.Kick(); err != nil && !errors.Is(err, xsk.ErrDown) {
				return err
			}
		}
		for {
			n := s.Complete(b.addrs)
			b.pool.Give(b.addrs[:n])
			if n < len(b.addrs) {
				break
			}
		}
	}
	return nil
}
