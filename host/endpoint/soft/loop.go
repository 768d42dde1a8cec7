// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/rocev2"
)

// loop is the state that only the device's goroutine uses.
type loop struct {
	device *Device
	memory *rc.Memory
	qps    []*qp // connected
	byQPN  map[rocev2.QPN]*qp

	in    rocev2.Frame
	pkt   rc.Packet
	out   rc.Output
	build rocev2.Packet

	txBuf  []byte // txQueue slots of txSlot bytes
	txSlot int
	ipID   uint16

	stats   Stats
	rxLoss  *rand.Rand
	txLoss  *rand.Rand
	inbound lossProcess // the losses of SetInboundLoss
	trace   *tracer     // nil without Config.Trace
}

// sendBudget bounds the requests that one queue pair sends before other queue pairs, and
// received packets, are served.
const sendBudget = batch

// A full transmit queue of the interface is not a loss: the frames stay queued and are
// sent again after txRetry, for txTimeout while none is accepted. There is no descriptor
// to wait for: a packet socket is writable while its own buffer has room, whatever the
// state of the interface.
const (
	txRetry   = 100 * time.Microsecond
	txTimeout = 10 * time.Millisecond
)

func (l *loop) init(d *Device) error {
	l.device = d
	l.memory = rc.NewMemory(rand.Uint64()) // R_Keys must not repeat those of an earlier device
	l.byQPN = make(map[rocev2.QPN]*qp)
	l.txSlot = (d.MaxPathMTU() + maxHeaders + rocev2.EthernetLen + rocev2.VLANLen + 63) &^ 63
	l.txBuf = make([]byte, txQueue*l.txSlot)
	l.rxLoss = rand.New(rand.NewPCG(d.cfg.Seed, 1))
	l.txLoss = rand.New(rand.NewPCG(d.cfg.Seed, 2))
	var err error
	l.trace, err = newTracer(d.cfg.Trace, d.cfg.Interface)
	return err
}

// run is the device's goroutine.
func (d *Device) run() {
	l := &d.loop
	defer close(d.done)
	for {
		if d.pending.Swap(false) && !l.fetch() {
			l.flush()
			l.trace.flush(&l.stats)
			return
		}
		got := l.receive()
		next, armed, more := l.serve()
		l.flush()
		d.sock.rxN = 0
		if got > 0 || more {
			d.sock.tryRead()
			continue
		}
		l.trace.flush(&l.stats)
		l.sleep(next, armed)
	}
}

// sleep waits for frames, for kick, or for the deadline next if armed.
func (l *loop) sleep(next time.Duration, armed bool) {
	d := l.device
	if armed && next <= d.now() {
		// waitRead would return without a read: a deadline that is in the past again and
		// again, with a timeout of a few microseconds, must not keep answers from being
		// read.
		d.sock.tryRead()
		return
	}
	if armed && next < d.now()+ppollBelow && d.cfg.paced() {
		l.sleepShort(next)
		return
	}
	var t time.Time
	if armed {
		t = d.started.Add(next)
	}
	// The order matters: kick sets pending before it reads sleeping, and the deadline set
	// here must not overwrite kick's, which is in the past.
	d.sock.setDeadline(t)
	d.sleeping.Store(true)
	if !d.pending.Load() {
		if err := d.sock.waitRead(); err != nil {
			l.stats.SocketErrors++
			time.Sleep(txRetry) // the poller itself failed: do not busy-wait
		}
	}
	d.sleeping.Store(false)
}

// sleepShort is sleep until a deadline that is less than ppollBelow away.
func (l *loop) sleepShort(next time.Duration) {
	d, n := l.device, &l.device.sock.napper
	n.asleep.Store(true) // the order matters as in sleep
	d.sleeping.Store(true)
	wait := minPpoll
	if d.pending.Load() {
		wait = 0
	} else {
		wait = max(wait, next-d.now())
	}
	if err := n.sleep(d.sock.fd, wait); err != nil {
		l.stats.SocketErrors++
		time.Sleep(txRetry)
	}
	d.sleeping.Store(false)
	d.sock.tryRead()
}

// fetch runs the commands and takes the posted work. It returns false if the device must
// close, after it has flushed all queue pairs.
func (l *loop) fetch() bool {
	d := l.device
	d.mu.Lock()
	commands, closing := d.commands, d.closing
	d.commands = nil
	d.mu.Unlock()
	for _, c := range commands {
		c()
	}
	for _, q := range l.qps {
		q.fetch(l)
	}
	if closing {
		for _, q := range d.allQPs() {
			q.shut(l)
		}
	}
	return !closing
}

// receive processes the frames of the last read, and returns their number.
func (l *loop) receive() int {
	s := l.device.sock
	if s.rxErr != nil {
		l.stats.SocketErrors++
		s.rxErr = nil
	}
	n := s.rxN
	if n == 0 {
		return 0
	}
	now := l.device.now()
	l.stats.RxBatches++
	for i := range n {
		b, tci, tagged, truncated := s.frame(i)
		l.stats.RxFrames++
		l.stats.RxBytes += uint64(len(b))
		if l.trace != nil {
			l.trace.received(b, tci, tagged, &l.stats)
		}
		switch {
		case truncated:
			l.stats.RxTruncated++
		case l.device.cfg.Loss > 0 && l.rxLoss.Float64() < l.device.cfg.Loss:
			l.stats.RxLoss++
		case l.inbound.drop():
			l.stats.RxLoss++
		default:
			l.input(now, b)
		}
	}
	return n
}

