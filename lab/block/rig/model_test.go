// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	sector  = 512
	stripe  = 32 // sectors: stripes belong to the workers in turn, so that blocks of the device have writes of several
	workers = 6
)

// model is what the device may hold: for each sector the stamps of the write that was acknowledged last, and of
// those after it that were not acknowledged.
type model struct {
	mu      sync.Mutex
	may     [][]uint64
	stamp   atomic.Uint64
	writes  atomic.Int64 // acknowledged
	unclear atomic.Int64 // writes not acknowledged
	reads   atomic.Int64
	longest atomic.Int64 // write, in ns
}

func newModel(size int64) *model {
	m := &model{may: make([][]uint64, size/sector)}
	for i := range m.may {
		m.may[i] = []uint64{0}
	}
	return m
}

func fill(p []byte, stamp uint64) {
	for i := 0; i < len(p); i += 8 {
		binary.LittleEndian.PutUint64(p[i:], stamp)
	}
}

// check compares what was read with what the device may hold. What it is seen to hold it must go on to hold.
func (m *model) check(first int, p []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	whole := make([]byte, sector)
	for i := range len(p) / sector {
		b := p[i*sector:][:sector]
		stamp := binary.LittleEndian.Uint64(b)
		fill(whole, stamp)
		if !bytes.Equal(b, whole) {
			return fmt.Errorf("sector %d has parts of two writes", first+i)
		}
		if !slices.Contains(m.may[first+i], stamp) {
			return fmt.Errorf("sector %d has stamp %d; it may have %d", first+i, stamp, m.may[first+i])
		}
		m.may[first+i] = []uint64{stamp}
	}
	return nil
}

// begin notes a write that may happen from now on, end its outcome.
func (m *model) begin(first, n int, stamp uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := first; i < first+n; i++ {
		m.may[i] = append(m.may[i], stamp)
	}
}

func (m *model) end(first, n int, stamp uint64, acknowledged bool) {
	if !acknowledged {
		m.unclear.Add(1)
		return
	}
	m.writes.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := first; i < first+n; i++ {
		m.may[i] = []uint64{stamp}
	}
}

// work writes and reads the stripes of worker w until stop. client returns the present connection; one that fails
// is the gateway's death, which only unacknowledged writes may notice.
func (m *model) work(w int, seed uint64, client func() *Client, stop <-chan struct{}) error {
	r := rand.New(rand.NewPCG(seed, uint64(w)))
	p := make([]byte, stripe*sector)
	stripes := len(m.may) / stripe / workers
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		c := client()
		n := 1 + r.IntN(stripe)
		first := (r.IntN(stripes)*workers+w)*stripe + r.IntN(stripe-n+1)
		off, b := int64(first)*sector, p[:n*sector]
		if r.IntN(4) == 0 {
			if err := c.Do(Read, 0, off, len(b), b); err != nil {
				time.Sleep(time.Millisecond)
				continue
			}
			m.reads.Add(1)
			if err := m.check(first, b); err != nil {
				return err
			}
			continue
		}
		command, flags, stamp := uint16(Write), uint16(0), m.stamp.Add(1)
		switch r.IntN(16) {
		case 0:
			command, stamp = Trim, 0
		case 1:
			command, stamp = WriteZeroes, 0
		case 2:
			flags = fua
		}
		fill(b, stamp)
		m.begin(first, n, stamp)
		began := time.Now()
		err := c.Do(command, flags, off, len(b), b)
		m.end(first, n, stamp, err == nil)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		if d := int64(time.Since(began)); d > m.longest.Load() {
			m.longest.Store(d)
		}
		if r.IntN(32) == 0 {
			_ = c.Do(Flush, 0, 0, 0, nil) // its promise is that of the files' test
		}
	}
}
