// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package copycases

import (
	"fmt"
	"slices"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Case is a frame of the group's source, whose PSN is the next one.
type Case struct {
	Name  string
	Group *Group
	PSN   rocev2.PSN
	Frame []byte
	Op    rocev2.Opcode
	RETH  bool // address and R_Key of the copies to members are their own
	VA    uint64
	Ask   bool // its copies to members have AckReq, by the source or the switch
	Sets  bool // the switch sets it

	// Copies are the frames that leave, by leg of the group.
	Copies [][]byte

	// Left, of a frame of which no copies are made, is why the XDP programs leave it to the
	// worker: the name of a fastpath.Reason. Decode is what rocev2.Decode says of it.
	Left   string
	Decode rocev2.Reason
}

// AckEvery is how many packets the switch leaves between two in whose copies it sets AckReq (R112).
const AckEvery = 32

// minFrame is the length of the shortest Ethernet frame, without FCS.
const minFrame = 60

// draft is a case before its frames are built.
type draft struct {
	name    string
	group   *Group
	path    rocev2.Path
	packet  rocev2.Packet
	payload int
	damage  []flip // changes of what is not rewritten
	sum     uint16 // the UDP checksum
	padded  int    // the frame has zeros behind the packet up to this length
}

// flip changes a byte behind the UDP header, or, below 0, before the packet's end.
type flip struct {
	at int
	by byte
}

// Copied returns the cases whose frames are replicated.
func Copied() (list []Case) {
	for _, v6 := range []bool{false, true} {
		for op := rocev2.SendFirst; op <= rocev2.WriteOnlyImm; op++ {
			for i, n := range sizes(op, 256) {
				list = append(list, draftOf(v6, op, 256, n, i).build())
			}
			for i, pmtu := range []int{512, 1024, 2048} {
				list = append(list, draftOf(v6, op, pmtu, pmtu, i).build())
			}
		}
		for _, d := range special(v6) {
			list = append(list, d.build())
		}
	}
	return list
}

// sizes returns lengths of payload that a packet may have.
func sizes(op rocev2.Opcode, pmtu int) []int {
	switch {
	case op.Is(rocev2.OpFirst | rocev2.OpMiddle):
		return []int{pmtu, pmtu} // with a window, and without
	case op.Is(rocev2.OpLast):
		return []int{1, 2, 3, 4, 5, 7, 8, 63, pmtu - 3, pmtu - 1, pmtu}
	}
	return []int{0, 1, 2, 3, 4, 5, 6, 8, 61, pmtu - 2, pmtu - 1, pmtu}
}

// psns are those around which PSNs wrap, or change their sign.
var psns = []rocev2.PSN{0xFFFFFE, 0xFFFFFF, 0, 1, 0x7FFFFF, 0x800000, 0x123456}

// draftOf returns a frame of that many bytes. The other fields vary with i.
func draftOf(v6 bool, op rocev2.Opcode, pmtu, n, i int) *draft {
	k := i + int(op)
	g := group(v6, pmtu, i%2 == 0)
	d := &draft{
		name:  fmt.Sprintf("%v, %d of %d bytes", op, n, pmtu),
		group: g, payload: n,
		path: rocev2.Path{
			Src: g.Source, Dst: g.IP, SrcMAC: g.SourceMAC, DstMAC: portMAC(0), SrcPort: uint16(0xC000 + 37*k), TTL: []byte{0, 1, 255}[k%3],
			TOS: byte(k * 85), ID: uint16(k * 0x3333), FlowLabel: uint32(k) * 0x1111 & 0xFFFFF, Tagged: k%3 == 1, TCI: uint16(k * 0x1357),
		},
		packet: rocev2.Packet{
			Op: op, DestQP: g.QPN, PSN: psns[k%len(psns)], AckReq: k%2 == 0, SE: k%4 == 0, MigReq: k%5 == 0, BECN: k%7 == 0,
			PKey: uint16(0x8001 + k), VA: 0x1122334455667788, RKey: 0x99AABBCC, DMALen: uint32(n), Imm: 0x01020304,
		},
	}
	if op.Is(rocev2.OpFirst) {
		d.packet.DMALen += uint32(1 + 1000*k)
	}
	if g.WindowLen != 0 {
		d.packet.VA, d.packet.RKey = g.WindowBase+uint64(k*4096), g.WindowRKey
	}
	if d.name += ", IPv4"; v6 {
		d.name = d.name[:len(d.name)-1] + "6"
	}
	if d.path.Tagged {
		d.name += ", tagged"
	}
	if g.WindowLen != 0 {
		d.name += ", with a window"
	}
	return d
}

// special returns frames with something that few have.
func special(v6 bool) (list []*draft) {
	add := func(what string, op rocev2.Opcode, n, i int, change func(*draft)) {
		d := draftOf(v6, op, 256, n, i)
		d.name += ", " + what
		change(d)
		list = append(list, d)
	}
	const icrc, lastByte, resv8a = -1, -rocev2.ICRCLen - 1, 4
	for i := range 2 {
		add("wrong ICRC", rocev2.WriteOnly, 100, i, func(d *draft) { d.damage = []flip{{icrc, 0x80}, {icrc - 3, 1}} })
		add("a bit of the payload flipped", rocev2.WriteFirst, 256, i, func(d *draft) { d.damage = []flip{{lastByte, 0x10}} })
		add("FECN and reserved bits", rocev2.SendOnly, 10, i, func(d *draft) { d.damage = []flip{{resv8a, 0xBF}} })
		add("UDP checksum", rocev2.SendMiddle, 256, i, func(d *draft) { d.sum = 0xBEEF })
		add("zeros behind the packet", rocev2.SendOnly, 0, i, func(d *draft) { d.padded = 64 })
		add("many zeros behind the packet", rocev2.WriteLast, 9, i, func(d *draft) { d.padded = 200 })
		add("priority tag", rocev2.SendLast, 9, i, func(d *draft) { d.path.Tagged, d.path.TCI = true, 0xF000 })
	}
	add("the window's first byte", rocev2.WriteOnly, 1, 0, func(d *draft) { d.packet.VA = d.group.WindowBase })
	add("the window's last bytes", rocev2.WriteOnlyImm, 200, 0, func(d *draft) { d.packet.VA = d.group.WindowBase + d.group.WindowLen - 200 })
	add("the whole window", rocev2.WriteFirst, 256, 0, func(d *draft) { d.packet.VA, d.packet.DMALen = d.group.WindowBase, uint32(d.group.WindowLen) })
	add("no bytes, anywhere", rocev2.WriteOnly, 0, 0, func(d *draft) { d.packet.VA, d.packet.RKey = 1, 2 })
	return list
}

// build builds the frames of a case.
func (d *draft) build() Case {
	c := Case{
		Name: d.name, Group: d.group, PSN: d.packet.PSN, Op: d.packet.Op, VA: d.packet.VA,
		RETH: d.group.WindowLen != 0 && d.packet.Op.Is(rocev2.OpRETH) && d.packet.DMALen != 0,
	}
	asks := c.PSN%AckEvery == AckEvery-1
	c.Ask, c.Sets = d.packet.AckReq || asks, asks && !d.packet.AckReq
	c.Frame = d.frame(&d.path, &d.packet, d.sum)
	for i := range d.group.Legs {
		c.Copies = append(c.Copies, d.copyFor(&d.group.Legs[i], &c))
	}
	if d.padded > len(c.Frame) {
		c.Frame = append(c.Frame, make([]byte, d.padded-len(c.Frame))...)
	}
	return c
}

// copyFor builds the frame that leaves for l.
func (d *draft) copyFor(l *Leg, c *Case) []byte {
	path, packet, sum := d.path, d.packet, d.sum
	path.SrcMAC, path.DstMAC, path.Tagged, path.TCI = l.PortMAC, l.MAC, l.VLAN != 0, l.VLAN
	if d.path.Tagged {
		path.TCI |= d.path.TCI & 0xF000 // the priority
	}
	if l.IP.IsValid() {
		path.Src, path.Dst, sum = d.group.IP, l.IP, 0
		packet.AckReq = c.Ask
		packet.DestQP, packet.PSN = l.QPN, (packet.PSN+l.PSN)&rocev2.PSNMask
		if c.RETH {
			packet.VA, packet.RKey = packet.VA+l.VA, l.RKey
		}
	}
	b := d.frame(&path, &packet, sum)
	return append(b, make([]byte, max(0, minFrame-len(b)))...)
}

// frame builds a frame from its fields.
func (d *draft) frame(path *rocev2.Path, packet *rocev2.Packet, sum uint16) []byte {
	payload := make([]byte, d.payload)
	for i := range payload {
		payload[i] = byte(i*7 + i>>8 + int(d.packet.Op))
	}
	b := make([]byte, rocev2.PacketLen(path, packet.Op, d.payload))
	if rocev2.BuildPacket(b, path, packet, payload) != len(b) {
		panic("copycases: " + d.name + ": no packet can be built")
	}
	udp := path.HeaderLen() - rocev2.UDPLen
	b[udp+6], b[udp+7] = byte(sum>>8), byte(sum)
	for _, f := range d.damage {
		if f.at < 0 {
			b[len(b)+f.at] ^= f.by
		} else {
			b[path.HeaderLen()+f.at] ^= f.by
		}
	}
	return slices.Clip(b)
}
