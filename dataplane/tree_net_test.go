// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// treeNet is a leaf, a spine and a leaf, whose ports are fakes, with hosts that have queue
// pairs of one group. The test carries every frame from one end of a link to the other.
// It runs in a bubble of synctest: time passes where the test says so.
type treeNet struct {
	t       *testing.T
	random  *rand.Rand
	loss    float64 // the loss of each link, in each direction
	start   time.Time
	nodes   []*treeNode
	hosts   []*treeHost
	group   netip.Addr
	window  mcast.Window
	session uint64 // the session of all adjacencies
	budget  int    // the packets that a host sends in 10 us at most
	// seen counts, by link and direction, how often each data packet passed it.
	seen map[string]int
	// mayOverflow: a frame that finds the ring of a port full is lost. Else it fails the test.
	mayOverflow bool
	// outage reports that the link of a host loses what it sends, or what goes to it, now.
	// nil: never.
	outage func(h *treeHost, sends bool) bool
	// onFrame is called for each frame that is put on a link.
	onFrame func(from, to treeEnd, frame []byte)
}

type treeNode struct {
	*fakeStar
	name string
	ends []treeEnd // the other ends of the links, by port
}

// treeEnd is an end of a link: a host, or a port of a switch.
type treeEnd struct {
	host *treeHost
	node *treeNode
	port int
}

func (e *treeEnd) String() string {
	if e.host != nil {
		return e.host.ip.String()
	}
	return fmt.Sprintf("%s.%d", e.node.name, e.port)
}

// treeHost is a host, and its queue pair.
type treeHost struct {
	n        *treeNet
	ip       netip.Addr
	mac      rocev2.MAC
	at       treeEnd
	spec     mcast.MemberSpec
	qp       *rc.QP
	mem      []byte // its window
	buffers  map[uint64][]byte
	received [][]byte // SENDs
	out      rc.Output
	done     []rc.Completion
	nextID   uint64
	receive  int  // bytes of a receive
	dead     bool // true: it sends nothing, and takes nothing
	mayFail  bool // true: its queue pair may end in error
}

const (
	treeQPN       = rocev2.QPN(0x4711)
	treeWindow    = 1 << 20
	treeSwitchKey = "hex:8f1c2b7ad3e49056c1a7f03b5d6e2849b0c7d1e2f3a4958677061524334251ab"
)

type treeConfig struct {
	workers     string // the workers of the configuration
	pmtu        int
	loss        float64
	seed        uint64
	personality rc.Personality
	deadAfter   time.Duration
	policy      mcast.Policy
	quorum      int
	hosts       []rc.Personality // personality of each host, whose window is then its; nil: all have personality, and a small window
	receive     int              // bytes of a receive, with hosts
	budget      int              // packets that a host sends in 10 us at most, with hosts
	stored      bool             // true: positions are stored, so that the group can resume
}

// newTreeNet makes the network. Hosts 0 and 1 are at the first leaf, 2 and 3 at the
// second, 4 at the spine.
func newTreeNet(t *testing.T, c treeConfig) *treeNet {
	n := &treeNet{
		t: t, random: rand.New(rand.NewPCG(c.seed, 5)), loss: c.loss, start: time.Now(), group: netip.MustParseAddr("10.77.254.1"),
		window: mcast.Window{Base: 0x10000, Len: treeWindow, RKey: 0x1234567}, seen: make(map[string]int), budget: 8,
	}
	for _, name := range []string{"leaf1", "spine", "leaf2"} {
		mtu := 1500
		if c.pmtu > 1024 {
			mtu = 4200
		}
		cfg := fakeConfig(t, 3, "umem: {frames: 8192}\nswitch: {id: \"00000000000000ff\", keys: [{id: 1, secret: \""+treeSwitchKey+"\"}]}\n"+c.workers, "")
		x := &treeNode{fakeStar: newFakeStar(t, lab.StarConfig{Hosts: 3, MTU: mtu}, cfg), name: name, ends: make([]treeEnd, 3)}
		for _, w := range x.all {
			w.start = n.start
			for i, p := range w.ports {
				p.mac = rocev2.MAC{2, 0, 0, 1, byte(len(n.nodes)), byte(i)}
			}
		}
		n.nodes = append(n.nodes, x)
	}
	leaf1, spine, leaf2 := n.nodes[0], n.nodes[1], n.nodes[2]
	n.connect(leaf1, 2, spine, 0, 0)
	n.connect(leaf2, 2, spine, 1, 7)
	n.setNeighbours(true)
	for _, at := range []treeEnd{{node: leaf1, port: 0}, {node: leaf1, port: 1}, {node: leaf2, port: 0}, {node: leaf2, port: 1}, {node: spine, port: 2}} {
		n.addHost(at, c)
	}
	for _, x := range n.nodes {
		n.put(x, c, nil)
	}
	n.runUntil("probes", func() bool { return n.now() > 20*time.Millisecond && !n.step() })
	return n
}

