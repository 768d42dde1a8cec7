// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A store's file has the device's bytes, and behind them two slots of slotSize for its label: the newer one
// that is whole counts, so that a label is replaced in one step.
const (
	slotSize   = 4096
	labelMagic = "gleamblk"
	slotHead   = len(labelMagic) + 8
)

// Label is what a store knows of itself: of which device its bytes are, and how old.
type Label struct {
	Version    uint64   // the version of the label
	Device     string   // "": not part of a device yet
	Store      string   // the ID of this file; drawn when it was made
	Seq        uint64   // all writes up to it are on the disk
	Members    []string // stores that were current at Seq
	Consistent bool     // true: it is not in the middle of being brought up to date
	Clean      bool     // true: there are no other writes than those up to Seq
}

// Store has the bytes of a replica: a file, or memory, which is a file without a name.
type Store struct {
	f    *os.File
	size int64
	file bool

	mu    sync.Mutex
	label Label
}

// OpenStore opens, or makes, the file of a replica of a device of size bytes. An empty path is memory.
func OpenStore(path string, size int64) (*Store, error) {
	s := &Store{size: size, file: path != ""}
	var err error
	if s.file {
		s.f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	} else {
		var fd int
		if fd, err = unix.MemfdCreate("gleam-block", unix.MFD_CLOEXEC); err == nil {
			s.f = os.NewFile(uintptr(fd), "memory")
		}
	}
	if err == nil {
		if err = s.open(path); err != nil {
			err = errors.Join(err, s.f.Close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open a replica's store: %w", err)
	}
	return s, nil
}

func (s *Store) open(path string) error {
	if err := unix.Flock(int(s.f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("%s is in use: is this replica running already? (%w)", path, err)
	}
	info, err := s.f.Stat()
	if err != nil {
		return err
	}
	want := s.size + 2*slotSize
	switch {
	case info.Size() == 0:
		if err := s.f.Truncate(want); err != nil {
			return err
		}
		return s.Relabel(func(l *Label) { l.Store = strings.ToLower(rand.Text()) })
	case info.Size() != want:
		return fmt.Errorf("%s has %d bytes, and a device of %d bytes needs %d: name the device's size, or give an empty file", path, info.Size(), s.size, want)
	}
	s.label, err = readLabel(s.f, s.size)
	return err
}

// ReadLabel returns the label in the file of a replica, which may be running.
func ReadLabel(path string, size int64) (Label, error) {
	f, err := os.Open(path)
	if err != nil {
		return Label{}, err
	}
	defer f.Close()
	return readLabel(f, size)
}

func readLabel(f *os.File, size int64) (l Label, err error) {
	var found []Label
	for i := range int64(2) {
		if l, ok := readSlot(f, size+i*slotSize); ok {
			found = append(found, l)
		}
	}
	if len(found) == 0 {
		return l, fmt.Errorf("%s has no label of a replica: give a file of blockd, or an empty one", f.Name())
	}
	return slices.MaxFunc(found, func(a, b Label) int { return cmp.Compare(a.Version, b.Version) }), nil
}

func readSlot(f *os.File, at int64) (l Label, ok bool) {
	b := make([]byte, slotSize)
	if _, err := f.ReadAt(b, at); err != nil || string(b[:len(labelMagic)]) != labelMagic {
		return l, false
	}
	n := binary.BigEndian.Uint32(b[len(labelMagic):])
	if n > slotSize-uint32(slotHead) {
		return l, false
	}
	text := b[slotHead:][:n]
	if binary.BigEndian.Uint32(b[len(labelMagic)+4:]) != crc32.ChecksumIEEE(text) || json.Unmarshal(text, &l) != nil {
		return l, false
	}
	return l, true
}

// Label returns the label as it is on the disk.
func (s *Store) Label() Label {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.label
}

// Relabel changes the label. All that was written before is on the disk before it, and the label itself when it
// returns.
func (s *Store) Relabel(change func(*Label)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.label
	change(&l)
	l.Version++
	text, err := json.Marshal(&l)
	if err != nil || len(text) > slotSize-slotHead {
		return fmt.Errorf("label of %d bytes: %w", len(text), cmp.Or(err, errors.ErrUnsupported))
	}
	b := append(make([]byte, 0, slotSize), labelMagic...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(text))
	b = append(append(b, text...), make([]byte, slotSize-slotHead-len(text))...)
	if err := unix.Fdatasync(int(s.f.Fd())); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	if _, err := s.f.WriteAt(b, s.size+int64(l.Version%2)*slotSize); err != nil {
		return err
	}
	if err := unix.Fdatasync(int(s.f.Fd())); err != nil {
		return fmt.Errorf("flush the label: %w", err)
	}
	s.label = l
	return nil
}

// Inside reports whether a range is one of the device.
func (s *Store) Inside(off, n int64) bool {
	return off >= 0 && n >= 0 && off <= s.size && n <= s.size-off
}

// Read fills p.
func (s *Store) Read(p []byte, off int64) error {
	_, err := s.f.ReadAt(p, off)
	return err
}

// Write puts p at off.
func (s *Store) Write(p []byte, off int64) error {
	_, err := s.f.WriteAt(p, off)
	return err
}

// Zero makes n bytes zero: by a hole, or with allocate by storage for them.
func (s *Store) Zero(off, n int64, allocate bool) error {
	if n == 0 {
		return nil
	}
	if !allocate {
		err := unix.Fallocate(int(s.f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
		if !errors.Is(err, unix.EOPNOTSUPP) {
			return err
		}
	}
	zeroes := bytes.Repeat([]byte{0}, int(min(n, 1<<20)))
	for n > 0 {
		k := min(n, int64(len(zeroes)))
		if err := s.Write(zeroes[:k], off); err != nil {
			return err
		}
		off, n = off+k, n-k
	}
	return nil
}

// Close closes the file.
func (s *Store) Close() error { return s.f.Close() }
