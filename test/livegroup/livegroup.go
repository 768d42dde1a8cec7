// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package livegroup gives tests a lab with gleamd and a group in which messages flow, whose
// receivers can be made slow, or ended.
package livegroup

import (
	"bytes"
	"context"
	"net/netip"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/labtest"
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
	dev     *soft.Device
	envs    *endpoint.Host
	mr      endpoint.MR
	pause   atomic.Int64 // in nanoseconds, before a buffer is posted again
	stop    context.CancelFunc
	stopped chan struct{}
}

// New makes a lab and its group. Messages flow until the test ends.
func New(t testing.TB, c Config) *Lab {
	t.Helper()
	labtest.Require(t)
	if c.DeadAfter == 0 {
		c.DeadAfter = 5 * time.Second
	}
	conf := testbed.Config{Dir: t.TempDir(), Gleamd: c.Gleamd, More: c.More}
	conf.Star.Hosts = c.Hosts
	bed, err := testbed.Build(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("gleamd: %s", bed.Gleamd.Output())
		}
		if err := bed.Close(); err != nil {
			t.Error(err)
		}
	})
	l := &Lab{Testbed: bed, Group: netip.MustParseAddr("10.77.254.1"), t: t, failed: make(chan error, c.Hosts)}
	l.join(&c)
	return l
}

// join makes the group and starts its traffic.
func (l *Lab) join(c *Config) {
	l.t.Helper()
	const timeout, retries = 19, 7 // 2 s: receivers are evicted before the source gives up
	hostConfig := endpoint.HostConfig{Auth: envelope.Auth{Keys: envelope.Keys{testbed.KeyID: l.Key}, Send: testbed.KeyID}, Deadline: 20 * time.Second}
	var all []session.Participant
	for i := range l.Star.Hosts {
		h, x := &l.Star.Hosts[i], &host{stopped: make(chan struct{})}
		conf := soft.Config{Interface: h.Interface, Seed: uint64(i + 1)}
		if i == 0 {
			conf.Rate = c.Rate
		}
		err := h.NS.Do(func() (err error) {
			if x.dev, err = soft.Open(conf); err != nil {
				return err
			}
			x.envs, err = endpoint.NewHost(h.IPv4, hostConfig)
			return err
		})
		if err != nil {
			l.t.Fatal(err)
		}
		l.hosts = append(l.hosts, x)
		if x.mr, err = x.dev.RegisterMemory(make([]byte, messageBytes), 0x1000_0000, endpoint.LocalWrite); err != nil {
			l.t.Fatal(err)
		}
		all = append(all, session.Participant{Name: h.Name, Do: h.NS.Do, Local: endpoint.Local{
			Device: x.dev, Memory: x.mr, Host: x.envs, HostConfig: hostConfig,
			QPConfig: endpoint.QPConfig{LocalIP: h.IPv4, SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN(), MaxSend: 16, MaxRecv: 16, Timeout: timeout, RetryCount: retries, RNRRetry: 7},
		}})
	}
	m := endpoint.MasterConfig{GroupIP: l.Group, Policy: mcast.Evict, DeadAfter: c.DeadAfter, SenderTimeout: timeout, SenderRetries: retries, PathMTU: 1024}
	groups, err := session.Join(l.t.Context(), netip.AddrPortFrom(l.Star.Hosts[0].IPv4, 7000), m, all)
	if err != nil {
		l.t.Fatal(err)
	}
	for i, x := range l.hosts {
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
	var wc [4]endpoint.Completion
	for n := 0; ; {
		if n < 4 { // under way
			if _, err := qp.PostSend(endpoint.SendWR{Op: endpoint.Send, Local: endpoint.Segment{MR: x.mr, Len: messageBytes}}); err != nil {
				return err
			}
			n++
			continue
		}
		k, err := qp.Poll(ctx, wc[:])
		if err != nil {
			return err
		}
		for i := range k {
			if err := wc[i].Err(); err != nil {
				return err
			}
		}
		n -= k
	}
}

// receive posts a buffer, and posts it again after each message and the host's pause.
func (x *host) receive(ctx context.Context, qp endpoint.QP) error {
	buffer := endpoint.RecvWR{Local: endpoint.Segment{MR: x.mr, Len: messageBytes}}
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
	x.dev.Close()
	x.envs.Close()
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
