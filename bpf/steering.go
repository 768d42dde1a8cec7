// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Steering defines group traffic: the group prefixes and the UDP port of envelopes. It has
// the programs and maps of all ports. Its methods may be called from any goroutine, Close
// after all others.
type Steering struct {
	envelopePort uint16
	prefixes     prefixes
	ports        uint32 // how many there can be
	spec         *ebpf.CollectionSpec
	maps         steerMaps
	watchlist    *Watchlist
	slots        slots
	instances    [2]instance // instances by kind
	loaders      sync.WaitGroup
	fast         *fastpath.Maps // nil: no group is replicated in XDP
	fastErrs     [2]error       // why the programs are without it, as instances
}

// NewSteering checks the prefixes and the envelope port and loads the prefixes
// into the kernel. A prefix must have no host bits and at least one bit; IPv4
// and IPv6 may be mixed. There can be ports ports at a time.
//
// It lifts the process's RLIMIT_MEMLOCK if the kernel is older than 5.11, which
// charges BPF maps to it.
func NewSteering(prefixes []netip.Prefix, envelopePort uint16, ports int) (*Steering, error) {
	if err := checkEnvelopePort(envelopePort); err != nil {
		return nil, err
	}
	if err := checkPrefixes(prefixes); err != nil {
		return nil, err
	}
	// Without privileges this fails even where it is not needed, so that the first map's
	// error decides.
	limitErr := rlimit.RemoveMemlock()
	s := &Steering{envelopePort: envelopePort, ports: uint32(ports)}
	s.slots.make(ports)
	var err error
	if s.spec, err = steerSpec(uint32(ports)); err != nil {
		return nil, err
	}
	if err := s.spec.LoadAndAssign(&s.maps, nil); err != nil {
		return nil, explain("create the maps of the XDP program", withLimit(err, limitErr))
	}
	if s.watchlist, err = newWatchlist(&s.maps); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.prefixes.begin(&s.maps, prefixes); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// readSpec reads the compiled program, once.
var readSpec = sync.OnceValues(loadSteer)

// steerSpec returns the description of the programs and of their maps, for a number of ports.
func steerSpec(ports uint32) (*ebpf.CollectionSpec, error) {
	spec, err := readSpec()
	if err != nil {
		return nil, fmt.Errorf("read the embedded XDP program: %w", err)
	}
	spec = spec.Copy()
	// The kernel refuses an XSKMAP whose types have BTF, and waits for an RCU grace period
	// before: the library would try it for each program, which takes as long as to verify it.
	xsks := spec.Maps[steerMapXsks]
	xsks.Key, xsks.Value = nil, nil
	sizeMaps(spec, ports)
	return spec, nil
}

// sizeMaps gives the maps room for a number of ports.
func sizeMaps(spec *ebpf.CollectionSpec, ports uint32) {
	for _, name := range []string{
		steerMapXsks, steerMapCounters, steerMapOffenders, steerMapPolicies, steerMapAllowedMacs, steerMapAllowed4, steerMapAllowed6,
		steerMapReported, steerMapTelling,
	} {
		spec.Maps[name].MaxEntries *= 1 + ports // slot 0 is that of no port
	}
}

// withLimit adds to err that RLIMIT_MEMLOCK could not be raised, if that is so.
func withLimit(err, limitErr error) error {
	if limitErr == nil {
		return err
	}
	return fmt.Errorf("%w (and RLIMIT_MEMLOCK could not be raised: %w)", err, limitErr)
}

func checkEnvelopePort(port uint16) error {
	switch port {
	case 0:
		return errors.New("envelope port 0: it must be a UDP port from 1 to 65535")
	case rocev2.UDPPort:
		return fmt.Errorf("envelope port %d is the port of RoCEv2: choose another one", port)
	}
	return nil
}

// UseFastPath makes the programs of ports with frames in one buffer replicate the groups
// of m. It is called before Preload, Attach and Spare. The caller closes m after s.
func (s *Steering) UseFastPath(m *fastpath.Maps) { s.fast = m }

// FastPathError returns why the programs do not replicate although UseFastPath was called:
// the kernel has refused them. It waits until they are loaded.
func (s *Steering) FastPathError() error {
	if _, err := s.program(false); err != nil {
		return err
	}
	return s.fastErrs[kind(false)]
}

// Watchlist returns the watchlist of the programs.
func (s *Steering) Watchlist() *Watchlist { return s.watchlist }

// Close unloads programs and maps. Ports have to be closed before.
func (s *Steering) Close() error {
	s.loaders.Wait()
	var errs []error
	for i := range s.instances {
		if p := s.instances[i].program; p != nil {
			errs = append(errs, p.Close())
		}
	}
	if s.watchlist != nil {
		errs = append(errs, s.watchlist.Close())
	}
	return errors.Join(append(errs, s.maps.Close())...)
}
