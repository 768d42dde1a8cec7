// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/internal/cli/port"
)

// Depths of queues, in work requests.
const (
	recvDepth   = 512 // receives that are posted for messages
	answerDepth = 256 // receives for the answers of one receiver
	answerBytes = 64  // answers of one receiver under way: fewer than answerDepth, so that each finds a receive
)

// Virtual addresses of lanes' memory and of groups' windows. They are aligned to pages,
// as the memory itself is.
const (
	memoryBase = 0x7000_0000_0000
	windowBase = 0x5000_0000_0000
	laneStride = 1 << 36
)

// peer is the common part of sender and receiver.
type peer struct {
	params Params
	local  *Local
	port   *port.Port
	host   *endpoint.Host

	ctx    context.Context // ends when either side gives up
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // goroutines that end with ctx

	qps    []endpoint.QP
	groups []*endpoint.Group

	evicted func(ip netip.Addr) bool // a function that goes on without a receiver, if it may; nil: none may
}

func newPeer(ctx context.Context, local *Local) *peer {
	s := &peer{local: local}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s
}

// step bounds a step of the preparations.
func (s *peer) step(what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(s.ctx, s.local.Timeout, fmt.Errorf("%s took longer than %v", what, s.local.Timeout))
}

// openPort opens the device for a test of params, beside the connection to the other side.
func openPort(l *Local, params *Params, beside netip.Addr, v6 bool) (*port.Port, error) {
	c := port.Config{Backend: l.Backend, Interface: l.Interface, Device: l.Device, Beside: beside, IPv6: v6, Rate: int64(params.Rate)}
	if params.Congestion {
		c.Congestion = &dcqcn.Config{}
	}
	return port.Open(c)
}

// qpConfig returns a configuration with random PSNs.
func (s *peer) qpConfig(send, recv int) endpoint.QPConfig {
	return endpoint.QPConfig{
		LocalIP: s.port.IP, SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN(),
		MaxSend: send, MaxRecv: recv, Timeout: s.local.QPTimeout, RetryCount: 7, RNRRetry: 7,
	}
}

// qp makes a queue pair.
func (s *peer) qp(send, recv int) (endpoint.QP, error) {
	q, err := s.port.CreateQP(s.qpConfig(send, recv))
	if err == nil {
		s.qps = append(s.qps, q)
	}
	return q, err
}

// connect connects q to the queue pair that the other side describes.
func (s *peer) connect(ctx context.Context, q endpoint.QP, to *qpState) error {
	r, err := to.remote(s.params.PathMTU)
	if err != nil {
		return err
	}
	return q.Connect(ctx, r)
}

// endGrace is the time by which the sender's message about the end of the test may lag
// behind the end of the group: the two take different paths.
const endGrace = 2 * time.Second

// watch ends the test when the group ends.
func (s *peer) watch(g *endpoint.Group) {
	s.groups = append(s.groups, g)
	s.wg.Go(func() {
		for {
			select {
			case e := <-g.Events():
				switch e.Kind {
				case endpoint.Joined, endpoint.Stalled, endpoint.Resumed:
				case endpoint.MemberLeft, endpoint.Evicted:
					if e.Kind == endpoint.Evicted && s.evicted != nil && s.evicted(e.Member) {
						continue
					}
					if e.Kind == endpoint.Evicted && s.params.DeadAfter > 0 && g.Peers() == nil {
						s.cancel(fmt.Errorf("group %s: evicted, %s: %w", g.Info().IP, e.Cause(), errEvicted))
						continue
					}
					s.cancel(fmt.Errorf("group %s: %v: %v %v", g.Info().IP, e.Kind, e.Member, e.Reason))
				default:
					if e.Reason == envelope.Forgotten {
						if g.Peers() != nil { // the master's; a receiver hears it from the sender
							s.cancel(fmt.Errorf("group %s: %v: %w", g.Info().IP, e.Reason, errAgain))
						}
						continue
					}
					if e.Kind == endpoint.Ended {
						select {
						case <-time.After(endGrace):
						case <-s.ctx.Done():
							return
						}
					}
					s.cancel(errors.Join(fmt.Errorf("group %s %v: %v", g.Info().IP, e.Kind, e.Reason), e.Err))
				}
			case <-s.ctx.Done():
				return
			}
		}
	})
}

// close ends everything: goroutines, groups, queue pairs, the device.
func (s *peer) close() error {
	s.cancel(errors.New("the test is over"))
	s.wg.Wait()
	errs := make([]error, len(s.groups))
	var closing sync.WaitGroup
	for i, g := range s.groups {
		closing.Go(func() { errs[i] = g.Close() })
	}
	closing.Wait()
	for _, q := range s.qps {
		errs = append(errs, q.Close())
	}
	if s.host != nil {
		errs = append(errs, s.host.Close())
	}
	if s.port != nil {
		errs = append(errs, s.port.Close())
	}
	return errors.Join(errs...)
}

// stalled watches m during a run, and ends the test if no message gets through within the
// timeout. explain adds details to the error.
func (s *peer) stalled(ctx context.Context, m *meter, explain func() string) {
	tick := time.NewTicker(s.local.Timeout / 8)
	defer tick.Stop()
	seen, since := -1, time.Now()
	for {
		select {
		case now := <-tick.C:
			if n := m.progress(); n != seen {
				seen, since = n, now
			} else if now.Sub(since) >= s.local.Timeout {
				s.cancel(fmt.Errorf("no message has got through for %v, after %d in this run: %s", s.local.Timeout, n, explain()))
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
