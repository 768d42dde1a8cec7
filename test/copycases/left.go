// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package copycases

import (
	"encoding/binary"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Why the XDP programs leave a frame to the worker.
const (
	leftSource  = "not_source"
	leftOpcode  = "opcode"
	leftHeaders = "headers"
	leftLength  = "length"
	leftWindow  = "window"
)

// Left returns the cases whose frames the XDP programs leave to the worker.
func Left() (list []Case) {
	for _, v6 := range []bool{false, true} {
		// change changes the packet's fields, edit its bytes, of which ip are those from the IP header on.
		add := func(what, why string, decode rocev2.Reason, change func(*draft), edit func(b, ip []byte) []byte) {
			d := draftOf(v6, rocev2.SendOnly, 256, 100, 1)
			d.path.Tagged = false
			d.name = what + ", IPv4"
			if v6 {
				d.name = what + ", IPv6"
			}
			if change != nil {
				change(d)
			}
			c := d.build()
			c.Copies, c.Left, c.Decode = nil, why, decode
			if edit != nil {
				c.Frame = edit(c.Frame, c.Frame[rocev2.EthernetLen:])
			}
			list = append(list, c)
		}
		ipLen := rocev2.IPv6Len
		if !v6 {
			ipLen = rocev2.IPv4Len
			addIPv4(add)
		}
		addHeaders(add, ipLen)
		addLengths(add)
	}
	return list
}

type addCase func(what, why string, decode rocev2.Reason, change func(*draft), edit func(b, ip []byte) []byte)

func addIPv4(add addCase) {
	sum := func(ip []byte) { rocev2.IPv4(ip).UpdateChecksum() }
	fragment := func(field uint16) func(b, ip []byte) []byte {
		return func(b, ip []byte) []byte {
			binary.BigEndian.PutUint16(ip[6:], field)
			sum(ip)
			return b
		}
	}
	add("first fragment", leftHeaders, rocev2.ReasonFragment, nil, fragment(0x2000))
	add("last fragment", leftHeaders, rocev2.ReasonFragment, nil, fragment(0x0001))
	add("middle fragment", leftHeaders, rocev2.ReasonFragment, nil, fragment(0x3FFF))
	add("wrong header checksum", leftHeaders, rocev2.ReasonIPChecksum, nil, func(b, ip []byte) []byte { ip[8]--; return b })
	add("IPv4 options", leftHeaders, rocev2.OK, nil, func(b, _ []byte) []byte {
		l3 := rocev2.EthernetLen
		out := append(append(append([]byte{}, b[:l3+rocev2.IPv4Len]...), 1, 1, 1, 0), b[l3+rocev2.IPv4Len:]...)
		h := rocev2.IPv4(out[l3:])
		h[0] = 0x46
		binary.BigEndian.PutUint16(h[2:], uint16(len(out)-l3))
		sum(h)
		return out
	})
	add("total length beyond the frame", leftHeaders, rocev2.ReasonTruncated, nil, func(b, ip []byte) []byte {
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+1))
		binary.BigEndian.PutUint16(ip[24:], uint16(len(ip)+1-rocev2.IPv4Len))
		sum(ip)
		return b
	})
}

