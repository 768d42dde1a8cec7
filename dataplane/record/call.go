// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/mcast/token"
)

// kind names a method of mcast.Switch.
type kind uint8

const (
	input kind = iota + 1
	inputGroup
	advance
	apply
	requeue
	setSession
	inputReport
	positionsStored
	setPortPaused
	setPortDelay
	offload
	revoked
	setOffloadSlots
	inputForwarded
	inputAcked
	inputCovered
)

// call is a call of a method of mcast.Switch, with the arguments that the method has.
type call struct {
	Kind     kind
	Now      time.Duration
	Group    mcast.GroupID
	Packet   *mcast.Packet
	Op       mcast.Op
	Neighbor mcast.Neighbor
	Message  *token.Message
	Stored   *mcast.Positions
	Copy     *mcast.Copy
	Covered  *mcast.Covered
	Legs     []mcast.LegACK
	Sent     mcast.SentACK
	Number   uint64        // session, slots, port or number of positions
	Time     time.Duration // the time of requeue, setPortPaused and setPortDelay

	Resends int    // Output.MaxResends
	Room    []room // what Output.PortRoom has returned
	Digest  uint64

	ok    bool
	grant mcast.Grant
	err   error
}

// room is an answer of Output.PortRoom.
type room struct {
	Copies int
	Until  time.Duration
}

func init() {
	for _, op := range []mcast.Op{mcast.PutGroup{}, mcast.DeleteGroup{}, mcast.AddMember{}, mcast.RemoveMember{}, mcast.UpdateMembers{}} {
		gob.Register(op)
	}
}

// run makes the call.
func (c *call) run(s *mcast.Switch, out *mcast.Output) {
	switch c.Kind {
	case input:
		s.Input(c.Now, c.Packet, out)
	case inputGroup:
		s.InputGroup(c.Now, c.Group, c.Packet, out)
	case advance:
		s.Advance(c.Now, out)
	case apply:
		c.err = s.Apply(c.Now, c.Op, out)
	case requeue:
		c.ok = s.Requeue(c.Copy, c.Time)
	case setSession:
		c.err = s.SetSession(c.Now, c.Group, c.Neighbor, c.Number, out)
	case inputReport:
		s.InputReport(c.Now, c.Group, c.Neighbor, c.Message, out)
	case positionsStored:
		s.PositionsStored(c.Now, c.Group, uint32(c.Number), c.Stored, out)
	case setPortPaused:
		s.SetPortPaused(mcast.Port(c.Number), c.Time)
	case setPortDelay:
		s.SetPortDelay(mcast.Port(c.Number), c.Time)
	case offload:
		c.grant, c.ok = s.Offload(c.Now, c.Group, out)
	case revoked:
		s.Revoked(c.Now, c.Group, out)
	case setOffloadSlots:
		s.SetOffloadSlots(c.Group, int(c.Number))
	case inputForwarded:
		s.InputForwarded(c.Now, c.Group, c.Packet, out)
	case inputAcked:
		s.InputAcked(c.Now, c.Group, c.Legs, c.Sent, out)
	case inputCovered:
		c.ok = s.InputCovered(c.Now, c.Group, c.Covered, c.Legs, c.Sent, out)
	}
}

// hasOutput reports whether the method fills an Output: what is in it otherwise is of an earlier call.
func (c *call) hasOutput() bool {
	return c.Kind != requeue && c.Kind != setPortPaused && c.Kind != setPortDelay && c.Kind != setOffloadSlots
}

// digest returns a number that two calls share only if what they returned is the same. b is scratch memory.
func (c *call) digest(out *mcast.Output, b []byte) (uint64, []byte) {
	b = fmt.Append(b[:0], c.ok, c.err)
	add := func(v any) {
		var err error
		if b, err = binary.Append(b, binary.LittleEndian, v); err != nil {
			panic(err) // a field without a fixed size
		}
	}
	add(c.grant)
	if c.hasOutput() {
		add(out.Drop)
		add([]bool{out.NeedVerify, out.NeedRevoke, out.Retained})
		add([]uint32{uint32(len(out.Copies)), uint32(len(out.Feedback)), uint32(len(out.Events)), uint32(len(out.Probes)), uint32(len(out.Orders))})
		add(out.Copies)
		add(out.Feedback)
		add(out.Events)
		add(out.Probes)
		add(out.Orders)
		add(out.Freed)
		for i := range out.Reports {
			r := &out.Reports[i]
			b = r.Message.AppendBinary(binary.LittleEndian.AppendUint64(b, uint64(r.Group)<<32|uint64(r.Neighbor)))
		}
	}
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64(), b
}
