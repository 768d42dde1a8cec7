// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"bufio"
	"bytes"
	"sync"
	"testing"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// memory is registered memory without a device.
type memory struct {
	endpoint.MR // nil: only Bytes is called
	b           []byte
}

func (m *memory) Bytes() []byte { return m.b }

// No entry of the ring makes a replica panic, or reach outside of its store; one that is not the next is not applied.
func FuzzApply(f *testing.F) {
	entry := func(h header, payload string) []byte {
		b := make([]byte, entryHead, entryHead+len(payload))
		h.put(b)
		return append(b, payload...)
	}
	f.Add(uint16(0), true, entry(header{seq: 5, off: 4096, n: 3, op: opWrite}, "abc"))
	f.Add(uint16(64), false, entry(header{seq: 8, n: 2, op: opFlush, flags: flagFUA}, "[]"))
	f.Add(uint16(0), false, entry(header{seq: 8, off: 1 << 62, n: 1 << 62, op: opZero}, ""))
	f.Add(uint16(0), false, entry(header{seq: 8, off: -1, n: -1, op: opAllocate}, ""))
	f.Fuzz(func(t *testing.T, at uint16, fresh bool, ring []byte) {
		s, err := OpenStore("", 1<<16)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r := &Replica{ring: &memory{b: ring}, store: s, applied: 7, fresh: fresh}
		r.changed.L = new(sync.Mutex)
		err = r.apply(int64(at))
		if info, e := s.f.Stat(); e != nil || info.Size() != 1<<16+2*slotSize {
			t.Errorf("the store has other bytes than it had: %v, %v", info, e)
		}
		if err != nil && r.applied != 7 || !fresh && r.applied > 8 {
			t.Errorf("applied up to %d: %v", r.applied, err)
		}
	})
}

// No bytes of the other side make the reader of frames panic, or take more than a frame may have.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{frameHello, 36: 3, 37: '{', 38: '}', 39: ' '})
	f.Add(bytes.Repeat([]byte{frameRead}, frameHead))
	f.Fuzz(func(t *testing.T, sent []byte) {
		for _, hello := range []bool{true, false} {
			w := &wire{r: bufio.NewReader(bytes.NewReader(sent))}
			for {
				if hello {
					if _, err := w.receiveHello(); err != nil {
						break
					}
				}
				f, err := w.receive()
				if err != nil {
					break
				}
				if len(f.data) > len(sent) {
					t.Fatalf("%d bytes of %d", len(f.data), len(sent))
				}
			}
		}
	})
}
