// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/rocev2"
)

// packetOfCapture returns the packet in frame n of a capture; for n = 0 in its first frame that is a
// packet of a queue pair, to wanted if that is valid, and that the switch did not send itself.
func packetOfCapture(r io.Reader, n int, wanted netip.Addr) (p *api.ExplainPacket, group netip.Addr, note string, err error) {
	if n < 0 {
		return nil, group, "", UsageErrorf("--frame %d: frames are numbered from 1", n)
	}
	c, err := openCapture(r)
	if err != nil {
		return nil, group, "", err
	}
	for {
		x, err := c.next()
		cut := errors.As(err, new(cutError))
		switch {
		case (cut || errors.Is(err, io.EOF)) && n > 0:
			return nil, group, "", noFrame(n, c.count, cut)
		case cut || errors.Is(err, io.EOF):
			return nil, group, "", noPacket(c.count, wanted)
		case err != nil:
			return nil, group, "", err
		case n > x.number, n == 0 && (x.foreign != nil || x.copied):
			continue
		case x.foreign != nil:
			return nil, group, "", fmt.Errorf("frame %d: %w", n, x.foreign)
		}
		if p, group, err = packetOfFrame(x.data, x.lacking()); n == 0 && (err != nil || wanted.IsValid() && group != wanted) {
			continue
		}
		if err != nil {
			return nil, group, "", fmt.Errorf("frame %d: %w", n, err)
		}
		return p, group, x.note(n == 0), nil
	}
}

func noFrame(n, count int, cut bool) error {
	whole := ""
	if cut {
		whole = " whole ones, and ends within the next"
	}
	return fmt.Errorf("there is no frame %d: it has %d%s", n, count, whole)
}

func noPacket(count int, wanted netip.Addr) error {
	to := ""
	if wanted.IsValid() {
		to = fmt.Sprintf(" to %s", wanted)
	}
	return fmt.Errorf("none of its %d frames is a RoCEv2 packet of a queue pair%s: gleam decode shows those of RDMA-CM", count, to)
}

// note says which frame was taken, if the user has not, and what is not known of it.
func (f *capturedFrame) note(chosen bool) string {
	var list []string
	if chosen {
		list = append(list, "the first packet of a queue pair in the capture")
	}
	if f.missing > 0 {
		list = append(list, fmt.Sprintf("the capture lacks %d bytes at its end: its ICRC is taken for right", f.missing))
	}
	if len(list) == 0 {
		return ""
	}
	name := fmt.Sprintf("frame %d", f.number)
	if f.port != "" {
		name += fmt.Sprintf(" (%s)", f.port)
	}
	return name + ": " + strings.Join(list, "; ")
}

var errNoPacket = errors.New("the frame is no RoCEv2 packet of a queue pair: gleam explain knows no others, gleam decode shows those of RDMA-CM")

// packetOfFrame returns the packet in a frame, and the group that it is for. Bytes that stand for
// those that a capture lacks follow the frame.
func packetOfFrame(b, lacking []byte) (*api.ExplainPacket, netip.Addr, error) {
	var f rocev2.Frame
	switch r := rocev2.DecodeChain(&rocev2.Chain{b, lacking}, &f); {
	case r == rocev2.ReasonSplitHeaders:
		return nil, netip.Addr{}, fmt.Errorf("the capture lacks %d bytes, some of its headers: capture whole frames, by tcpdump -s 0", len(lacking))
	case r == rocev2.ReasonSplitOther:
		return nil, netip.Addr{}, errNoPacket
	case r != rocev2.OK:
		return nil, netip.Addr{}, fmt.Errorf("the switch would drop this frame as decode_%s: %s", r, r.Text())
	}
	if f.Kind != rocev2.KindRoCE {
		return nil, netip.Addr{}, errNoPacket
	}
	bth := f.BTH()
	op := bth.Opcode()
	p := &api.ExplainPacket{
		From: f.Src(), Op: strings.ToLower(strings.ReplaceAll(op.Name(), "_", "-")), AckReq: bth.AckReq(), BECN: bth.BECN(), BadICRC: len(lacking) == 0 && !f.VerifyICRC(),
		PSN: new(uint32(bth.PSN())), QPN: new(uint32(bth.DestQP())), Payload: new(uint16(f.PayloadLen())),
	}
	switch {
	case op.Is(rocev2.OpRETH):
		r := f.RETH()
		p.VA, p.RKey, p.DMALen = new(r.VA()), new(r.RKey()), new(r.DMALen())
	case op.Is(rocev2.OpIETH):
		p.RKey = new(f.IETH().RKey())
	case op.Is(rocev2.OpAETH):
		a := f.AETH()
		p.Syndrome, p.MSN = new(uint8(a.Syndrome())), new(uint32(a.MSN()))
	}
	return p, f.Dst(), nil
}
