// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package spec reads the file that says what is simulated: strict YAML, with the line in each
// error. It makes the points of a sweep, and the configuration of each.
package spec

import (
	"github.com/goccy/go-yaml"

	"github.com/gleam-rdma/gleam/lab/sim/workload"
)

// file is the YAML. Numbers and sizes are strings here, so that a variable may stand for each.
// The tags are the names of keys; an empty string is a key that is not there.
type file struct {
	Name     string       `yaml:"name,omitempty"`
	Seed     string       `yaml:"seed"`
	Topology fileTopology `yaml:"topology"`
	Switches fileSwitches `yaml:"switches"`
	Hosts    fileHosts    `yaml:"hosts"`
	Trains   fileTrains   `yaml:"trains,omitempty"`
	Phases   []filePhase  `yaml:"phases"`

	Sweep yaml.MapSlice `yaml:"sweep,omitempty"` // variables with their values
}

type fileTopology struct {
	Kind string `yaml:"kind"` // paper, fat-tree, leaf-spine, clos or file

	Ports            string `yaml:"ports,omitempty"`            // the ports of a fat-tree's switches
	Oversubscription string `yaml:"oversubscription,omitempty"` // the oversubscription of a fat-tree

	Pods         string `yaml:"pods,omitempty"` // the pods of a clos, as all below
	Leaves       string `yaml:"leaves,omitempty"`
	HostsPerLeaf string `yaml:"hosts_per_leaf,omitempty"`
	Spines       string `yaml:"spines,omitempty"` // the spines of a pod
	Uplinks      string `yaml:"uplinks,omitempty"`
	Cores        string `yaml:"cores,omitempty"`

	Path string `yaml:"path,omitempty"` // the path of a topology file

	Rate       string `yaml:"rate,omitempty"`      // the rate of links; in a file, of those without
	HostRate   string `yaml:"host_rate,omitempty"` // the rate of hosts' links
	Delay      string `yaml:"delay,omitempty"`
	HostDelay  string `yaml:"host_delay,omitempty"`
	Loss       string `yaml:"loss,omitempty"` // the loss of links between switches, without those to cores
	CoreLoss   string `yaml:"core_loss,omitempty"`
	HostLoss   string `yaml:"host_loss,omitempty"`
	Corruption string `yaml:"corruption,omitempty"`

	Losses   []fileLoss    `yaml:"losses,omitempty"`
	Failures []fileFailure `yaml:"failures,omitempty"`
}

// fileLoss is the loss in one direction of the link between two nodes, beside the link's loss.
type fileLoss struct {
	From string `yaml:"from"`
	To   string `yaml:"to"`
	Loss string `yaml:"loss"`
}

// fileFailure is the failure of a node with all its links, or of one link.
type fileFailure struct {
	At    string   `yaml:"at"`
	Until string   `yaml:"until,omitempty"`
	Node  string   `yaml:"node,omitempty"`
	Link  []string `yaml:"link,flow,omitempty"` // its two ends
}

type fileSwitches struct {
	Queue string  `yaml:"queue"`
	ECN   fileECN `yaml:"ecn"`
	PFC   filePFC `yaml:"pfc,omitempty"`
	Trees string  `yaml:"trees"`
	// CNPs are those that go to the source: filtered, or all.
	CNPs string `yaml:"cnps,omitempty"`
	// Detect is the time from a failure until the switches know of it.
	Detect string `yaml:"detect,omitempty"`
	// DeadAfter is the silence after which a receiver is removed from its groups; never: it is waited for.
	DeadAfter string     `yaml:"dead_after,omitempty"`
	Fix       fileRepair `yaml:"repair"`
}

type fileECN struct {
	Min         string `yaml:"min"`
	Max         string `yaml:"max"`
	Probability string `yaml:"probability"`
}

// filePFC is empty without priority flow control.
type filePFC struct {
	XOff string `yaml:"xoff,omitempty"`
	XOn  string `yaml:"xon,omitempty"`
}

type fileRepair struct {
	GroupBytes  string `yaml:"group_bytes"`
	SwitchBytes string `yaml:"switch_bytes"`
	Timeout     string `yaml:"timeout"`
	Tries       string `yaml:"tries"`
	// Room is the most packets at a port when one is sent again; auto: 4, and 32 at a port to another switch.
	Room string `yaml:"room,omitempty"`
}

// fileTrains is empty without trains.
type fileTrains struct {
	Packets string `yaml:"packets,omitempty"`
	Inexact string `yaml:"inexact,omitempty"` // true: a phase that packets of others have mixed with is not simulated again
}

type fileHosts struct {
	MTU         string `yaml:"mtu"`
	Personality string `yaml:"personality"`
	Window      string `yaml:"window"`
	AckEvery    string `yaml:"ack_every"`
	Timeout     string `yaml:"timeout"`
	Retries     string `yaml:"retries"`

	Operation    string `yaml:"operation,omitempty"` // send or write
	Receives     string `yaml:"receives,omitempty"`
	ReceiveDelay string `yaml:"receive_delay,omitempty"`
	RNRTimer     string `yaml:"rnr_timer,omitempty"`
	Rate         string `yaml:"rate,omitempty"` // the rate of a queue pair's requests; none: that of its port

	Congestion fileCongestion `yaml:"congestion"`
}

