// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Bounds of a Config, and of a group.
const (
	MaxGroupLegs = 256  // legs of one group
	MaxPortLegs  = 32   // legs of one group behind one port
	MaxClones    = 32   // legs of a group whose copies are clones
	maxWords     = 1034 // words from a PSN to the ICRC: MAX_WORDS of fast.h
)

// Size is a number of groups that have up to Legs legs each.
type Size struct{ Legs, Groups int }

// Config is the room that the maps have.
type Config struct {
	Ports int
	// Sizes are the groups that there can be at once. A broadcast looks at every entry of
	// a group's DEVMAP, 8 ns for an empty one: exact sizes are the fastest.
	Sizes      []Size
	Slots      int // slots of 2 KiB, in the rings of all groups together
	LargeSlots int // slots of 4.25 KiB, for packets that are longer
}

func (c *Config) check() error {
	switch {
	case c.Ports < 1:
		return fmt.Errorf("a fast path for %d ports: it needs one at least", c.Ports)
	case len(c.Sizes) == 0:
		return errors.New("a fast path without a group: give it a size")
	case c.Slots < 0 || c.LargeSlots < 0:
		return fmt.Errorf("a fast path with %d and %d slots: a number of slots cannot be negative", c.Slots, c.LargeSlots)
	}
	for _, s := range c.Sizes {
		if s.Legs < 1 || s.Legs > MaxGroupLegs || s.Groups < 1 {
			return fmt.Errorf("a fast path for %d groups of %d legs: want 1 group or more, with 1 to %d legs", s.Groups, s.Legs, MaxGroupLegs)
		}
	}
	return nil
}

// Maps are the maps of the fast path, and the program for copies. The
// methods of Maps, and those of groups that change more than words, may be called by any
// goroutine; Close after all others.
type Maps struct {
	config Config
	maps   map[string]*ebpf.Map // maps by name in fast.c
	inner  []*ebpf.Map          // DEVMAPs, by group
	egress *ebpf.Program
	clones cloneProgram
	counts transmitCounts

	completing           sync.WaitGroup
	devmapErr, egressErr error // read when completing is over

	memories  []memory
	ports     []portState
	sent      []sentState // counts by port
	states    []groupState
	paths     []pathState
	legs      []legState
	acks      []ackState
	ring      memory
	ringLarge memory

	mu      sync.Mutex
	groups  []Group  // groups by index
	ifindex []uint32 // interfaces by port
	small   *pool
	large   *pool

	offered atomic.Int64 // groups that may ask for a ring
}

var readSpec = sync.OnceValues(loadFast)

// Spec returns the description of the programs and maps as they are compiled. It is not
// changed.
func Spec() (*ebpf.CollectionSpec, error) {
	spec, err := readSpec()
	if err != nil {
		return nil, fmt.Errorf("read the embedded fast path: %w", err)
	}
	return spec, nil
}

// New makes the maps that the programs need to be loaded. The rest is made meanwhile, until Complete:
// the program for copies, and the one that counts what ports transmit in the network namespace of the calling thread.
func New(c Config) (_ *Maps, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	m := &Maps{config: c, maps: make(map[string]*ebpf.Map), small: newPool(c.Slots), large: newPool(c.LargeSlots)}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	first := 0
	for _, s := range c.Sizes {
		for range s.Groups {
			m.groups = append(m.groups, Group{maps: m, index: len(m.groups), firstLeg: first, room: s.Legs})
			first += s.Legs
		}
	}
	if err := m.createMaps(); err != nil {
		return nil, fmt.Errorf("create the maps of the fast path: %w", err)
	}
	if err := m.mapMemory(); err != nil {
		return nil, err
	}
	m.completing.Go(func() { m.devmapErr = m.createDevmaps() })
	m.completing.Go(func() { m.egressErr = m.loadEgress() })
	m.completing.Go(m.fillOperators)
	if cookie, err := netnsCookie(); err != nil {
		m.counts.err = fmt.Errorf("tell this network namespace: %w", err)
	} else {
		m.completing.Go(func() { m.counts.err = m.counts.start(m.maps, cookie) })
	}
	return m, nil
}

