// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/config"
)

// portPolicers bound the packets of a port that cost others something, and that any host
// behind it may send. Each worker has its own of each port.
type portPolicers struct {
	naks       Policer // negative acknowledgements and CNPs: see isNegative
	envelopes  Policer // envelopes, after the bound of the source address
	neighbours Policer // ARP, neighbour solicitations and echo requests
	sightings  Policer // members' frames from elsewhere
	addresses  addressPolicers
}

func newPortPolicers(l *config.Limits) portPolicers {
	return portPolicers{
		naks: NewPolicer(l.NAKsPerPort), envelopes: NewPolicer(l.EnvelopesPerPort), neighbours: NewPolicer(l.NeighboursPerPort),
		sightings: NewPolicer(sightingRate), addresses: newAddressPolicers(l.EnvelopesPerAddress),
	}
}

// allowEnvelope reports whether one more envelope from src may pass at time now. What the
// address's policer rejects does not count against the port.
func (p *portPolicers) allowEnvelope(now time.Duration, src netip.Addr) bool {
	return p.addresses.allow(now, src) && p.envelopes.Allow(now)
}
