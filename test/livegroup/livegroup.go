// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package livegroup gives tests a lab with gleamd and a group in which messages flow, whose
// receivers can be made slow, or ended.
package livegroup

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"net/netip"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/bedtest"
)

// messageBytes is the length of a message.
const messageBytes = 16 << 10

// Config describes a lab and its group, whose source is the first host. The zero value of the
// optional fields takes the default in brackets.
type Config struct {
	Hosts  int
	Gleamd string // path of the program
	More   string // further lines of its configuration []
	// DeadAfter is the time after which a silent receiver is evicted [5 s].
	DeadAfter time.Duration
	// Rate bounds what the source sends, in bits a second of an Ethernet link [none].
	Rate int64
}

// Lab is a star of hosts with gleamd in its middle.
type Lab struct {
	*testbed.Testbed
	Group netip.Addr

	t      testing.TB
	hosts  []*host
	failed chan error
}

type host struct {
	*testbed.Host
	pause   atomic.Int64 // nanoseconds before a buffer is posted again
	stop    context.CancelFunc
	stopped chan struct{}
}

// New makes a lab and its group. Messages flow until the test ends.
func New(t testing.TB, c Config) *Lab {
	t.Helper()
	bed := bedtest.Star(t, testbed.Config{Gleamd: c.Gleamd, More: c.More, Star: lab.StarConfig{Hosts: c.Hosts}})
	l := &Lab{Testbed: bed, Group: netip.MustParseAddr("10.77.254.1"), t: t, failed: make(chan error, c.Hosts)}
	l.join(&c)
	return l
}

// join makes the group and starts its traffic.
func (l *Lab) join(c *Config) {
	l.t.Helper()
	const timeout, retries = 19, 7 // 2 s: receivers are evicted before the source gives up
	e := testbed.Endpoints{
		Key: l.Key, Answer: true, Deadline: 20 * time.Second, Memory: messageBytes,
		QP: endpoint.QPConfig{MaxSend: 16, MaxRecv: 16, Timeout: timeout, RetryCount: retries, RNRRetry: 7},
	}
	e.Device.Rate = c.Rate
	all := bedtest.Open(l.t, l.Star.Hosts[:1], e)
	e.Device = soft.Config{Seed: 1}
	all = append(all, bedtest.Open(l.t, l.Star.Hosts[1:], e)...)
	m := endpoint.MasterConfig{GroupIP: l.Group, Policy: mcast.Evict, DeadAfter: cmp.Or(c.DeadAfter, 5*time.Second), SenderTimeout: timeout, SenderRetries: retries, PathMTU: 1024}
	groups, err := testbed.Join(l.t.Context(), m, all)
	if err != nil {
		l.t.Fatal(err)
	}
	for i := range all {
		x := &host{Host: all[i], stopped: make(chan struct{})}
		l.hosts = append(l.hosts, x)
		var ctx context.Context
		ctx, x.stop = context.WithCancel(context.Background())
		l.t.Cleanup(func() { l.Kill(i) })
		go func() {
			defer close(x.stopped)
			do := x.receive
			if i == 0 {
				do = x.send
			}
			if err := do(ctx, groups[i].QP()); err != nil && ctx.Err() == nil {
				l.failed <- err
			}
		}()
	}
}

// send sends message after message.
func (x *host) send(ctx context.Context, qp endpoint.QP) error {
	next := func(int) (endpoint.SendWR, error) {
		return endpoint.SendWR{Op: endpoint.Send, Local: endpoint.Segment{MR: x.Memory, Len: messageBytes}}, nil
	}
	return testbed.Send(ctx, qp, math.MaxInt, 4, next, func(int) error { return nil })
}

// receive posts a buffer, and posts it again after each message and the host's pause.
func (x *host) receive(ctx context.Context, qp endpoint.QP) error {
	buffer := endpoint.RecvWR{Local: endpoint.Segment{MR: x.Memory, Len: messageBytes}}
	for range 8 {
		if _, err := qp.PostRecv(buffer); err != nil {
			return err
		}
	}
	for {
		var wc [1]endpoint.Completion
		if _, err := qp.Poll(ctx, wc[:]); err != nil {
			return err
		}
		if err := wc[0].Err(); err != nil {
			return err
		}
		if d := x.pause.Load(); d > 0 {
			select {
			case <-time.After(time.Duration(d)):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if _, err := qp.PostRecv(buffer); err != nil {
			return err
		}
	}
}

// Slow has host i pause before it takes the next message; 0 ends that.
func (l *Lab) Slow(i int, pause time.Duration) { l.hosts[i].pause.Store(int64(pause)) }

// Kill ends host i's queue pairs and its part in the registration, without a word to anybody.
func (l *Lab) Kill(i int) {
	x := l.hosts[i]
	x.stop()
	_ = x.Close()
	<-x.stopped
}

// Check fails the test if the source, or a receiver that was not killed, has failed.
func (l *Lab) Check() {
	l.t.Helper()
	select {
	case err := <-l.failed:
		l.t.Fatalf("the traffic has ended: %v", err)
	default:
	}
}

// Gleam runs the program gleam of a path in the switch's namespace, and returns what it writes
// with its exit code.
func (l *Lab) Gleam(path string, args ...string) (output string, code int) {
	l.t.Helper()
	var out bytes.Buffer
	c := exec.Command(path, append([]string{"--socket", l.Socket()}, args...)...)
	c.Stdout = &out
	p, err := l.Star.Switch.Start(c)
	if err != nil {
		l.t.Fatal(err)
	}
	_ = p.Wait() // the exit code says it
	return out.String(), c.ProcessState.ExitCode()
}
