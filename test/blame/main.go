// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Blame is a host of the groups of the tests in this folder: the source of a group, or a receiver, with the habits
// that its standard input names.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/mcast"
)

// habits are what a host does.
type habits struct {
	IP        netip.Addr
	Interface string
	KeyID     envelope.KeyID
	Key       []byte
	Exchange  string // address at which the source listens
	Group     netip.Addr
	Members   int // receivers; 0: this host is one
	Evict     time.Duration
	Load      load
	Posts     posts
}

// load is how a source sends.
type load struct {
	Message  int           // bytes
	Depth    int           // the most messages that are posted and not complete
	Burst    int           // messages that are due at once
	Interval time.Duration // the time between bursts; 0: as many messages as Depth allows are always due
	Rate     int64         // the rate of its device, bits/s; 0: no bound
}

// posts is how a receiver posts its receives.
type posts struct {
	Depth int
	// After each Every messages the receiver posts none for Late. Every 0: it is never late.
	Every    int
	Late     time.Duration
	RNRTimer time.Duration // 0: the device's default
}

// sent is what a source has done, as it writes it in the end.
type sent struct {
	Messages int
	Seconds  float64
}

// timeout is the exponent of the queue pairs' retransmission timeout, 0.54 s.
const timeout = 17

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var h habits
	err := json.NewDecoder(os.Stdin).Decode(&h)
	if err == nil {
		err = h.run(ctx)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "blame:", err)
		os.Exit(1)
	}
}

func (h *habits) run(ctx context.Context) error {
	dev, err := soft.Open(soft.Config{Interface: h.Interface, Rate: h.Load.Rate})
	if err != nil {
		return err
	}
	defer dev.Close()
	mr, err := dev.RegisterMemory(make([]byte, h.Load.Message), 0x1000_0000, endpoint.LocalWrite)
	if err != nil {
		return err
	}
	local := endpoint.Local{
		Device: dev, Memory: mr, HostConfig: endpoint.HostConfig{Auth: envelope.Auth{Keys: envelope.Keys{h.KeyID: h.Key}, Send: h.KeyID}},
		QPConfig: endpoint.QPConfig{LocalIP: h.IP, SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN(), Timeout: timeout, RetryCount: 7, RNRRetry: 7, MinRNRTimer: h.Posts.RNRTimer},
	}
	buffer := endpoint.Segment{MR: mr, Len: h.Load.Message}
	if h.Members == 0 {
		return h.receive(ctx, local, buffer)
	}
	return h.send(ctx, local, buffer)
}

// send joins as the master, and sends until ctx ends.
func (h *habits) send(ctx context.Context, local endpoint.Local, buffer endpoint.Segment) error {
	l, err := net.Listen("tcp", h.Exchange)
	if err != nil {
		return err
	}
	m := endpoint.MasterConfig{Local: local, Listener: l, Members: h.Members, GroupIP: h.Group, PathMTU: 1024, SenderTimeout: timeout, SenderRetries: 7}
	if h.Evict > 0 {
		m.Policy, m.DeadAfter = mcast.Evict, h.Evict
	}
	g, err := endpoint.Master(ctx, m)
	if err != nil {
		return err
	}
	defer g.Close()
	fmt.Println("ready")
	var complete atomic.Int64
	free := make(chan struct{}, h.Load.Depth)
	failed := make(chan error, 1)
	go func() { failed <- poll(ctx, g.QP(), free, &complete) }()
	began := time.Now()
	if err = h.Load.post(ctx, g.QP(), buffer, free, failed); ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(sent{int(complete.Load()), time.Since(began).Seconds()}))
}

// post posts messages when they are due, and takes a place of free for each.
func (l *load) post(ctx context.Context, qp endpoint.QP, buffer endpoint.Segment, free chan<- struct{}, failed <-chan error) error {
	due := time.Now()
	for n := 0; ; n++ {
		if l.Interval > 0 && n%l.Burst == 0 {
			select {
			case <-time.After(time.Until(due)):
			case err := <-failed:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
			// Bursts that the group was too slow for are left out.
			if due = due.Add(l.Interval); time.Until(due) < 0 {
				due = time.Now()
			}
		}
		select {
		case free <- struct{}{}:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
		if _, err := qp.PostSend(endpoint.SendWR{Op: endpoint.Send, Local: buffer}); err != nil {
			return err
		}
	}
}

// poll gives back a place of free for each completion.
func poll(ctx context.Context, qp endpoint.QP, free <-chan struct{}, complete *atomic.Int64) error {
	var wc [16]endpoint.Completion
	for {
		n, err := qp.Poll(ctx, wc[:])
		if err != nil {
			return err
		}
		for i := range n {
			if err := wc[i].Err(); err != nil {
				return err
			}
			complete.Add(1)
			<-free
		}
	}
}

// receive joins as a member, and receives until ctx ends.
func (h *habits) receive(ctx context.Context, local endpoint.Local, buffer endpoint.Segment) error {
	qp, err := local.Device.CreateQP(local.QPConfig)
	if err != nil {
		return err
	}
	wr := endpoint.RecvWR{Local: buffer}
	for range h.Posts.Depth { // the first message may come before the join has ended
		if _, err := qp.PostRecv(wr); err != nil {
			return err
		}
	}
	local.QP = qp
	g, err := endpoint.Member(ctx, endpoint.MemberConfig{Local: local, Master: h.Exchange})
	if err != nil {
		return err
	}
	defer g.Close()
	fmt.Println("ready")
	for n := 1; ; n++ {
		var wc [1]endpoint.Completion
		if _, err := qp.Poll(ctx, wc[:]); err != nil {
			return err
		}
		if err := wc[0].Err(); err != nil {
			return err
		}
		if h.Posts.Every > 0 && n%h.Posts.Every == 0 {
			select {
			case <-time.After(h.Posts.Late):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if _, err := qp.PostRecv(wr); err != nil {
			return err
		}
	}
}
