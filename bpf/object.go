// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bytes"
	_ "embed" // the compiled programs
	"errors"

	"github.com/cilium/ebpf"
)

//go:embed steer.o
var steerObject []byte

// loadSteer reads the compiled programs.
func loadSteer() (*ebpf.CollectionSpec, error) {
	return ebpf.LoadCollectionSpecFromReader(bytes.NewReader(steerObject))
}

// Names of steer.c that Go code uses.
const (
	steerMapAllowed4     = "allowed4"
	steerMapAllowed6     = "allowed6"
	steerMapAllowedMacs  = "allowed_macs"
	steerMapCommon       = "common"
	steerMapCounters     = "counters"
	steerMapOffenders    = "offenders"
	steerMapPinAddrs     = "pin_addrs"
	steerMapPinMacs      = "pin_macs"
	steerMapPolicies     = "policies"
	steerMapPorts        = "ports"
	steerMapPrefixes4    = "prefixes4"
	steerMapPrefixes6    = "prefixes6"
	steerMapSightings    = "sightings"
	steerMapStations     = "stations"
	steerMapTelling      = "telling"
	steerMapReported     = "reported"
	steerMapXsks         = "xsks"
	steerProgSteer       = "steer"
	steerProgSteerFrags  = "steer_frags"
	steerVarCommon4      = "common4"
	steerVarCommon6      = "common6"
	steerVarEnvelopePort = "envelope_port"
	steerVarFrags        = "frags"
)

// steerMaps are the maps that the programs of all ports share.
type steerMaps struct {
	Allowed4    *ebpf.Map `ebpf:"allowed4"`
	Allowed6    *ebpf.Map `ebpf:"allowed6"`
	AllowedMacs *ebpf.Map `ebpf:"allowed_macs"`
	Common      *ebpf.Map `ebpf:"common"`
	Counters    *ebpf.Map `ebpf:"counters"`
	Offenders   *ebpf.Map `ebpf:"offenders"`
	PinAddrs    *ebpf.Map `ebpf:"pin_addrs"`
	PinMacs     *ebpf.Map `ebpf:"pin_macs"`
	Policies    *ebpf.Map `ebpf:"policies"`
	Ports       *ebpf.Map `ebpf:"ports"`
	Prefixes4   *ebpf.Map `ebpf:"prefixes4"`
	Prefixes6   *ebpf.Map `ebpf:"prefixes6"`
	Sightings   *ebpf.Map `ebpf:"sightings"`
	Stations    *ebpf.Map `ebpf:"stations"`
	Telling     *ebpf.Map `ebpf:"telling"`
	Reported    *ebpf.Map `ebpf:"reported"`
	Xsks        *ebpf.Map `ebpf:"xsks"`
}

// byName returns the maps by their names in steer.c.
func (m *steerMaps) byName() map[string]*ebpf.Map {
	return map[string]*ebpf.Map{
		steerMapPorts: m.Ports, steerMapCommon: m.Common, steerMapPrefixes4: m.Prefixes4, steerMapPrefixes6: m.Prefixes6, steerMapXsks: m.Xsks,
		steerMapCounters: m.Counters, steerMapOffenders: m.Offenders, steerMapPolicies: m.Policies, steerMapStations: m.Stations,
		steerMapAllowedMacs: m.AllowedMacs, steerMapAllowed4: m.Allowed4, steerMapAllowed6: m.Allowed6,
		steerMapPinMacs: m.PinMacs, steerMapPinAddrs: m.PinAddrs, steerMapSightings: m.Sightings,
		steerMapReported: m.Reported, steerMapTelling: m.Telling,
	}
}

func (m *steerMaps) Close() (err error) {
	for _, x := range m.byName() {
		err = errors.Join(err, x.Close())
	}
	return err
}