type fileCongestion struct {
	Control       string `yaml:"control"` // none or dcqcn
	G             string `yaml:"g,omitempty"`
	AlphaTimer    string `yaml:"alpha_timer,omitempty"`
	IncreaseTimer string `yaml:"increase_timer,omitempty"`
	AI            string `yaml:"ai,omitempty"`
	HAI           string `yaml:"hai,omitempty"`
	CNPInterval   string `yaml:"cnp_interval,omitempty"`
}

type filePhase struct {
	Name     string        `yaml:"name"`
	Programs []fileProgram `yaml:"programs"`
}

type fileProgram struct {
	Program   string `yaml:"program"`
	Algorithm string `yaml:"algorithm,omitempty"`
	Bytes     string `yaml:"bytes,omitempty"`
	Overhead  string `yaml:"overhead,omitempty"`

	Communicators string `yaml:"communicators,omitempty"` // hpl, mpi, nccl
	Ranks         string `yaml:"ranks,omitempty"`
	Along         string `yaml:"along,omitempty"` // rows or columns
	Chunks        string `yaml:"chunks,omitempty"`
	Chunk         string `yaml:"chunk,omitempty"`
	Synchronous   bool   `yaml:"synchronous,omitempty"`
	Rendezvous    bool   `yaml:"rendezvous,omitempty"`

	Clients  string `yaml:"clients,omitempty"` // storage
	Replicas string `yaml:"replicas,omitempty"`
	Writes   string `yaml:"writes,omitempty"`
	Depth    string `yaml:"depth,omitempty"`

	Trainers  string `yaml:"trainers,omitempty"` // weights
	Receivers string `yaml:"receivers,omitempty"`
	Parts     string `yaml:"parts,omitempty"`

	Hosts     string `yaml:"hosts,omitempty"`     // permutation, incast
	Placement string `yaml:"placement,omitempty"` // contiguous, random or pods
	At        string `yaml:"at,omitempty"`
	Path      string `yaml:"path,omitempty"` // trace
}

// setDefaults fills in what the file leaves open.
func (f *file) setDefaults() {
	def := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	def(&f.Seed, "1")
	t := &f.Topology
	if t.Kind != "file" {
		def(&t.Rate, "200gbit")
		def(&t.Delay, "1us")
		def(&t.HostRate, t.Rate)
		def(&t.HostDelay, t.Delay)
		for _, p := range []*string{&t.Loss, &t.CoreLoss, &t.HostLoss, &t.Corruption} {
			def(p, "0")
		}
	}
	switch t.Kind {
	case "fat-tree":
		def(&t.Oversubscription, "1")
	case "leaf-spine":
		def(&t.Spines, "1")
	}
	s := &f.Switches
	def(&s.Queue, "32MiB")
	def(&s.Trees, "least-used")
	if len(t.Failures) > 0 {
		def(&s.Detect, "1ms")
	}
	def(&s.ECN.Min, "0")
	def(&s.ECN.Max, "0")
	def(&s.ECN.Probability, "0")
	def(&s.Fix.GroupBytes, "0")
	def(&s.Fix.SwitchBytes, "64MiB")
	def(&s.Fix.Timeout, "4ms")
	def(&s.Fix.Tries, "5")
	h := &f.Hosts
	def(&h.MTU, "4096")
	def(&h.Personality, "strict")
	def(&h.Window, "8192")
	def(&h.AckEvery, "4")
	def(&h.Timeout, "4ms")
	def(&h.Retries, "7")
	def(&h.Congestion.Control, "none")
	for _, d := range f.later() {
		def(d.key, d.value)
	}
	for i := range f.Phases {
		p := &f.Phases[i]
		def(&p.Name, "phase")
		for j := range p.Programs {
			p.Programs[j].setDefaults(def)
		}
	}
}

// later are the keys that came when there were results already, with their defaults. With these a
// configuration has the address of one without them.
func (f *file) later() []laterKey {
	h := &f.Hosts
	return []laterKey{{&h.Operation, "send"}, {&h.Receives, "1"}, {&h.ReceiveDelay, "0"}, {&h.RNRTimer, "640us"}, {&h.Rate, "none"}, {&f.Switches.CNPs, "filtered"}, {&f.Switches.DeadAfter, "never"}, {&f.Switches.Fix.Room, "auto"}}
}

type laterKey struct {
	key   *string
	value string
}

// addressed returns f as its address is made of.
func (f *file) addressed() *file {
	c := *f
	for _, d := range c.later() {
		if *d.key == d.value {
			*d.key = ""
		}
	}
	return &c
}

func (p *fileProgram) setDefaults(def func(*string, string)) {
	def(&p.Overhead, "0")
	def(&p.Placement, "contiguous")
	switch p.Program {
	case "hpl":
		def(&p.Chunks, "1")
		def(&p.Along, "rows")
		def(&p.Communicators, "1")
	case "mpi":
		def(&p.Algorithm, "tuned")
		def(&p.Along, "rows")
		def(&p.Communicators, "1")
	case "nccl":
		def(&p.Chunk, itoa(workload.DefaultNCCLChunk))
		def(&p.Along, "rows")
		def(&p.Communicators, "1")
	case "storage":
		def(&p.Replicas, "3")
		def(&p.Depth, "1")
	case "weights":
		def(&p.Chunk, itoa(workload.DefaultNCCLChunk))
		def(&p.Parts, "1")
	case "permutation", "incast":
		def(&p.At, "0")
	}
}
