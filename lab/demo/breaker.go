// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
)

const (
	lossByKey = 0.05
	slowLink  = linkrate.Rate(10_000_000) // below pageRate
)

// breaker breaks what the live page shows, as keys say.
type breaker struct {
	run  *run
	quit func() // ends the demo

	mu   sync.Mutex
	at   int // receiver that keys are about: its number in run.hosts
	host []breakage
}

// breakage is what is broken of a host.
type breakage struct {
	loses, slow, unplugged, killed bool
	resume                         func() // nil: it is not stopped
}

// keyAction is what a key does. An action of a receiver returns what has happened.
type keyAction struct {
	key  byte
	text string
	do   func(*breaker, context.Context, *host, *breakage) (string, error)
}

var keyActions = []keyAction{
	{'l', "lose 5 % of what is sent to it; again: no more", (*breaker).lose},
	{'s', "slow its link down to 10 Mbit/s; again: no more", (*breaker).slowDown},
	{'p', "stop it (pause), as SIGSTOP does; again: it goes on", (*breaker).pause},
	{'k', "kill it, for good", (*breaker).kill},
	{'u', "unplug its link; again: plug it in", (*breaker).unplug},
}

func newBreaker(r *run, quit func()) *breaker {
	return &breaker{run: r, quit: quit, at: min(2, len(r.hosts)-1), host: make([]breakage, len(r.hosts))}
}

// help prints what the keys do.
func (b *breaker) help() {
	var text strings.Builder
	fmt.Fprintf(&text, "keys, for receiver %s (%s at port %s); the page shows what each does:\n", b.run.hosts[b.at].Name, b.run.hosts[b.at].IP, b.run.hosts[b.at].Port)
	for _, a := range keyActions {
		fmt.Fprintf(&text, "  %c  %s\n", a.key, a.text)
	}
	fmt.Fprintf(&text, "  n  take the next receiver; 2 to %d: that of the number\n  r  kill gleamd, and start it again\n  w  all well again\n  ?  these keys       q  end", min(9, len(b.run.hosts)))
	b.run.log.printf("%s", text.String())
}

// obey does what keys say, until ctx ends.
func (b *breaker) obey(ctx context.Context, keys <-chan byte) {
	for {
		select {
		case k := <-keys:
			if err := b.key(ctx, k); err != nil && ctx.Err() == nil {
				b.run.log.printf("%c: %v", k, err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// key does what one key says. Others than those of help do nothing.
func (b *breaker) key(ctx context.Context, k byte) error {
	switch {
	case k == '?' || k == 'h':
		b.help()
	case k == 'q':
		b.quit()
	case k == 'n':
		b.take(b.at%(len(b.run.hosts)-1) + 1)
	case k >= '2' && int(k-'1') < len(b.run.hosts) && k <= '9':
		b.take(int(k - '1'))
	case k == 'r':
		return b.restart(ctx)
	case k == 'w':
		b.run.log.printf("all that can be is well again")
		return b.mend()
	}
	for _, a := range keyActions {
		if a.key != k {
			continue
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		h, x := b.run.hosts[b.at], &b.host[b.at]
		if x.killed {
			return fmt.Errorf("%s is dead: n takes the next receiver", h.Name)
		}
		said, err := a.do(b, ctx, h, x)
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		b.run.log.printf("%s: %s", h.Name, said)
	}
	return nil
}

func (b *breaker) take(at int) {
	b.at = at
	h := b.run.hosts[at]
	b.run.log.printf("the keys are about %s (%s at port %s) now", h.Name, h.IP, h.Port)
}

func (b *breaker) lose(_ context.Context, h *host, x *breakage) (string, error) {
	m := soft.LossModel{Rate: lossByKey, Seed: b.run.opts.Seed}
	if x.loses {
		m.Rate = 0
	}
	if x.resume != nil {
		return "", errors.New("it is stopped: p has it go on first")
	}
	if err := h.Device.SetInboundLoss(m); err != nil {
		return "", err
	}
	if x.loses = !x.loses; !x.loses {
		return "nothing is lost any more", nil
	}
	return fmt.Sprintf("%.0f %% of what is sent to it is lost: the switch sends it again, and the group goes on", 100*lossByKey), nil
}

func (b *breaker) slowDown(ctx context.Context, h *host, x *breakage) (string, error) {
	rate := slowLink
	if x.slow {
		rate = 0
	}
	if err := b.run.client.SetPort(ctx, h.Port, &api.SetPort{Rate: &rate}); err != nil {
		return "", err
	}
	if x.slow = !x.slow; !x.slow {
		return "port " + h.Port + " has no limit any more", nil
	}
	return fmt.Sprintf("port %s sends at %s at most: the whole group is as fast as that", h.Port, rate), nil
}

func (b *breaker) pause(_ context.Context, h *host, x *breakage) (string, error) {
	if x.resume != nil {
		x.resume()
		x.resume = nil
		return "it goes on", nil
	}
	resume, err := h.Device.Suspend()
	if err != nil {
		return "", err
	}
	x.resume = resume
	said := "it is stopped: the group stalls"
	if b.run.opts.Policy != "strict" {
		said += fmt.Sprintf(", and goes on without it after %v, unless p has it go on before", pageDeadAfter)
	}
	return said, nil
}

func (b *breaker) kill(_ context.Context, h *host, x *breakage) (string, error) {
	left := 0
	for i := range b.host[1:] {
		if !b.host[1+i].killed {
			left++
		}
	}
	if left == 1 {
		return "", errors.New("it is the last receiver: it stays")
	}
	if x.resume != nil {
		x.resume()
		x.resume = nil
	}
	x.killed = true
	_ = h.Device.Close() // the device is dead, even if closing its sockets fails
	said := "it is dead: the group stalls"
	if b.run.opts.Policy != "strict" {
		said += fmt.Sprintf(", and goes on without it after %v", pageDeadAfter)
	}
	return said, nil
}

func (b *breaker) unplug(_ context.Context, h *host, x *breakage) (string, error) {
	set := b.run.testbed.Star.Switch.SetDown
	if x.unplugged {
		set = b.run.testbed.Star.Switch.SetUp
	}
	if err := set(h.Port); err != nil {
		return "", err
	}
	if x.unplugged = !x.unplugged; !x.unplugged {
		return "port " + h.Port + " is up again", nil
	}
	return "port " + h.Port + " is down: the group stalls, as its link carries nothing", nil
}

// restart kills gleamd and starts it again. Its state file has the group.
func (b *breaker) restart(ctx context.Context) error {
	b.run.log.printf("gleamd is killed, and starts again: the group goes on where it was, and the page comes back by itself")
	if err := b.run.testbed.Gleamd.Kill(); err != nil {
		return err
	}
	return b.run.testbed.Gleamd.Start(ctx)
}

// mend undoes what can be undone.
func (b *breaker) mend() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for i := range b.host {
		h, x := b.run.hosts[i], &b.host[i]
		if x.resume != nil {
			x.resume()
		}
		if x.loses && !x.killed {
			errs = append(errs, h.Device.SetInboundLoss(soft.LossModel{}))
		}
		if x.slow {
			errs = append(errs, b.run.client.SetPort(context.Background(), h.Port, &api.SetPort{Rate: new(linkrate.Rate)}))
		}
		if x.unplugged {
			errs = append(errs, b.run.testbed.Star.Switch.SetUp(h.Port))
		}
		*x = breakage{killed: x.killed}
	}
	return errors.Join(errs...)
}
