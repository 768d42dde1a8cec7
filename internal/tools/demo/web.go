// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/spf13/pflag"
)

const (
	pageAddress = "127.0.0.1:8477" // of the live page: in the switch's namespace, and in front of it unless told
	pageRate    = 50_000_000       // bits a second that the source sends, so that the machine has CPU for a browser
	pageMembers = 5                // of the group, unless told
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
	return nil
}

// showPage serves the live page of the switch, and has the source send the payload to the group again
// and again, until ctx ends.
func (r *run) showPage(ctx context.Context) (res *Result, err error) {
	l, err := net.Listen("tcp", r.opts.Web)
	if err != nil {
		return nil, fmt.Errorf("the address of the live page: %w; another one: --web=127.0.0.1:0", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.testbed.Star.Switch.Relay(l, pageAddress) }()
	defer func() { err = errors.Join(err, l.Close(), <-ended) }()
	if err := r.join(ctx); err != nil {
		return nil, fmt.Errorf("%w\nwhat gleamd said:\n%s", err, r.said())
	}
	say := r.log
	say.printf("group %s registered: %d members, and host %s sends to it at %d Mbit/s", r.group, len(r.hosts), r.hosts[0].Name, pageRate/1_000_000)
	say.printf("the live page: http://%s/\nCtrl-C ends it, and removes the lab", l.Addr())
	r.log = &progress{w: io.Discard}
	for rounds := 0; ; rounds++ {
		res = r.result()
		err := r.sendByGroup(ctx, res)
		if ctx.Err() != nil {
			say.printf("%s sent to each receiver, and more; every byte of it arrived", sizeString(int64(rounds)*r.plan.total))
			return res, nil
		}
		if err != nil {
			return nil, err
		}
		for _, v := range res.Receivers {
			if !v.OK {
				return res, fmt.Errorf("receiver %s does not have the sender's bytes", v.Name)
			}
		}
	}
}