// Complete waits for what New has left to be made. Its error is the reason why no group can be put.
func (m *Maps) Complete() error {
	m.completing.Wait()
	return errors.Join(m.devmapErr, m.egressErr)
}

// LargestRing returns the number of slots of the largest ring that there can be, whatever
// the path MTU.
func (m *Maps) LargestRing() int {
	slots := m.config.Slots
	if m.config.LargeSlots != 0 {
		slots = min(slots, m.config.LargeSlots)
	}
	n := MaxRing
	for n > slots {
		n /= 2
	}
	return n
}

// spec returns a description of the programs and maps, with the maps' sizes.
func (m *Maps) spec() (*ebpf.CollectionSpec, error) {
	spec, err := Spec()
	if err != nil {
		return nil, err
	}
	spec = spec.Copy()
	groups := uint32(len(m.groups))
	for name, n := range map[string]uint32{
		fastMapFast4: groups, fastMapFast6: groups, fastMapGroups: groups, fastMapDevmaps: groups, fastMapFastAcks: groups, fastMapFastSources: uint32(m.config.Ports),
		fastMapFastSent: uint32(m.config.Ports), fastMapPaths: groups * uint32(m.config.Ports), fastMapFastCounters: groups * uint32(NumReasons),
		fastMapRing: uint32(max(m.config.Slots, 1)), fastMapRingLarge: uint32(max(m.config.LargeSlots, 1)),
	} {
		spec.Maps[name].MaxEntries = n
	}
	last := &m.groups[len(m.groups)-1]
	spec.Maps[fastMapLegs].MaxEntries = uint32(last.firstLeg + last.room)
	spec.Maps[fastMapDevmaps].InnerMap = devmapSpec(1)
	// The kernel refuses an XSKMAP whose types have BTF.
	xsks := spec.Maps[fastMapXsks]
	xsks.Key, xsks.Value = nil, nil
	return spec, nil
}

func devmapSpec(entries int) *ebpf.MapSpec {
	return &ebpf.MapSpec{Type: ebpf.DevMap, KeySize: 4, ValueSize: 8, MaxEntries: uint32(entries)}
}

// shared are the maps that all programs of the fast path share.
var shared = []string{
	fastMapFast4, fastMapFast6, fastMapGroups, fastMapDevmaps, fastMapPaths, fastMapLegs, fastMapOperators,
	fastMapRing, fastMapRingLarge, fastMapFastCounters, fastMapFastPorts, fastMapFastSent, fastMapFastAcks, fastMapFastSources,
}