// connect links two switches; group frames have this VLAN there.
func (n *treeNet) connect(a *treeNode, pa int, b *treeNode, pb int, vlan uint16) {
	a.ends[pa], b.ends[pb] = treeEnd{node: b, port: pb}, treeEnd{node: a, port: pa}
	for _, w := range a.all {
		w.ports[pa].vlan = vlan
	}
	for _, w := range b.all {
		w.ports[pb].vlan = vlan
	}
}

// setNeighbours makes all adjacencies up, with a new session, or down. A neighbour's number
// is its port's index and 10.
func (n *treeNet) setNeighbours(up bool) {
	n.session++
	defer func() {
		for _, x := range n.nodes {
			for _, w := range x.all {
				w.setSessions(0)
			}
		}
	}()
	for _, x := range n.nodes {
		for i, e := range x.ends {
			for _, w := range x.all {
				if w.ports[i].neighbour = (neighbour{}); up && e.node != nil {
					w.ports[i].neighbour = neighbour{id: mcast.Neighbor(10 + i), mac: e.node.ports[e.port].mac, session: n.session}
				}
				if w.neighbourPorts == nil {
					w.neighbourPorts = make(map[mcast.Neighbor]int)
				}
				if delete(w.neighbourPorts, mcast.Neighbor(10+i)); up && e.node != nil {
					w.neighbourPorts[mcast.Neighbor(10+i)] = i
				}
			}
		}
	}
}

func (n *treeNet) addHost(at treeEnd, c treeConfig) {
	i := len(n.hosts)
	h := &treeHost{n: n, ip: fakeHost(i), mac: rocev2.MAC{2, 0, 0, 0, 1, byte(i)}, at: at, mem: make([]byte, treeWindow), buffers: make(map[uint64][]byte), receive: treeWindow}
	personality, window, receives := c.personality, 64, 100
	if c.hosts != nil {
		personality, window, receives, h.receive = c.hosts[i], 0, 8, c.receive
	}
	memory := rc.NewMemory(uint64(i) + 1)
	mr, err := memory.RegisterMR(h.mem, uint64(i+1)<<32, rc.RemoteWrite)
	if err != nil {
		n.t.Fatal(err)
	}
	h.spec = mcast.MemberSpec{
		MemberRecord: mcast.MemberRecord{
			IP: h.ip, QPN: rocev2.QPN(0x100 + i), SQPSN: rocev2.PSN(0xFFFFF0 - 100_000*i), RQPSN: rocev2.PSN(0xFFFFE0 - 77_777*i),
			Window: mcast.Window{Base: mr.IOVA, Len: treeWindow, RKey: mr.RKey},
		},
	}
	h.qp, err = rc.New(rc.Config{
		Personality: personality, PMTU: c.pmtu, LocalQPN: h.spec.QPN, DestQPN: treeQPN, SQPSN: h.spec.SQPSN, RQPSN: h.spec.RQPSN,
		Timeout: 67 * time.Millisecond, RetryCnt: 7, RNRRetry: rc.Infinite, MaxUnacked: window, Memory: memory,
	})
	if err != nil {
		n.t.Fatal(err)
	}
	for range receives {
		h.postReceive()
	}
	at.node.ends[at.port] = treeEnd{host: h}
	n.hosts = append(n.hosts, h)
}

func (h *treeHost) postReceive() {
	buf := make([]byte, h.receive)
	h.nextID++
	h.buffers[h.nextID] = buf
	if err := h.qp.PostRecv(rc.RecvWR{ID: h.nextID, Buf: buf}); err != nil {
		h.n.t.Fatal(err)
	}
}

// toward returns the port of x by which h is reached.
func (n *treeNet) toward(x *treeNode, h *treeHost) int {
	if x == h.at.node {
		return h.at.port
	}
	for i, e := range x.ends {
		if e.node == h.at.node {
			return i
		}
	}
	return 2 // from a leaf by the spine
}

