// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"context"
	"fmt"

	"github.com/vishvananda/netlink"
)

// Watch sends on changed (which should have room for one: a change that is
// already announced is not announced twice) whenever a neighbour, a forwarding
// database entry, a route or an interface changes, until ctx ends. It returns
// once the subscriptions stand, so that no change after it is missed.
func Watch(ctx context.Context, changed chan<- struct{}, failed func(error)) error {
	done := make(chan struct{})
	neigh := make(chan netlink.NeighUpdate, 64)
	link := make(chan netlink.LinkUpdate, 64)
	route := make(chan netlink.RouteUpdate, 64)
	subscribe := []struct {
		what string
		do   func() error
	}{
		{"neighbours", func() error {
			return netlink.NeighSubscribeWithOptions(neigh, done, netlink.NeighSubscribeOptions{ErrorCallback: failed})
		}},
		{"links", func() error {
			return netlink.LinkSubscribeWithOptions(link, done, netlink.LinkSubscribeOptions{ErrorCallback: failed})
		}},
		{"routes", func() error {
			return netlink.RouteSubscribeWithOptions(route, done, netlink.RouteSubscribeOptions{ErrorCallback: failed})
		}},
	}
	for _, s := range subscribe {
		if err := s.do(); err != nil {
			close(done)
			return fmt.Errorf("watch %s by netlink: %w", s.what, err)
		}
	}
	go func() {
		defer close(done)
		for {
			var ok bool
			select {
			case <-ctx.Done():
				return
			case _, ok = <-neigh:
			case _, ok = <-link:
			case _, ok = <-route:
			}
			if !ok {
				return // the library closes its channel on a socket error, after telling failed
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()
	return nil
}
