// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"time"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/locate"
	"github.com/gleam-rdma/gleam/dataplane/ntuple"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// port is one port of the switch. Its identity is fixed; the counters and the fields
// below the line belong to the worker.
type port struct {
	name            string
	ifindex         int
	driver          string
	mac             rocev2.MAC
	mtu             int    // of the interface; changed by the control loop, in closures of the workers
	maxMTU          int    // the largest value of mtu that the buffers allow; 0: no limit
	vlan            uint16 // VID of group frames sent here; 0 untagged
	multiBuffer     bool   // packets may be in several buffers
	xdp             *bpf.PortProgram
	nicRules        *ntuple.Table // used by the control loop; nil: steering by NIC rules is off or not supported
	sockets         []*xsk.Socket // one for each RX queue
	reportedUp      bool          // the state that the operator was last told; used by the control loop
	partialReported bool          // the operator was told of partial checksums; used by the control loop
	bridge          int           // ifindex of the bridge that the interface is a port of; 0: none
	allow           *config.Allow
	bridgeState     locate.BridgePort // the port's state at its bridge; used by the control loop
	status          *portStatus       // nil if there is one worker
	remoteTX        *remoteTX         // to the worker that transmits for this port; nil: the worker of this view does
	// ---- used by the worker
	rxSockets       []*xsk.Socket // the sockets that this worker receives from; if it transmits, it does so by the first one
	down            bool          // no carrier, disabled, or gone
	vanished        bool          // the interface has vanished, and the sockets are closed
	isolated        bool          // an isolated port of its bridge: nothing goes from it to another isolated one
	tx              []xsk.Desc    // staged in this batch for the TX ring
	txLimit         int           // the number of frames that tx may have, as of the last flush
	maxPacketFrames int           // the most frames that one packet of a group has had at this port
	lastProgress    time.Duration // when a frame left last, or when there was none to send
	kickAt          time.Duration // the kernel has not taken all frames, and is not kicked before this time; 0: it has taken all
	takenAtKick     uint32        // frames that the kernel had taken in total after the last kick
	queue           egressQueue   // frames that wait for room in the TX ring, or for their time at the port's rate
	ecn             marker
	sentBytes       []uint16 // descLinkBytes of the buffers in the TX ring, in order; its length is a power of two
	sentHead        uint32   // sentHead, sentTail are free-running: the index completed next, and sent next
	sentTail        uint32
	txBytes         int // the sum of sentBytes over the TX ring
	maxDepth        int // the largest depth so far
	rxFrames        uint64
	txFrames        uint64
	ceMarked        uint64 // data frames that were marked CE here
	deferred        uint64 // times that a copy stayed in a repair store for lack of room here
	fullAt          uint64 // the core call after the last one in which there was no room
	refusedFrames   uint64 // copies and replies that the queue did not admit
	// Policers of packets that a host behind this port may send and that cost others
	// something.
	nakPolicer, envelopePolicer, neighbourPolicer policer

	addressPolicers addressPolicers
	sightingPolicer policer
}

