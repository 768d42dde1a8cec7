// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"maps"
	"sync"

	"github.com/cilium/ebpf"
)

// To load a program is 10 ms of work of the kernel's verifier, in which a switch that starts
// again serves nothing. So one instance serves all ports, and is loaded while other things
// are done.

// instance is one of the two programs.
type instance struct {
	once    sync.Once
	program *ebpf.Program
	err     error
}

// kind is the index of a program in Steering.instances.
func kind(frags bool) int {
	if frags {
		return 1
	}
	return 0
}

// Preload begins to load a program, for frames in several buffers if frags is true. Attach
// and Spare wait for it.
func (s *Steering) Preload(frags bool) { s.loaders.Go(func() { _, _ = s.program(frags) }) }

// program returns one of the two programs, which it loads if that has not been done.
func (s *Steering) program(frags bool) (*ebpf.Program, error) {
	x := &s.instances[kind(frags)]
	x.once.Do(func() { x.program, x.err = s.load(frags) })
	return x.program, x.err
}

// load loads a program: without the fast path, if the kernel refuses it with it.
func (s *Steering) load(frags bool) (*ebpf.Program, error) {
	if s.fast == nil {
		return s.loadProgram(frags, false)
	}
	p, err := s.loadProgram(frags, true)
	if err == nil && frags {
		if err = s.fast.LoadClones(); err != nil {
			err = errors.Join(err, p.Close())
		}
	}
	if err == nil {
		return p, nil
	}
	s.fastErrs[kind(frags)] = err
	return s.loadProgram(frags, false)
}

func (s *Steering) loadProgram(frags, fast bool) (*ebpf.Program, error) {
	spec, shared := s.spec.Copy(), make(map[string]*ebpf.Map)
	if fast {
		var err error
		if spec, shared, err = s.fast.Programs(frags); err != nil {
			return nil, err
		}
		sizeMaps(spec, s.ports)
	}
	var several uint8
	if frags {
		several = 1
	}
	bits4, bits6 := s.prefixes.bits()
	for name, value := range map[string]any{
		steerVarEnvelopePort: s.envelopePort, steerVarFrags: several,
		steerVarCommon4: bits4, steerVarCommon6: bits6,
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, err
		}
	}
	// Only one: a kernel before 5.18 refuses to load the other.
	name, other := steerProgSteer, steerProgSteerFrags
	if frags {
		name, other = other, name
	}
	delete(spec.Programs, other)
	maps.Copy(shared, s.maps.byName())
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: shared})
	if err != nil {
		return nil, err
	}
	defer coll.Close()
	return coll.DetachProgram(name), nil
}