func addHeaders(add addCase, ipLen int) {
	bth := ipLen + rocev2.UDPLen
	set := func(at int, change func(byte) byte) func(b, ip []byte) []byte {
		return func(b, ip []byte) []byte { ip[at] = change(ip[at]); return b }
	}
	plus := func(n byte) func(byte) byte { return func(b byte) byte { return b + n } }
	add("UDP length", leftHeaders, rocev2.ReasonBadUDPLength, nil, set(ipLen+5, plus(4)))
	add("cut", leftHeaders, rocev2.ReasonTruncated, nil, func(b, _ []byte) []byte { return b[:len(b)-1] })
	add("transport version", leftHeaders, rocev2.ReasonBadTVer, nil, set(bth+1, plus(1)))
	add("more pad than bytes", leftHeaders, rocev2.ReasonBadPad, func(d *draft) { d.payload, d.packet.DMALen = 0, 0 }, set(bth+1, func(b byte) byte { return b | 0x10 }))
	add("another QPN", leftHeaders, rocev2.OK, func(d *draft) { d.packet.DestQP++ }, nil)
	add("another source MAC address", leftSource, rocev2.OK, func(d *draft) { d.path.SrcMAC[5]++ }, nil)
	add("another source", leftSource, rocev2.OK, func(d *draft) { d.path.Src = d.path.Src.Next() }, nil)
	add("ACK", leftOpcode, rocev2.OK, func(d *draft) { d.packet.Op, d.payload = rocev2.Acknowledge, 0 }, nil)
	add("CNP", leftOpcode, rocev2.OK, func(d *draft) { d.packet.Op, d.payload = rocev2.CNP, 16 }, nil)
	add("READ", leftOpcode, rocev2.OK, func(d *draft) { d.packet.Op, d.payload = rocev2.ReadRequest, 0 }, nil)
	add("compare and swap", leftOpcode, rocev2.OK, func(d *draft) { d.packet.Op, d.payload = rocev2.CompareSwap, 0 }, nil)
	add("SEND with invalidate", leftOpcode, rocev2.OK, func(d *draft) { d.packet.Op = rocev2.SendOnlyInv }, nil)
	add("no opcode of RC", leftOpcode, rocev2.ReasonUnknownOpcode, nil, set(bth, func(byte) byte { return 0x24 }))
}

func addLengths(add addCase) {
	sized := func(op rocev2.Opcode, n int) func(*draft) {
		return func(d *draft) { d.packet.Op, d.payload, d.packet.DMALen = op, n, uint32(n) }
	}
	add("MIDDLE with less than the path MTU", leftLength, rocev2.OK, sized(rocev2.SendMiddle, 252), nil)
	add("MIDDLE with pad", leftLength, rocev2.OK, sized(rocev2.WriteMiddle, 255), nil)
	add("FIRST with more than the path MTU", leftLength, rocev2.OK, sized(rocev2.SendFirst, 260), nil)
	add("LAST without bytes", leftLength, rocev2.OK, sized(rocev2.SendLast, 0), nil)
	add("ONLY with more than the path MTU", leftLength, rocev2.OK, sized(rocev2.SendOnlyImm, 257), nil)
	write := func(op rocev2.Opcode, n int, change func(*draft)) func(*draft) {
		return func(d *draft) {
			g := group(d.group.IP.Is6(), d.group.PMTU, true)
			d.group, d.payload = g, n
			d.packet.Op, d.packet.DMALen, d.packet.VA, d.packet.RKey = op, uint32(n), g.WindowBase, g.WindowRKey
			change(d)
		}
	}
	add("WRITE ONLY of another length", leftLength, rocev2.OK, write(rocev2.WriteOnly, 100, func(d *draft) { d.packet.DMALen++ }), nil)
	add("WRITE FIRST of one packet", leftLength, rocev2.OK, write(rocev2.WriteFirst, 256, func(*draft) {}), nil)
	add("WRITE before the window", leftWindow, rocev2.OK, write(rocev2.WriteOnly, 4, func(d *draft) { d.packet.VA-- }), nil)
	add("WRITE over the window's end", leftWindow, rocev2.OK, write(rocev2.WriteOnly, 4, func(d *draft) { d.packet.VA += d.group.WindowLen - 3 }), nil)
	add("WRITE behind the window", leftWindow, rocev2.OK, write(rocev2.WriteOnly, 4, func(d *draft) { d.packet.VA += d.group.WindowLen + 1 }), nil)
	add("WRITE with another R_Key", leftWindow, rocev2.OK, write(rocev2.WriteOnlyImm, 4, func(d *draft) { d.packet.RKey++ }), nil)
	add("WRITE FIRST over the window's end", leftWindow, rocev2.OK, write(rocev2.WriteFirst, 256, func(d *draft) { d.packet.DMALen = uint32(d.group.WindowLen) + 1 }), nil)
}