func (m *Maps) createMaps() error {
	spec, err := m.spec()
	if err != nil {
		return err
	}
	for _, name := range shared {
		if m.maps[name], err = ebpf.NewMap(spec.Maps[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// createDevmaps makes the DEVMAP of each group.
func (m *Maps) createDevmaps() error {
	// All at once: the kernel waits for an RCU grace period after a change.
	keys, fds := make([]uint32, len(m.groups)), make([]uint32, len(m.groups))
	for i := range m.groups {
		d, err := ebpf.NewMap(devmapSpec(m.groups[i].room))
		if err != nil {
			return fmt.Errorf("make the map of a group's ports: %w", err)
		}
		m.inner = append(m.inner, d)
		keys[i], fds[i] = uint32(i), uint32(d.FD())
	}
	if _, err := m.maps[fastMapDevmaps].BatchUpdate(keys, fds, nil); err != nil {
		return fmt.Errorf("enter the maps of the groups' ports: %w", err)
	}
	return nil
}

func (m *Maps) mapMemory() error {
	at := func(name string) (b memory, err error) {
		if b, err = mapped(m.maps[name]); err == nil {
			m.memories = append(m.memories, b)
		}
		return b, err
	}
	groups, err := at(fastMapGroups)
	paths, err2 := at(fastMapPaths)
	legs, err3 := at(fastMapLegs)
	var err4, err5 error
	m.ring, err4 = at(fastMapRing)
	m.ringLarge, err5 = at(fastMapRingLarge)
	ports, err6 := at(fastMapFastPorts)
	sent, err7 := at(fastMapFastSent)
	acks, err8 := at(fastMapFastAcks)
	if err := errors.Join(err, err2, err3, err4, err5, err6, err7, err8); err != nil {
		return err
	}
	m.states, m.paths, m.legs, m.acks = valuesOf[groupState](groups), valuesOf[pathState](paths), valuesOf[legState](legs), valuesOf[ackState](acks)
	m.ports, m.sent, m.ifindex = valuesOf[portState](ports), valuesOf[sentState](sent), make([]uint32, m.config.Ports)
	return nil
}

// fillOperators makes the ICRC's operators.
func (m *Maps) fillOperators() {
	b, err := mapped(m.maps[fastMapOperators])
	if err != nil {
		panic(err)
	}
	defer b.close()
	operators := valuesOf[operatorState](b)
	for i := range maxWords {
		operators[i] = *rocev2.NewOperator(4 * i).Table()
	}
}

// loadEgress loads the program for copies.
func (m *Maps) loadEgress() (err error) {
	if m.egress, err = m.loadCopies(fastProgEgress); err != nil {
		return fmt.Errorf("load the fast path's program for copies: %w", err)
	}
	return nil
}

// loadCopies loads a program that makes copies.
func (m *Maps) loadCopies(name string) (*ebpf.Program, error) {
	spec, err := m.spec()
	if err != nil {
		return nil, err
	}
	if err := spec.Variables[fastVarNumPorts].Set(uint32(m.config.Ports)); err != nil {
		return nil, err
	}
	spec.Programs = map[string]*ebpf.ProgramSpec{name: spec.Programs[name]}
	for x := range spec.Maps {
		if x != ".rodata" && m.maps[x] == nil {
			delete(spec.Maps, x)
		}
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: m.maps})
	if err != nil {
		return nil, err
	}
	defer coll.Close()
	return coll.DetachProgram(name), nil
}

// Programs returns a description of the steering programs with the fast path, for the
// caller to change, and the maps in it that are shared. The one for frames in several buffers has the map for ACKs
// alone: the kernel lets no two programs share a DEVMAP of which one takes such frames.
func (m *Maps) Programs(frags bool) (*ebpf.CollectionSpec, map[string]*ebpf.Map, error) {
	spec, err := m.spec()
	if err != nil {
		return nil, nil, err
	}
	delete(spec.Programs, fastProgEgress)
	delete(spec.Programs, fastProgClones)
	if err := spec.Variables[fastVarNumPorts].Set(uint32(m.config.Ports)); err != nil {
		return nil, nil, err
	}
	if runtime.GOARCH == "amd64" {
		if err := spec.Variables[fastVarStoresInOrder].Set(uint8(1)); err != nil {
			return nil, nil, err
		}
	}
	replacements := make(map[string]*ebpf.Map)
	for name, x := range m.maps {
		replacements[name] = x
	}
	if frags {
		delete(replacements, fastMapFastSources)
	}
	return spec, replacements, nil
}

// Close releases everything. Attached programs keep the maps until they are closed.
func (m *Maps) Close() error {
	m.completing.Wait()
	errs := []error{m.counts.close()}
	for _, b := range m.memories {
		errs = append(errs, b.close())
	}
	for _, x := range m.maps {
		errs = append(errs, x.Close())
	}
	for _, x := range m.inner {
		errs = append(errs, x.Close())
	}
	return errors.Join(append(errs, m.egress.Close(), m.clones.program.Close())...)
}
