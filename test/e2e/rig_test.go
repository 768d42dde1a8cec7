// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package test holds the tests that need a running switch: real namespaces, veths, XDP
// and AF_XDP, with software endpoints at the hosts. The switch runs inside the test
// process, so that the race detector sees it.
package e2e

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/internal/control"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

const (
	virtualQPN = 0x4711
	groupBase  = 0x5000_0000_0000 // the base of the group's window
	groupRKey  = 0x00C0FFEE
	timeout    = 60 * time.Second
)

var (
	group4 = netip.MustParseAddr("10.77.254.1")
	group6 = netip.MustParseAddr("fd77::6c65:1")
)

// rigConfig describes a rig. Fields left zero take the demo's values.
type rigConfig struct {
	star    lab.StarConfig
	config  string            // lines added to the switch's configuration
	rings   string            // its umem and rings; empty: some that are enough
	vlan    int               // the VLAN of every port; 0 none
	ports   map[string]string // keys added to ports
	oneArm  bool              // the bridge itself is the switch's only port
	device  func(host int, c *soft.Config)
	qp      func(host int, c *endpoint.QPConfig)
	v6      bool
	pathMTU int
	memory  int    // bytes of every host's region
	policy  string // strict or evict
	alone   bool   // true: there is no local repair
	workers int    // workers of the switch; 0: GLEAM_WORKERS, or by the test's name
	// keys are the switch's, in order; none: key 1. Hosts that join by envelope have
	// the last one alone.
	keys     []envelope.KeyID
	envelope string // another key of its section envelope
	// The last hosts of the star that are in no group: see attacker_test.go.
	strangers int
	psns      func(host int) (sq, rq rocev2.PSN)

	// prepare changes the lab before the switch starts, and the ports' configuration.
	prepare func(s *lab.Star, config string) string
}

// rig is a switch with hosts around it, all in one group if join was called.
type rig struct {
	t      testing.TB
	ctx    context.Context
	c      rigConfig
	star   *lab.Star
	engine *control.Engine
	stop   func()         // ends the switch, once
	text   string         // the text of the configuration
	cfg    *config.Config // the configuration in use
	group  netip.Addr
	hosts  []*rigHost
	notes  *notes
	// The transfer that is watched, or was last: for attacks that depend on it.
	watched *watch
	joined  int // groups that joins has made
}

type rigHost struct {
	lab.Host
	ip  netip.Addr
	dev *soft.Device
	qp  endpoint.QP
	mr  endpoint.MR
}

// notes collects the switch's log.
type notes struct {
	sync.Mutex
	lines []string
}

func (n *notes) add(warn bool, msg string, kv ...any) {
	n.Lock()
	defer n.Unlock()
	n.lines = append(n.lines, fmt.Sprint(warn, " ", msg, " ", kv))
}

// count counts the lines that contain text.
func (n *notes) count(text string) (lines int) {
	n.Lock()
	defer n.Unlock()
	for _, l := range n.lines {
		if strings.Contains(l, text) {
			lines++
		}
	}
	return lines
}

// newRig builds the lab and starts the switch.
func newRig(t testing.TB, c rigConfig) *rig {
	t.Helper()
	if c.pathMTU == 0 {
		c.pathMTU = 1024
	}
	if c.memory == 0 {
		c.memory = 1 << 20
	}
	if c.policy == "" {
		c.policy = "strict"
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout+4*time.Duration(floodRounds(t))*floodSlice)
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, c: c, star: labtest.Star(t, c.star), group: group4, notes: &notes{}}
	if c.v6 {
		r.group = group6
	}
	r.start()
	for i, h := range r.star.Hosts[:len(r.star.Hosts)-c.strangers] {
		r.hosts = append(r.hosts, r.open(i, h))
	}
	return r
}