// openPort attaches the XDP program to the interface named in c and binds an
// AF_XDP socket to each of its receive queues.
func openPort(c *config.Port, cfg *config.Config, steering *bpf.Steering, umem *xsk.Umem) (_ *port, err error) {
	link, queues, err := findPort(c)
	if err != nil {
		return nil, err
	}
	a := link.Attrs()
	p := &port{
		name: c.Name, ifindex: a.Index, mac: rocev2.MAC(a.HardwareAddr), mtu: a.MTU, vlan: uint16(c.VLAN),
		down: !locate.Running(a),
	}
	p.reportedUp = !p.down
	p.driver, p.bridge = driverOf(c.Name), a.MasterIndex
	p.sightingPolicer = newPolicer(sightingRate)
	p.nakPolicer, p.envelopePolicer, p.neighbourPolicer = newPolicer(cfg.Limits.NAKsPerPort), newPolicer(cfg.Limits.EnvelopesPerPort), newPolicer(cfg.Limits.NeighboursPerPort)
	p.addressPolicers = newAddressPolicers(cfg.Limits.EnvelopesPerAddress)
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	p.allow = &c.Allow
	if p.xdp, err = steering.AttachMTU(p.ifindex, p.name, bpfMode(cfg.XDP.Mode), p.mtu); err != nil {
		return nil, err
	}
	if err := p.xdp.SetPolicy(&bpf.Policy{Blocked: true}); err != nil { // until newBridgeFollower sets the port's own policy
		return nil, err
	}
	p.multiBuffer = p.xdp.Frags() || p.mtu+rocev2.EthernetLen+2*rocev2.VLANLen > umem.MaxReceive()
	if !p.multiBuffer {
		p.maxMTU = umem.MaxReceive() - rocev2.EthernetLen - 2*rocev2.VLANLen
	}
	for _, q := range queues {
		s, err := xsk.Open(umem, xsk.Config{
			Ifindex: p.ifindex, Ifname: p.name, Queue: q,
			RxSize: cfg.Rings.RX, TxSize: cfg.Rings.TX, FillSize: cfg.Rings.Fill, CompSize: cfg.Rings.Completion,
			ZeroCopy: xskMode(cfg.XDP.ZeroCopy), MultiBuffer: p.multiBuffer,
		})
		if err != nil {
			return nil, err
		}
		p.sockets = append(p.sockets, s)
		if err := p.xdp.SetSocket(q, s.FD()); err != nil {
			return nil, err
		}
	}
	p.rxSockets = p.sockets
	p.tx = make([]xsk.Desc, 0, cfg.Rings.TX)
	p.txLimit = p.rxSockets[0].TxRoom()
	p.sentBytes = make([]uint16, max(cfg.Rings.TX, cfg.Rings.Completion))
	p.queue = newEgressQueue(c.Queue, queueFrames(cfg), int64(c.Rate))
	p.txLimit = min(p.txLimit, p.queue.maxFrames)
	p.ecn = newMarker(c.ECN, uint64(p.ifindex))
	return p, nil
}

// close detaches the program, so that the port forwards like any other
// interface again, and then releases the sockets.
func (p *port) close() {
	if p.nicRules != nil {
		p.nicRules.Close() // a failure was reported: the interface is gone, or its driver has lost the rules
	}
	if p.xdp != nil {
		p.xdp.Close()
	}
	for _, s := range p.sockets {
		s.Close()
	}
}

// closePort closes the sockets of port pi, whose interface has vanished, and returns to
// the pool the frames that the kernel held for them and those that were queued. All
// workers stand still. An interface of the same name that appears later is another one;
// gleamd must be restarted to serve it.
func (c *workers) closePort(pi int) {
	w := c.all[c.txWorker(pi)]
	for _, o := range c.all {
		p := o.ports[pi]
		p.vanished, p.down = true, true
		o.unstage(p) // a closure that ran just before may have staged frames
		o.drainQueue(p)
		if p.remoteTX != nil {
			w.freeRemote(p.remoteTX)
		}
	}
	p := c.ports[pi]
	p.txBytes, p.sentHead, p.queue.inTXRing = 0, p.sentTail, 0
	for _, s := range p.sockets {
		s.Close() // the file descriptor is closed whatever Close returns
		for {
			n := s.Reclaim(w.addrs)
			if n == 0 {
				break
			}
			w.pool.Give(w.addrs[:n])
		}
	}
}

// drainQueue returns the frames of p's queue to the pool, since p is down.
func (w *worker) drainQueue(p *port) {
	for p.queue.len() > 0 {
		d := p.queue.pop()
		w.pool.GiveOne(d.Addr)
		if isLast(d) {
			w.count.drop[dropPortDown]++
		}
	}
	p.queue.idle = true
}

// unstage returns the frames that are staged for p, which has vanished, to the pool.
func (w *worker) unstage(p *port) {
	for _, d := range p.tx {
		w.pool.GiveOne(d.Addr)
		if isLast(d) {
			w.count.drop[dropPortDown]++
		}
	}
	p.tx = p.tx[:0]
}

// queueFrames returns how many frames of the UMEM may wait in the queue and TX ring of
// each port. All ports together may hold a quarter of the UMEM, so that ports that are
// slow, or do not transmit at all, leave frames for the others to receive and copy into.
// With several workers half of that quarter is for the remote TX rings.
func queueFrames(cfg *config.Config) int {
	share := 4
	if len(cfg.Worker.CPUs) > 1 {
		share = 8
	}
	return cfg.UMEM.Frames / share / len(cfg.Ports)
}