// input checks one frame as rxe_recv.c does and passes it to its queue pair.
func (l *loop) input(now time.Duration, b []byte) {
	f := &l.in
	if r := rocev2.Decode(b, f); r != rocev2.OK || f.Kind != rocev2.KindRoCE {
		l.stats.RxMalformed++
		l.stats.Malformed[r]++
		return
	}
	bth := f.BTH()
	q := l.byQPN[bth.DestQP()]
	switch {
	case f.Eth().Dst() != l.device.mac:
		l.stats.RxOtherMAC++
	case q == nil:
		l.stats.RxNoQP++
	case f.Dst() != q.path.Src:
		l.stats.RxOtherIP++
	case f.Src() != q.path.Dst:
		l.stats.RxOtherPeer++
	case bth.PKey()&0x7FFF != rocev2.DefaultPKey&0x7FFF:
		l.stats.RxPKey++
	case !f.VerifyICRC():
		l.stats.RxBadICRC++
	default:
		l.pkt = rc.Packet{
			Op: f.Op, AckReq: bth.AckReq(), Solicited: bth.SE(), BECN: bth.BECN(),
			DestQP: bth.DestQP(), PSN: bth.PSN(), Payload: f.Payload(), CE: f.ECN() == rocev2.CE,
		}
		if h := f.RETH(); h != nil {
			l.pkt.VA, l.pkt.RKey, l.pkt.DMALen = h.VA(), h.RKey(), h.DMALen()
		}
		if h := f.AETH(); h != nil {
			l.pkt.Syndrome, l.pkt.MSN = h.Syndrome(), h.MSN()
		}
		if h := f.ImmDt(); h != nil {
			l.pkt.Imm = h.Data()
		}
		if h := f.IETH(); h != nil {
			l.pkt.InvKey = h.RKey()
		}
		q.rxPackets++
		l.countCongestion(&l.pkt)
		q.rc.Input(now, &l.pkt, &l.out)
		l.drain(q)
	}
}

// serve fires the timers that are due and lets every queue pair send. It returns the next
// deadline, and whether a queue pair has used up its budget.
func (l *loop) serve() (next time.Duration, armed, more bool) {
	now := l.device.now()
	for _, q := range l.qps {
		if t, ok := q.rc.NextDeadline(); ok && t <= now {
			q.rc.Advance(now, &l.out)
			l.drain(q)
			q.noteTimeout(now)
		}
		if q.rc.Transmit(now, &l.out, sendBudget) == sendBudget {
			more = true
		}
		l.drain(q)
		if t, ok := q.rc.NextDeadline(); ok && (!armed || t < next) {
			next, armed = t, true
		}
	}
	return next, armed, more
}

// drain sends the packets and delivers the completions of a call of q.rc. Frames are
// built, and payloads copied, before completions return the memory.
func (l *loop) drain(q *qp) {
	for i := range l.out.Packets {
		l.emit(q, &l.out.Packets[i])
	}
	if len(l.out.Completions) > 0 {
		q.deliver(l.out.Completions)
	}
	if len(l.out.Packets)+len(l.out.Completions) > 0 {
		l.out.Reset()
	}
}

// emit builds one frame and queues it.
func (l *loop) emit(q *qp, p *rc.Packet) {
	q.txPackets++
	if p.Op == rocev2.CNP {
		l.stats.CNPsSent++
	}
	if l.device.cfg.Loss > 0 && l.txLoss.Float64() < l.device.cfg.Loss {
		l.stats.TxLoss++
		return
	}
	s := l.device.sock
	if s.txFree() == 0 {
		l.flush()
	}
	l.ipID++
	q.path.ID, q.path.TOS = l.ipID, l.device.cfg.trafficClass(q.cfg.TrafficClass, p.Op)
	l.build = rocev2.Packet{
		Op: p.Op, SE: p.Solicited, AckReq: p.AckReq, BECN: p.BECN, DestQP: p.DestQP, PSN: p.PSN,
		VA: p.VA, RKey: p.RKey, DMALen: p.DMALen, Imm: p.Imm, Syndrome: p.Syndrome, MSN: p.MSN,
	}
	if p.Op.Is(rocev2.OpIETH) {
		l.build.RKey = p.InvKey
	}
	slot := l.txBuf[s.txN*l.txSlot : (s.txN+1)*l.txSlot]
	n := rocev2.BuildPacket(slot, &q.path, &l.build, p.Payload)
	if n == 0 { // Connect has checked the path MTU and the addresses
		panic(fmt.Sprintf("soft: a packet of our own queue pair cannot be built: opcode 0x%02x, %d bytes", uint8(p.Op), len(p.Payload)))
	}
	s.queue(slot[:n])
	l.stats.TxBytes += uint64(n)
	if l.trace != nil {
		l.trace.sent(slot[:n], &l.stats)
	}
}

// flush passes all queued frames to the kernel. txTimeout describes a full queue.
func (l *loop) flush() {
	s := l.device.sock
	if s.txN == 0 {
		return
	}
	var stalled time.Duration
	for first := true; ; {
		n, err := s.send()
		l.stats.TxFrames += uint64(n)
		if n > 0 {
			l.stats.TxBatches++
		}
		switch {
		case err == nil:
			return
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.ENETDOWN):
			// This one frame is refused, for example with EMSGSIZE after the MTU shrank.
			l.stats.SocketErrors++
			l.stats.TxDropped++
			s.skip()
			continue
		}
		// ENETDOWN is also the result of a full veth ring without a queueing discipline
		// (__dev_queue_xmit), so it is retried in the same way.
		now := l.device.now()
		if first || n > 0 {
			first, stalled = false, now
			l.stats.TxStalls++
		}
		if now-stalled > txTimeout {
			l.stats.TxDropped += uint64(s.dropQueued())
			return
		}
		time.Sleep(txRetry)
	}
}