// start runs the switch in its namespace.
func (r *rig) start() {
	r.t.Helper()
	text := r.star.Config()
	if r.c.prepare != nil {
		text = r.c.prepare(r.star, text)
	}
	if r.c.oneArm {
		text = fmt.Sprintf("ports: [{name: %s}]\ngroup_prefixes: [%s, %s]\n", lab.StarBridge, lab.StarGroupsIPv4, lab.StarGroupsIPv6)
	}
	if r.c.vlan > 0 {
		for _, p := range r.star.Ports {
			text = strings.Replace(text, "name: "+p+"\n", fmt.Sprintf("name: %s\n    vlan: %d\n", p, r.c.vlan), 1)
		}
	}
	for p, keys := range r.c.ports {
		text = strings.Replace(text, "name: "+p+"\n", "name: "+p+"\n    "+keys+"\n", 1)
	}
	rings := r.c.rings
	if rings == "" {
		frames := 8192 // for each worker: the memory for repair is divided
		for n := 1; n < r.workers(); n *= 2 {
			frames *= 2
		}
		rings = fmt.Sprintf("umem: {frames: %d}\nrings: {rx: 512, tx: 512, fill: 512, completion: 512}\n", frames)
	}
	text += rings +
		strings.Replace(keysConfig(r.c.switchKeys()...), "keys:", strings.TrimPrefix(r.c.envelope+", keys:", ", "), 1) + r.c.config
	r.t.Logf("the switch has as many workers as with GLEAM_WORKERS=%d", r.workers())
	if n := r.workers(); n > 1 && !strings.Contains(text, "worker:") {
		text += "\nworker: {cpu: [" + strings.TrimSuffix(strings.Repeat("-1, ", n), ", ") + "]}\n"
	}
	text = labtest.WithFastPath(text, r.mayRequireFastPath(text))
	cfg, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		r.t.Fatal(err)
	}
	r.text, r.cfg = text, cfg
	if err := r.star.Switch.Do(func() (err error) { r.engine, err = control.Open(cfg, r.notes.add); return err }); err != nil {
		r.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- r.star.Switch.Do(func() error { return r.engine.Run(ctx) })
	}()
	engine := r.engine
	r.stop = sync.OnceFunc(func() {
		countFast(engine)
		stop()
		if err := <-ended; err != nil {
			r.t.Errorf("run: %v", err)
		}
		if err := engine.Close(); err != nil {
			r.t.Errorf("close: %v", err)
		}
	})
	r.t.Cleanup(func() {
		r.stop()
		if r.t.Failed() {
			for _, l := range r.notes.lines {
				r.t.Log(l)
			}
		}
	})
}

// mayRequireFastPath reports whether nothing in the rig or the switch's configuration keeps its
// groups off the fast path.
func (r *rig) mayRequireFastPath(text string) bool {
	for _, p := range r.star.Ports {
		if !strings.Contains(text, "name: "+p+"\n") {
			return false // a bridge is a port in its place, with XDP in generic mode
		}
	}
	return !r.c.alone && r.c.star.Rack <= fastpath.MaxPortLegs && r.c.pathMTU <= 2048 && r.c.star.MTU <= bpf.MaxSingleBufferMTU && !strings.Contains(text, "rate:") && !strings.Contains(text, "xdp:")
}

// countFast counts what XDP has replicated in a switch, unless that has ended.
func countFast(e *control.Engine) {
	ports, _ := e.Ports()
	for _, p := range ports {
		labtest.CountFast(p.XDP[bpf.FastRoCEv2.String()])
	}
}

// switchKeys returns the keys that the switch has.
func (c *rigConfig) switchKeys() []envelope.KeyID {
	if len(c.keys) == 0 {
		return []envelope.KeyID{1}
	}
	return c.keys
}

// workers returns how many workers the switch has: without GLEAM_WORKERS one or three, by the name of
// the test and by GLEAM_SAMPLE, so that each run has tests of both.
func (r *rig) workers() int {
	if r.c.workers > 0 {
		return r.c.workers
	}
	h := fnv.New32a()
	h.Write([]byte(r.t.Name() + os.Getenv("GLEAM_SAMPLE")))
	n, err := strconv.Atoi(cmp.Or(os.Getenv("GLEAM_WORKERS"), strconv.Itoa(1+2*int(h.Sum32()&1))))
	if err != nil || n < 1 {
		r.t.Fatalf("GLEAM_WORKERS is %q; want a number of workers", os.Getenv("GLEAM_WORKERS"))
	}
	return n
}

// open makes a host's device, region and queue pair.
func (r *rig) open(i int, h lab.Host) *rigHost {
	r.t.Helper()
	x := &rigHost{Host: h, ip: h.IPv4}
	if r.c.v6 {
		x.ip = h.IPv6
	}
	cfg := soft.Config{Interface: h.Interface, Seed: uint64(i)}
	if r.c.device != nil {
		r.c.device(i, &cfg)
	}
	if err := h.NS.Do(func() (err error) { x.dev, err = soft.Open(cfg); return err }); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { x.dev.Close() })
	r.equip(i, x)
	return x
}

// equip gives host i a region and a queue pair.
func (r *rig) equip(i int, x *rigHost) {
	r.t.Helper()
	var err error
	if x.mr, err = x.dev.RegisterMemory(make([]byte, r.c.memory), r.base(i), endpoint.LocalWrite|endpoint.RemoteWrite); err != nil {
		r.t.Fatal(err)
	}
	qc := endpoint.QPConfig{LocalIP: x.ip, SQPSN: rocev2.PSN(0xFFFFF0+i) & rocev2.PSNMask, RQPSN: rocev2.PSN(0x1000 * i)}
	if r.c.psns != nil {
		qc.SQPSN, qc.RQPSN = r.c.psns(i)
	}
	if r.c.qp != nil {
		r.c.qp(i, &qc)
	}
	if x.qp, err = x.dev.CreateQP(qc); err != nil {
		r.t.Fatal(err)
	}
}