// put makes x serve the group, which goes on from the positions if there are any.
func (n *treeNet) put(x *treeNode, c treeConfig, resume *mcast.Positions) {
	owner := x.all[len(x.all)/2]
	spec := mcast.GroupSpec{
		Tree: mcast.TreeSpec{Epoch: 1}, AckEvery: mcast.DefaultAckEvery, Stored: c.stored, Resume: resume,
		IP: n.group, GroupParams: mcast.GroupParams{QPN: treeQPN, PathMTU: c.pmtu, Policy: c.policy, Quorum: c.quorum, DeadAfter: c.deadAfter}, Repair: owner.repairSpec, PSNProbe: owner.psnProbe, Window: n.window,
	}
	table := Table{IP: n.group, QPN: treeQPN, PMTU: c.pmtu}
	at := make(map[int]mcast.LegID)
	for _, h := range n.hosts {
		m, port := h.spec, n.toward(x, h)
		id, ok := at[port]
		if !ok {
			id = mcast.LegID(len(spec.Legs))
			at[port] = id
			l := mcast.LegSpec{Port: mcast.Port(port)}
			if x.ends[port].node != nil {
				l.Kind, l.Neighbor = mcast.Forwarded, mcast.Neighbor(10+port)
			}
			spec.Legs = append(spec.Legs, l)
			table.Legs = append(table.Legs, Leg{Neighbour: l.Neighbor, Port: port})
			if x.ends[port].node != nil && x.name != "spine" {
				spec.Tree.Parent = l.Neighbor
			}
		}
		m.Leg = id
		d := Destination{Origin: Origin{Port: -1}, IP: h.ip, QPN: m.QPN, Leg: id}
		if h.at.node == x {
			d.Origin = Origin{Port: port, MAC: h.mac}
		}
		spec.Members = append(spec.Members, m)
		table.Destinations = append(table.Destinations, d)
	}
	if err := owner.putGroup(spec, owner.makeTable(&table)); err != nil {
		n.t.Fatal(err)
	}
	x.owners.put(n.group, owner.index)
}

// carry puts a frame onto a link.
func (n *treeNet) carry(from, to treeEnd, frame []byte) {
	if n.onFrame != nil {
		n.onFrame(from, to, frame)
	}
	var f rocev2.Frame
	if rocev2.Decode(frame, &f) == rocev2.OK && f.Kind == rocev2.KindRoCE && f.Op.Is(rocev2.OpRequest) && f.Op != rocev2.WriteOnly {
		n.seen[fmt.Sprintf("%v>%v %v %06x", &from, &to, f.Src(), f.BTH().PSN())]++
	}
	if n.random.Float64() < n.loss || n.outage != nil && (to.host != nil && n.outage(to.host, false) || from.host != nil && n.outage(from.host, true)) {
		return
	}
	if to.host != nil {
		to.host.input(frame)
		return
	}
	if !to.node.queues[to.port][0].Arrive(frame) && !n.mayOverflow {
		stats, _ := to.node.queues[to.port][0].Stats()
		n.t.Fatalf("%v takes no more frames: %+v", &to, stats)
	}
}

func (n *treeNet) now() time.Duration { return time.Since(n.start) }

// input takes a frame from the wire, as a host's NIC does.
func (h *treeHost) input(frame []byte) {
	if h.dead {
		return
	}
	var f rocev2.Frame
	if r := rocev2.Decode(frame, &f); r != rocev2.OK || f.Kind != rocev2.KindRoCE {
		return
	}
	if f.Eth().Dst() != h.mac || f.Dst() != h.ip || f.Src() != h.n.group || f.BTH().DestQP() != h.spec.QPN {
		h.n.t.Fatalf("host %v gets a frame of %v for %v, MAC %v, QPN %x", h.ip, f.Src(), f.Dst(), f.Eth().Dst(), uint32(f.BTH().DestQP()))
	}
	if !f.VerifyICRC() {
		h.n.t.Fatalf("host %v gets a frame with a wrong ICRC: %v", h.ip, f.Op)
	}
	bth := f.BTH()
	p := rc.Packet{Op: f.Op, AckReq: bth.AckReq(), Solicited: bth.SE(), BECN: bth.BECN(), CE: f.ECN() == rocev2.CE, DestQP: bth.DestQP(), PSN: bth.PSN(), Payload: bytes.Clone(f.Payload())}
	if x := f.RETH(); x != nil {
		p.VA, p.RKey, p.DMALen = x.VA(), x.RKey(), x.DMALen()
	}
	if x := f.AETH(); x != nil {
		p.Syndrome, p.MSN = x.Syndrome(), x.MSN()
	}
	if x := f.ImmDt(); x != nil {
		p.Imm = x.Data()
	}
	if x := f.IETH(); x != nil {
		p.InvKey = x.RKey()
	}
	h.qp.Input(h.n.now(), &p, &h.out)
	h.flush()
}

