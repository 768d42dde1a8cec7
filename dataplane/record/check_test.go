// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// TestRecordings checks the recordings in the folder GLEAM_RECORDINGS.
func TestRecordings(t *testing.T) {
	dir := os.Getenv("GLEAM_RECORDINGS")
	if dir == "" {
		t.Skip("GLEAM_RECORDINGS names no folder with recordings")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.calls"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recording in %s: %v", dir, err)
	}
	var all counts
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		n, err := check(bufio.NewReaderSize(f, 1<<20), play)
		if all.add(n); err != nil {
			t.Errorf("%s: %v", filepath.Base(name), err)
		}
		_ = f.Close()
	}
	t.Logf("%d recordings: %v", len(files), all)
}

// counts are what check has seen.
type counts struct {
	calls, packets, groups, copies, acks int
	raised                               int // acknowledgements of more than was acknowledged before
	fast                                 int // ACKs of the fast path
}

func (c *counts) add(n counts) {
	c.calls, c.packets, c.groups = c.calls+n.calls, c.packets+n.packets, c.groups+n.groups
	c.copies, c.acks, c.raised, c.fast = c.copies+n.copies, c.acks+n.acks, c.raised+n.raised, c.fast+n.fast
}

func (c counts) String() string {
	return fmt.Sprintf("%d calls with %d packets for %d groups; %d copies, %d acknowledgements, %d of them of more, and %d of the fast path",
		c.calls, c.packets, c.groups, c.copies, c.acks, c.raised, c.fast)
}

// play makes a call of a core as it was recorded.
func play(s *mcast.Switch, c *call, out *mcast.Output) { c.run(s, out) }

// check plays the recording r to a fresh core, and judges what comes out. The error is the first
// deviation from the recording, and the first from the promise. A recording may end anywhere.
func check(r io.Reader, play func(*mcast.Switch, *call, *mcast.Output)) (counts, error) {
	dec := gob.NewDecoder(r)
	var limits mcast.Limits
	if err := dec.Decode(&limits); err != nil {
		return counts{}, ended(err)
	}
	s, j := mcast.New(limits), judge{groups: make(map[mcast.GroupID]*group), frames: make(map[mcast.Handle]sent)}
	var out mcast.Output
	var scratch []byte
	var differs error
	for {
		var c call
		if err := dec.Decode(&c); err != nil {
			return j.counts, errors.Join(differs, ended(err))
		}
		j.calls++
		asked := 0
		out.MaxResends = c.Resends
		out.PortRoom = func(mcast.GroupID, mcast.LegID) (int, time.Duration) {
			if asked++; asked > len(c.Room) {
				return 1 << 20, 0
			}
			return c.Room[asked-1].Copies, c.Room[asked-1].Until
		}
		play(s, &c, &out)
		var digest uint64
		if digest, scratch = c.digest(&out, scratch); differs == nil && (digest != c.Digest || asked != len(c.Room)) {
			differs = fmt.Errorf("call %d, %v: the core answers otherwise than when it was recorded", j.calls, &c)
		}
		if err := j.judge(&c, &out); err != nil {
			return j.counts, errors.Join(differs, fmt.Errorf("call %d, %v: %w", j.calls, &c, err))
		}
	}
}

// ended is nil for the end of a recording.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// String says what the call is about.
func (c *call) String() string {
	s := fmt.Sprintf("at %v, kind %d, group %d", c.Now, c.Kind, c.Group)
	if p := c.Packet; p != nil {
		s += fmt.Sprintf(", opcode %#x of %v, PSN %#x, syndrome %#x", uint8(p.Op), p.Src, uint32(p.PSN), uint8(p.Syndrome))
	}
	if c.Op != nil {
		s += fmt.Sprintf(", %T", c.Op)
	}
	return s
}
