// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

// FabricOptions are the options of a demo with several switches.
type FabricOptions struct {
	Topology string         // leaf-spine, fat-tree or the name of a YAML file; "": one switch
	Leaves   int            // leaves of leaf-spine
	Spines   int            // spines of leaf-spine
	K        int            // ports of a switch of fat-tree
	Routing  fabric.Routing // the routing of unicast, which the tree follows
	SVG      string         // a file for the picture of the tree; "": text
	Reload   bool           // every gleamd's configuration, in the middle of the transfer
	// What fails, or restarts, in the middle of the transfer: see changeKind.usage.
	FailLink, FailSwitch, RestartSwitch []string

	topology *fabric.Topology // set by checkFabric
	planned  []change         // likewise
}

// Kinds of Topology beside files.
const (
	leafSpine = "leaf-spine"
	fatTree   = "fat-tree"
)

// hostsPerLeaf is how many hosts a leaf has if the number of members is not given.
const hostsPerLeaf = 3

// addTo adds the flags.
func (o *FabricOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.Topology, "topology", o.Topology, "a fabric of switches, with a gleamd in each: leaf-spine, fat-tree, or a YAML file of nodes and links")
	f.IntVar(&o.Leaves, "leaves", o.Leaves, "leaves of --topology leaf-spine")
	f.IntVar(&o.Spines, "spines", o.Spines, "spines of --topology leaf-spine")
	f.IntVar(&o.K, "k", o.K, "ports of a switch of --topology fat-tree")
	f.StringVar((*string)(&o.Routing), "routing", string(o.Routing), "how switches of a fabric get their routes: static, bgp or ospf (FRR)")
	f.StringVar(&o.SVG, "svg", o.SVG, "draw the tree that the group's packets took into this file, with --topology")
	f.BoolVar(&o.Reload, "reload", o.Reload, "have every gleamd of a fabric reload its configuration in the middle of the transfer")
	f.StringArrayVar(&o.FailLink, string(failLink), nil, "cut the link `"+failLink.usage()+"` in the middle of the transfer; auto: one that the group uses")
	f.StringArrayVar(&o.FailSwitch, string(failSwitch), nil, "kill `"+failSwitch.usage()+"`, and cut its links, in the middle of the transfer")
	f.StringArrayVar(&o.RestartSwitch, string(restartSwitch), nil, "restart the gleamd of `"+restartSwitch.usage()+"` in the middle of the transfer")
}

// fabricFlags are the flags that need --topology, or one of its values.
var fabricFlags = map[string]string{"leaves": leafSpine, "spines": leafSpine, "k": fatTree, "routing": "", "svg": "", "reload": "", "fail-link": "", "fail-switch": "", "restart-switch": ""}

// checkFlags reports a flag that has no meaning for the topology, and sets what depends on it.
func (o *Options) checkFlags(f *pflag.FlagSet) error {
	for name, of := range fabricFlags {
		switch {
		case !f.Changed(name):
		case o.Topology == "":
			return fmt.Errorf("--%s is for fabrics: give a --topology too", name)
		case of != "" && of != o.Topology:
			return fmt.Errorf("--%s is for --topology %s, not for %s", name, of, o.Topology)
		}
	}
	if o.Topology == "" {
		return nil
	}
	if !f.Changed("size") {
		o.Size = 16 << 20
	}
	if !f.Changed("message-size") {
		o.MessageSize = 64 << 10
	}
	if !f.Changed("members") {
		o.Members = 0
	}
	return nil
}

// checkFabric makes the topology, and sets Members if it is 0: all hosts.
func (o *Options) checkFabric() error {
	if o.Topology == "" {
		return nil
	}
	switch {
	case o.Rotate > 0:
		return errors.New("--rotate is for one switch, not for --topology")
	case o.KillMember != "":
		return errors.New("--kill-member is for one switch, not for --topology")
	case o.Targets:
		return errors.New("--targets is for one switch, not for --topology")
	case o.Keep:
		return errors.New("--keep is for one switch, not for --topology")
	}
	t, err := o.makeTopology()
	if err != nil {
		return err
	}
	if o.Members == 0 {
		o.Members = len(t.Hosts)
	}
	if o.Members > len(t.Hosts) || o.Members < 2 {
		return fmt.Errorf("--members %d: want 2 to %d, the hosts of the topology", o.Members, len(t.Hosts))
	}
	for i := range t.Links {
		l := &t.Links[i]
		if l.MTU == 0 {
			l.MTU = testbed.PortMTU(o.MTU)
		}
		if l.Loss == 0 {
			l.Loss = o.Loss
		}
	}
	if err := t.Validate(); err != nil {
		return fmt.Errorf("--topology %s: %w", o.Topology, err)
	}
	o.topology = t
	o.planned, err = o.changes()
	return err
}

func (o *Options) makeTopology() (*fabric.Topology, error) {
	switch o.Topology {
	case leafSpine:
		if o.Leaves < 1 || o.Leaves > lab.MaxHosts || o.Spines < 1 || o.Spines > lab.MaxHosts {
			return nil, fmt.Errorf("--leaves %d --spines %d: want 1 to %d of each", o.Leaves, o.Spines, lab.MaxHosts)
		}
		hosts := hostsPerLeaf
		if o.Members > 0 {
			hosts = (o.Members + o.Leaves - 1) / o.Leaves
		}
		return fabric.LeafSpine(o.Leaves, o.Spines, hosts), nil
	case fatTree:
		t, err := fabric.FatTree(o.K)
		if err != nil {
			return nil, fmt.Errorf("--k %d: %w", o.K, err)
		}
		return t, nil
	}
	text, err := os.ReadFile(o.Topology)
	if err != nil {
		return nil, fmt.Errorf("--topology %s: want leaf-spine, fat-tree or the name of a file: %w", o.Topology, err)
	}
	t, err := fabric.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--topology %s: %w", o.Topology, err)
	}
	return t, nil
}
