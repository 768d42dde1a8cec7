// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"syscall"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config/linkrate"
)

// shape is how the source sends where nothing else is said.
type shape struct {
	name   string
	load   load
	late   time.Duration // the time for which a late receiver has no receive
	slow   linkrate.Rate // the rate of a slow link
	source load          // the load of a slow source
	bursts load          // the load of a bursty source
}

// message is four times what a slow link takes at once (lab.LimitRate).
const message = 64 << 10

// shapes are loads that two cores carry with ease: the hosts and the switch share them, and where they are
// too slow each of them is a slow host. A saturated source has the rate of a link, and always messages to send.
var shapes = []shape{
	{
		name: "paced", late: 300 * time.Millisecond, slow: 8_000_000,
		load:   load{Message: message, Depth: 16, Burst: 1, Interval: 100 * time.Millisecond},
		source: load{Message: message, Depth: 16, Burst: 1, Interval: 500 * time.Millisecond},
		bursts: load{Message: message, Depth: 16, Burst: 6, Interval: 600 * time.Millisecond},
	},
	{
		name: "saturated", late: 100 * time.Millisecond, slow: 6_000_000,
		load:   load{Message: message, Depth: 4, Rate: 20_000_000},
		source: load{Message: message, Depth: 4, Rate: 2_000_000},
		bursts: load{Message: message, Depth: 4, Burst: 12, Interval: time.Second, Rate: 20_000_000},
	},
}

// fault is what is wrong with a receiver, or with the source. The zero value is nothing.
type fault struct {
	name  string
	cause string // the cause of the guilty member's slowness, as the API has it; "": no member is guilty
	// Parts of the frames that go to the guilty member are lost.
	loss float64
	link bool // the way to the guilty member is slow
	rnr  time.Duration
	stop syscall.Signal
	load func(*shape) load
}

var faults = []fault{
	{name: "loss 1 %", cause: "loss", loss: 0.01},
	{name: "loss 5 %", cause: "loss", loss: 0.05},
	{name: "loss 10 %", cause: "loss", loss: 0.10},
	{name: "RNR 5 ms", cause: "not ready", rnr: 5 * time.Millisecond},
	{name: "RNR 30 ms", cause: "not ready", rnr: 30 * time.Millisecond},
	{name: "stopped process", cause: "no answer", stop: syscall.SIGSTOP},
	{name: "slow link", cause: "slow link", link: true},
	{name: "slow source", load: func(s *shape) load { return s.source }},
	{name: "bursty source", load: func(s *shape) load { return s.bursts }},
	{name: "all well"},
}

// saysItself are the events that name a member which does not answer.
var saysItself = map[string]bool{api.EventStalled: true, api.EventEvicted: true, api.EventFailed: true}

// cell is a fault under a load.
type cell struct {
	*fault
	*shape
}

func (c cell) String() string { return c.fault.name + ", " + c.shape.name }

// cells are all of them.
func cells() (list []cell) {
	for i := range faults {
		for k := range shapes {
			list = append(list, cell{&faults[i], &shapes[k]})
		}
	}
	return list
}

// short reports whether a cell is in the short form.
func (c cell) short() bool {
	switch c.String() {
	case "loss 5 %, paced", "RNR 5 ms, saturated", "stopped process, paced", "all well, paced":
		return true
	}
	return false
}

// sourceLoad is what the source sends.
func (c cell) sourceLoad() load {
	if c.fault.load != nil {
		return c.fault.load(c.shape)
	}
	return c.shape.load
}

// receives is how a receiver posts.
func (c cell) receives(guilty bool) posts {
	p := posts{Depth: 64}
	if guilty && c.rnr > 0 {
		p = posts{Depth: 2, Every: 4, Late: c.late, RNRTimer: c.rnr}
	}
	return p
}
