// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
)

// Backend has what the metrics are made of.
type Backend interface {
	// BusiestGroups returns at most n groups, and how many others there are.
	BusiestGroups(n int) (list []api.Group, leftOut int, err error)
	Ports() ([]api.Port, error)
	Stats() (*api.Stats, error)
}

// Config is what the metrics are of.
type Config struct {
	Groups  int // the most that have metrics of their own
	Version api.Version
	// Drops and Unneeded are the reasons that have a series before they occur, so that their
	// first occurrence is an increase.
	Drops, Unneeded []string
}

// Limits of the work for scrapers: a sample serves all that ask within minAge, and no more than
// a tenth of the time is spent on samples.
const (
	minAge = 500 * time.Millisecond
	share  = 10
)

// collector collects the metrics of a switch.
type collector struct {
	backend Backend
	config  Config

	mu    sync.Mutex
	last  *sample
	until time.Time // the time when last is too old
}

// sample is the switch at one moment.
type sample struct {
	config  *Config
	groups  []api.Group
	leftOut int
	ports   []api.Port
	stats   *api.Stats
	err     error
}

// take asks the switch, or returns the last answer if that is new enough.
func (c *collector) take() *sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	begin := time.Now()
	if c.last != nil && begin.Before(c.until) {
		return c.last
	}
	s := &sample{config: &c.config}
	if s.groups, s.leftOut, s.err = c.backend.BusiestGroups(c.config.Groups); s.err == nil {
		s.ports, s.err = c.backend.Ports()
	}
	if s.err == nil {
		s.stats, s.err = c.backend.Stats()
	}
	end := time.Now()
	c.last, c.until = s, end.Add(max(minAge, share*end.Sub(begin)))
	return s
}

// collect returns the metrics as they are now.
func (c *collector) collect() out {
	o, s := make(out), c.take()
	for _, j := range subjects {
		j.collect(s, o)
	}
	return o
}

// The subjects of metrics.
var (
	samples = subject[sample]{each: func(s *sample, found func(*sample, ...string)) { found(s) }}
	// answers are samples of a switch that has answered.
	answers = part(&samples, func(s *sample) *sample {
		if s.err != nil {
			return nil
		}
		return s
	})
	totals     = part(&answers, func(s *sample) *api.Stats { return s.stats })
	stateFiles = part(&totals, func(s *api.Stats) *api.StateFile { return s.Control.State })
	workers    = parts(&totals, []string{"worker"}, func(s *api.Stats, found func(*api.Worker, ...string)) {
		for i := range s.Workers {
			found(&s.Workers[i], strconv.Itoa(s.Workers[i].Worker))
		}
	})
	queues = parts(&totals, []string{"queue"}, func(s *api.Stats, found func(*api.Ring, ...string)) {
		found(&s.Queues.Renewals, "renewals")
		found(&s.Queues.Requests, "requests")
		found(&s.Queues.Relays, "relays")
	})
	ports = parts(&answers, []string{"port"}, func(s *sample, found func(*api.Port, ...string)) {
		for i := range s.ports {
			found(&s.ports[i], s.ports[i].Name)
		}
	})
	fastPorts = part(&ports, func(p *api.Port) *api.PortFastPath { return p.FastPath })
	devices   = part(&ports, func(p *api.Port) *api.DeviceCounters { return p.Device })
	sockets   = parts(&ports, []string{"queue"}, func(p *api.Port, found func(*api.Socket, ...string)) {
		for i := range p.Sockets {
			found(&p.Sockets[i], strconv.Itoa(p.Sockets[i].Queue))
		}
	})
	rings = parts(&sockets, []string{"ring"}, func(k *api.Socket, found func(*api.Ring, ...string)) {
		found(&k.RX, "rx")
		found(&k.Fill, "fill")
		found(&k.TX, "tx")
		found(&k.Completion, "completion")
	})
	groups = parts(&answers, []string{"group"}, func(s *sample, found func(*api.Group, ...string)) {
		for i := range s.groups {
			found(&s.groups[i], s.groups[i].IP.String())
		}
	})
	repairs = part(&groups, func(g *api.Group) *api.Repair { return g.Repair })
	// members are those that cost their groups most.
	members = parts(&groups, []string{"member"}, func(g *api.Group, found func(*api.Member, ...string)) {
		list, _ := watch.Costliest(g, memberSeries)
		for _, m := range list {
			found(m, m.IP.String())
		}
	})

	subjects = []interface{ collect(*sample, out) }{
		&samples, &answers, &totals, &stateFiles, &workers, &queues, &ports, &fastPorts, &devices, &sockets, &rings, &groups, &repairs, &members,
	}
)

// memberSeries is the most members of a group that have metrics of their own.
const memberSeries = 16

// liveMembers returns how many members of g are live, and by how many packets the last one is behind.
func liveMembers(g *api.Group) (live, lag int) {
	for i := range g.Members {
		if m := &g.Members[i]; m.Live {
			live, lag = live+1, max(lag, m.Lag)
		}
	}
	return live, lag
}

// copyMode names the mode of AF_XDP.
func copyMode(p *api.Port) string {
	if p.ZeroCopy {
		return "zero-copy"
	}
	return "copy"
}
