// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/gleam-rdma/gleam/config/linkrate"
)

// Topology is a set of switches and hosts with the links between them.
type Topology struct {
	Switches []string
	Hosts    []string
	Links    []Link
}

// Link joins two nodes. The zero value of a property is an unimpaired link.
type Link struct {
	A, B  string
	MTU   int           // bytes without the Ethernet header; 0 means 1500
	Loss  float64       // the part of frames that is lost in each direction, below 1
	Rate  linkrate.Rate // the rate of each direction; a frame counts with its Ethernet header
	Delay time.Duration // the delay of each direction; needs a kernel with sch_netem
}

func (l Link) String() string { return l.A + "-" + l.B }

// impaired reports whether the link needs a wire that is worse than a veth pair.
func (l Link) impaired() bool { return l.Loss > 0 || l.Rate != linkrate.None || l.Delay > 0 }

// Limits of a Topology. The address plan has room for more.
const (
	maxNodes = 1000
	maxLinks = 4000
	maxHosts = 200 // hosts of a switch
	minMTU   = 1280
	maxMTU   = 65535
	maxDelay = 10 * time.Second
)

// validNode keeps names usable for namespaces, interfaces and FRR's files. An interface
// has the name of the node at its far end.
var validNode = regexp.MustCompile(`^[a-z][a-z0-9-]{0,11}$`)

// reservedNodes are names that interfaces or namespaces of a fabric have.
var reservedNodes = map[string]bool{"lo": true, bridge: true, HostInterface: true, wires: true, "all": true, "default": true}

// Validate returns all errors of t.
func (t *Topology) Validate() error {
	if n := len(t.Switches) + len(t.Hosts); n == 0 || n > maxNodes {
		return fmt.Errorf("topology: %d nodes; want 1 to %d", n, maxNodes)
	}
	if len(t.Links) > maxLinks {
		return fmt.Errorf("topology: %d links; want at most %d", len(t.Links), maxLinks)
	}
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("topology: "+format, args...)) }
	host := make(map[string]bool)
	name := func(n string, isHost bool) {
		_, again := host[n]
		switch {
		case !validNode.MatchString(n) || reservedNodes[n]:
			fail("node name %q: want a letter, then at most 11 of a-z, 0-9 and -, and none of lo, %s, %s, %s, all, default", n, bridge, HostInterface, wires)
		case again:
			fail("node %s is there twice", n)
		}
		host[n] = isHost
	}
	for _, n := range t.Switches {
		name(n, false)
	}
	for _, n := range t.Hosts {
		name(n, true)
	}
	links := make(map[[2]string]bool)
	ofHost, hostsOf := make(map[string]int), make(map[string]int)
	for _, l := range t.Links {
		known := true
		for _, n := range []string{l.A, l.B} {
			if _, ok := host[n]; !ok {
				fail("link %v: there is no node %q", l, n)
				known = false
			}
		}
		switch {
		case !known:
			continue
		case l.A == l.B:
			fail("link %v joins a node with itself", l)
		case host[l.A] && host[l.B]:
			fail("link %v joins two hosts; want a switch between them", l)
		case links[[2]string{l.A, l.B}] || links[[2]string{l.B, l.A}]:
			fail("link %v is there twice; want one link between two nodes", l)
		}
		links[[2]string{l.A, l.B}] = true
		for h, s := range map[string]string{l.A: l.B, l.B: l.A} {
			if host[h] {
				ofHost[h]++
				hostsOf[s]++
			}
		}
		if err := l.check(); err != nil {
			fail("link %v: %w", l, err)
		}
	}
	for _, h := range t.Hosts {
		if ofHost[h] != 1 {
			fail("host %s has %d links; want one", h, ofHost[h])
		}
	}
	for _, s := range t.Switches {
		if hostsOf[s] > maxHosts {
			fail("switch %s has %d hosts; want at most %d", s, hostsOf[s], maxHosts)
		}
	}
	if len(errs) == 0 {
		errs = append(errs, t.checkConnected())
	}
	return errors.Join(errs...)
}

// check returns an error for a property that is out of range.
func (l Link) check() error {
	switch {
	case l.MTU != 0 && (l.MTU < minMTU || l.MTU > maxMTU):
		return fmt.Errorf("mtu %d; want %d to %d", l.MTU, minMTU, maxMTU)
	case !(l.Loss >= 0 && l.Loss < 1):
		return fmt.Errorf("loss %v; want at least 0 and less than 1", l.Loss)
	case l.Delay < 0 || l.Delay > maxDelay:
		return fmt.Errorf("delay %v; want 0 to %v", l.Delay, maxDelay)
	}
	if err := l.Rate.Validate(); err != nil {
		return fmt.Errorf("rate: %w", err)
	}
	return nil
}

// checkConnected returns an error if a switch cannot be reached from the first one. Hosts
// have one link to a switch each.
func (t *Topology) checkConnected() error {
	if len(t.Switches) == 0 {
		return errors.New("topology: there is no switch")
	}
	far := t.distances(t.Switches[0], nil)
	for _, s := range t.Switches {
		if _, ok := far[s]; !ok {
			return fmt.Errorf("topology: there is no way from switch %s to switch %s", t.Switches[0], s)
		}
	}
	return nil
}
