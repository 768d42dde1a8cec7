// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/gob"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/mcast/token"
)

// MaxBytes bounds a recording: what comes later is not recorded.
const MaxBytes = 512 << 20

// Switch is an mcast.Switch whose calls are recorded.
type Switch struct {
	*mcast.Switch
	enc     *gob.Encoder // nil: nothing is recorded, or nothing more
	room    int64        // bytes that the recording may still have
	to      io.Writer
	scratch []byte
	none    mcast.Output // the Output of calls without one
}

// New returns a Switch whose recording is a new file in the folder GLEAM_RECORD; without that variable there is none.
func New(l mcast.Limits) *Switch {
	dir := os.Getenv("GLEAM_RECORD")
	if dir == "" {
		return to(nil, l)
	}
	f, err := os.CreateTemp(dir, filepath.Base(os.Args[0])+"-"+strconv.Itoa(os.Getpid())+"-*.calls")
	if err != nil {
		panic(err)
	}
	return to(f, l)
}

// to returns a Switch whose recording is written to w, call by call: it outlives a process that is killed.
func to(w io.Writer, l mcast.Limits) *Switch {
	s := &Switch{Switch: mcast.New(l), to: w, room: MaxBytes}
	if w != nil {
		s.enc = gob.NewEncoder(s)
		s.encode(l)
	}
	return s
}

// Write is for the encoder.
func (s *Switch) Write(b []byte) (int, error) {
	if s.room -= int64(len(b)); s.room < 0 {
		return 0, io.ErrShortBuffer
	}
	return s.to.Write(b)
}

func (s *Switch) encode(v any) {
	if s.enc.Encode(v) != nil {
		s.enc = nil // the recording ends here, perhaps within a call
	}
}

// do makes a call, and records it.
func (s *Switch) do(c *call, out *mcast.Output) {
	if s.enc == nil {
		c.run(s.Switch, out)
		return
	}
	if ask := out.PortRoom; ask != nil {
		out.PortRoom = func(id mcast.GroupID, leg mcast.LegID) (int, time.Duration) {
			n, until := ask(id, leg)
			c.Room = append(c.Room, room{n, until})
			return n, until
		}
		defer func() { out.PortRoom = ask }()
	}
	c.Resends = out.MaxResends
	c.run(s.Switch, out)
	c.Digest, s.scratch = c.digest(out, s.scratch)
	s.encode(c)
}

// The methods below are those of mcast.Switch that may change it. TestEveryCallIsRecorded misses one that is not here.

func (s *Switch) Input(now time.Duration, p *mcast.Packet, out *mcast.Output) {
	s.do(&call{Kind: input, Now: now, Packet: p}, out)
}

func (s *Switch) InputGroup(now time.Duration, id mcast.GroupID, p *mcast.Packet, out *mcast.Output) {
	s.do(&call{Kind: inputGroup, Now: now, Group: id, Packet: p}, out)
}

func (s *Switch) Advance(now time.Duration, out *mcast.Output) {
	s.do(&call{Kind: advance, Now: now}, out)
}

func (s *Switch) Apply(now time.Duration, op mcast.Op, out *mcast.Output) error {
	c := &call{Kind: apply, Now: now, Op: op}
	s.do(c, out)
	return c.err
}

func (s *Switch) Requeue(x *mcast.Copy, until time.Duration) bool {
	c := &call{Kind: requeue, Copy: x, Time: until}
	s.do(c, &s.none)
	return c.ok
}

func (s *Switch) SetSession(now time.Duration, id mcast.GroupID, n mcast.Neighbor, session uint64, out *mcast.Output) error {
	c := &call{Kind: setSession, Now: now, Group: id, Neighbor: n, Number: session}
	s.do(c, out)
	return c.err
}

func (s *Switch) InputReport(now time.Duration, id mcast.GroupID, n mcast.Neighbor, msg *token.Message, out *mcast.Output) {
	s.do(&call{Kind: inputReport, Now: now, Group: id, Neighbor: n, Message: msg}, out)
}

func (s *Switch) PositionsStored(now time.Duration, id mcast.GroupID, number uint32, p *mcast.Positions, out *mcast.Output) {
	s.do(&call{Kind: positionsStored, Now: now, Group: id, Number: uint64(number), Stored: p}, out)
}

func (s *Switch) SetPortPaused(port mcast.Port, total time.Duration) {
	s.do(&call{Kind: setPortPaused, Number: uint64(port), Time: total}, &s.none)
}

func (s *Switch) SetPortDelay(port mcast.Port, most time.Duration) {
	s.do(&call{Kind: setPortDelay, Number: uint64(port), Time: most}, &s.none)
}

func (s *Switch) Offload(now time.Duration, id mcast.GroupID, out *mcast.Output) (mcast.Grant, bool) {
	c := &call{Kind: offload, Now: now, Group: id}
	s.do(c, out)
	return c.grant, c.ok
}

func (s *Switch) Revoked(now time.Duration, id mcast.GroupID, out *mcast.Output) {
	s.do(&call{Kind: revoked, Now: now, Group: id}, out)
}

func (s *Switch) SetOffloadSlots(id mcast.GroupID, slots int) {
	s.do(&call{Kind: setOffloadSlots, Group: id, Number: uint64(slots)}, &s.none)
}

func (s *Switch) InputForwarded(now time.Duration, id mcast.GroupID, p *mcast.Packet, out *mcast.Output) {
	s.do(&call{Kind: inputForwarded, Now: now, Group: id, Packet: p}, out)
}

func (s *Switch) InputAcked(now time.Duration, id mcast.GroupID, legs []mcast.LegACK, sent mcast.SentACK, out *mcast.Output) {
	s.do(&call{Kind: inputAcked, Now: now, Group: id, Legs: legs, Sent: sent}, out)
}

func (s *Switch) InputCovered(now time.Duration, id mcast.GroupID, x *mcast.Covered, legs []mcast.LegACK, sent mcast.SentACK, out *mcast.Output) bool {
	c := &call{Kind: inputCovered, Now: now, Group: id, Covered: x, Legs: legs, Sent: sent}
	s.do(c, out)
	return c.ok
}