// flush sends what the queue pair has produced, and notes its completions.
func (h *treeHost) flush() (any bool) {
	packets := h.out.Packets
	h.out.Packets = nil
	for _, c := range h.out.Completions {
		if c.Status != rc.Success {
			if h.mayFail {
				continue
			}
			h.n.t.Fatalf("host %v: %v of %v", h.ip, c.Status, c.Op)
		}
		if c.Recv() {
			h.received = append(h.received, h.buffers[c.ID][:c.Bytes])
			delete(h.buffers, c.ID)
			if h.qp.State() == rc.RTS {
				h.postReceive()
			}
			continue
		}
		h.done = append(h.done, c)
	}
	any = len(packets)+len(h.out.Completions) > 0
	h.out.Completions = h.out.Completions[:0]
	b := make([]byte, 5000)
	for i := range packets {
		p := &packets[i]
		path := rocev2.Path{Src: h.ip, Dst: h.n.group, SrcMAC: h.mac, DstMAC: h.at.node.ports[h.at.port].mac, SrcPort: sourcePort(h.spec.QPN), TOS: 2}
		k := rocev2.Packet{
			Op: p.Op, SE: p.Solicited, AckReq: p.AckReq, BECN: p.BECN, DestQP: p.DestQP, PSN: p.PSN, Syndrome: p.Syndrome, MSN: p.MSN,
			VA: p.VA, RKey: p.RKey, DMALen: p.DMALen, Imm: p.Imm,
		}
		if p.Op.Is(rocev2.OpIETH) {
			k.RKey = p.InvKey
		}
		h.n.carry(treeEnd{host: h}, h.at, bytes.Clone(b[:rocev2.BuildPacket(b, &path, &k, p.Payload)]))
	}
	return any
}

// step has every host and every worker do what they can, which takes 10 us, and reports
// whether anything happened.
func (n *treeNet) step() (any bool) {
	time.Sleep(10 * time.Microsecond)
	for _, h := range n.hosts {
		if h.dead {
			continue
		}
		h.qp.Advance(n.now(), &h.out)
		h.qp.Transmit(n.now(), &h.out, n.budget)
		any = h.flush() || any
	}
	for _, x := range n.nodes {
		for _, w := range x.all {
			any = w.runBatch() > 0 || any
		}
	}
	for _, x := range n.nodes {
		for i, qs := range x.queues {
			for _, frame := range qs[0].Sent() {
				any = true
				n.carry(treeEnd{node: x, port: i}, x.ends[i], frame)
			}
		}
	}
	return any
}

// jump lets time go on to the next deadline.
func (n *treeNet) jump() {
	wait := time.Hour
	for _, x := range n.nodes {
		for _, w := range x.all {
			wait = min(wait, w.sleepTime())
		}
	}
	for _, h := range n.hosts {
		if at, ok := h.qp.NextDeadline(); ok && !h.dead {
			wait = min(wait, max(0, at-n.now()))
		}
	}
	for _, x := range n.nodes {
		for _, w := range x.all {
			w.pauses.setRunBy(w.elapsed() + wait)
		}
	}
	time.Sleep(wait)
}

// runUntil runs the network until done, and fails the test if that takes too long.
func (n *treeNet) runUntil(what string, done func() bool) {
	n.t.Helper()
	end := n.now() + 5*time.Minute
	for !done() {
		if !n.step() {
			n.jump()
		}
		if n.now() > end {
			for _, x := range n.nodes {
				for _, w := range x.all {
					n.t.Logf("%s worker %d: drops %v", x.name, w.index, w.count.drops())
				}
			}
			n.t.Fatalf("%s: not done after %v", what, n.now())
		}
	}
}
