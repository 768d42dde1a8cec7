// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

const (
	pageAddress   = "127.0.0.1:8477" // the address of the live page: in the switch's namespace, and in front of it unless told
	pageRate      = 50_000_000       // bits a second that the source sends, so that the machine has CPU for a browser
	pageMembers   = 5                // members of the group, unless told
	pagePolicy    = "evict"          // unless told
	pageDeadAfter = 10 * time.Second // a silent receiver is dead: long enough to look at it
	pageTimeout   = 19               // 2 s: the source waits longer for an acknowledgement than a receiver may be silent
	drainTime     = time.Second      // the time for what receivers have to take after a round
)

// checkWeb reports a flag that does not go with --web.
func (o *Options) checkWeb(f *pflag.FlagSet) error {
	if o.Web == "" {
		return nil
	}
	for _, name := range []string{"topology", "rotate", "kill-member", "targets", "keep", "output"} {
		if f.Changed(name) {
			return fmt.Errorf("--web shows one group until it is interrupted: not with --%s", name)
		}
	}
	if host, _, err := net.SplitHostPort(o.Web); err != nil {
		return fmt.Errorf("--web %q: want an address and a port of this machine, such as %s", o.Web, pageAddress)
	} else if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("--web %q: want a loopback address: the demo's page is open to whoever reaches it", o.Web)
	}
	if !f.Changed("members") {
		o.Members = pageMembers
	}
	if !f.Changed("policy") {
		o.Policy = pagePolicy
	}
	return nil
}

// showPage serves the live page of the switch, and has the source send the payload to the group again
// and again, until ctx ends. Keys break things meanwhile.
func (r *run) showPage(ctx context.Context) (err error) {
	l, err := net.Listen("tcp", r.opts.Web)
	if err != nil {
		return fmt.Errorf("the address of the live page: %w; another one: --web=127.0.0.1:0", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.testbed.Star.Switch.Relay(l, pageAddress) }()
	defer func() { err = errors.Join(err, l.Close(), <-ended) }()
	if err := r.join(ctx); err != nil {
		return fmt.Errorf("%w\nwhat gleamd said:\n%s", err, r.said())
	}
	r.log.printf("group %s registered: %d members, and host %s sends to it at %d Mbit/s", r.group, len(r.hosts), r.hosts[0].Name, pageRate/1_000_000)
	r.log.printf("the live page: http://%s/\nthe same in another terminal: sudo gleam --socket %s top\nCtrl-C ends it, and removes the lab", l.Addr(), r.testbed.Socket())
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	b := newBreaker(r, quit)
	defer b.mend() // a device that is stopped could not be closed
	keys, restore := readKeys(os.Stdin)
	defer restore()
	b.help()
	go b.obey(ctx, keys)
	return r.sendOn(ctx)
}

// sendOn sends rounds until ctx ends, or the group does.
func (r *run) sendOn(ctx context.Context) error {
	for rounds := 0; ; rounds++ {
		err := r.round(ctx)
		if ctx.Err() != nil {
			r.log.printf("%s sent to each receiver, and more; every byte of it arrived", sizeString(int64(rounds)*r.plan.Len))
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// round sends the payload once, and compares what the members have that are there in the end.
func (r *run) round(ctx context.Context) error {
	drain, stop := context.WithCancel(ctx)
	var draining sync.WaitGroup
	defer draining.Wait()
	defer stop()
	for _, h := range r.hosts[1:] {
		q, err := r.inbox(h, h.group.QP())
		if err != nil {
			return err
		}
		q.killed = true // what becomes of receives does not matter, as hosts are killed: what arrived does
		_ = q.prime()
		draining.Go(func() { _ = q.drain(drain) })
	}
	if err := r.send(ctx, r.hosts[0], nil); err != nil {
		return r.explain(err)
	}
	time.AfterFunc(drainTime, stop)
	draining.Wait()
	return r.compare(ctx)
}

// compare looks at the bytes of all who are members; while gleamd does not answer it does not know them.
func (r *run) compare(ctx context.Context) error {
	g, err := r.client.Group(ctx, r.group)
	if err != nil {
		return nil
	}
	for i := range g.Members {
		for _, h := range r.hosts[1:] {
			if g.Members[i].IP == h.IP && g.Members[i].Live && digest(h.mem) != r.data.sum {
				return fmt.Errorf("receiver %s does not have the sender's bytes", h.Name)
			}
		}
	}
	return nil
}