// another returns a rig for one more group on the same switch: some of the
// hosts, each with a region and queue pair of its own beside the first ones.
func (r *rig) another(group netip.Addr, hosts ...int) *rig {
	r.t.Helper()
	o := *r
	o.group, o.hosts = group, nil
	if o.c.psns == nil {
		// Random ones, as applications choose: a packet of an earlier queue pair of
		// the same host that is still under way must not pass for one of the new.
		o.c.psns = func(int) (sq, rq rocev2.PSN) { return endpoint.RandomPSN(), endpoint.RandomPSN() }
	}
	for _, i := range hosts {
		x := *r.hosts[i]
		r.equip(i, &x)
		o.hosts = append(o.hosts, &x)
	}
	return &o
}

// base is the virtual address of host i's region: another one at every host.
func (r *rig) base(i int) uint64 { return 0x7000_0000_0000 + uint64(i)<<32 }

// join connects all hosts to the group and registers it by hand.
func (r *rig) join() {
	r.t.Helper()
	r.connect()
	if err := r.engine.Register(r.registration()); err != nil {
		r.t.Fatal(err)
	}
}

// connect connects all hosts to the group.
func (r *rig) connect() {
	r.t.Helper()
	for _, h := range r.hosts {
		to := endpoint.Remote{IP: r.group, QPN: virtualQPN, PathMTU: r.c.pathMTU, RQPSN: h.qp.Info().RQPSN}
		if err := h.qp.Connect(r.ctx, to); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) registration() *api.Register {
	reg := &api.Register{
		Group: r.group, QPN: virtualQPN, PMTU: r.c.pathMTU, Policy: r.c.policy, NoRepair: r.c.alone,
		Window: &api.Window{VA: groupBase, Len: uint64(r.c.memory), RKey: groupRKey},
	}
	for _, h := range r.hosts {
		i := h.qp.Info()
		reg.Members = append(reg.Members, api.RegisterMember{
			IP: i.IP, QPN: api.QPN(i.QPN), SQPSN: api.PSN(i.SQPSN), RQPSN: api.PSN(i.RQPSN),
			Window: &api.Window{VA: h.mr.Addr(), Len: uint64(h.mr.Len()), RKey: h.mr.RKey()},
		})
	}
	return reg
}

// fill puts random bytes into host i's region and returns them.
func (r *rig) fill(i int) []byte {
	var seed [32]byte
	seed[0] = byte(i + 1)
	b := r.hosts[i].mr.Bytes()
	_, _ = rand.NewChaCha8(seed).Read(b)
	return b
}

// write sends host from's region to the group, message bytes at a time, and
// waits for one completion each.
func (r *rig) write(from, message int) {
	r.t.Helper()
	r.complete(r.hosts[from], r.post(from, message))
}

// post posts host from's region to its queue pair, message bytes at a time, and returns
// how many messages there are.
func (r *rig) post(from, message int) (n int) {
	r.t.Helper()
	h := r.hosts[from]
	for off := 0; off < h.mr.Len(); off += message {
		wr := endpoint.SendWR{
			ID: uint64(n), Op: endpoint.Write, Local: endpoint.Segment{MR: h.mr, Offset: off, Len: min(message, h.mr.Len()-off)},
			RemoteAddr: groupBase + uint64(off), RKey: groupRKey,
		}
		if _, err := h.qp.PostSend(wr); err != nil {
			r.t.Fatal(err)
		}
		n++
	}
	return n
}

// complete waits for n completions of h, in order and without error.
func (r *rig) complete(h *rigHost, n int) {
	r.t.Helper()
	var wc [16]endpoint.Completion
	for got := 0; got < n; {
		k, err := h.qp.Poll(r.ctx, wc[:])
		if err != nil {
			g, _ := r.engine.Group(r.group)
			s, _ := r.engine.Stats()
			r.t.Fatalf("%s: %d of %d completions: %v\nstats %+v\ngroup %+v", h.Name, got, n, err, s, g)
		}
		for _, c := range wc[:k] {
			if err := c.Err(); err != nil {
				r.t.Fatalf("%s: %v", h.Name, err)
			}
			if c.ID != uint64(got) {
				r.t.Fatalf("%s: completion of %d, want %d", h.Name, c.ID, got)
			}
			got++
		}
	}
}

// said reports whether a line of the switch's log contains text.
func (r *rig) said(text string) bool {
	r.notes.Lock()
	defer r.notes.Unlock()
	return slices.ContainsFunc(r.notes.lines, func(l string) bool { return strings.Contains(l, text) })
}

// same checks that every host but from has from's bytes.
func (r *rig) same(from int) {
	r.t.Helper()
	for i, h := range r.hosts {
		if i != from && !bytes.Equal(h.mr.Bytes(), r.hosts[from].mr.Bytes()) {
			r.t.Errorf("%s does not have the bytes of %s", h.Name, r.hosts[from].Name)
		}
	}
}

// ports returns the switch's ports.
func (r *rig) ports() []api.Port {
	r.t.Helper()
	list, err := r.engine.Ports()
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

// stats returns the switch's totals.
func (r *rig) stats() *api.Stats {
	r.t.Helper()
	s, err := r.engine.Stats()
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}
