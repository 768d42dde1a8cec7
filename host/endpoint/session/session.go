// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package session forms groups of hosts that are all in one program's hands: the
// demo, the benchmarks, the tests and the workloads. An application whose hosts run
// programs of their own uses package endpoint directly.
package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// Participant is a host that takes part in a group.
type Participant struct {
	Name  string // the name in errors
	Local endpoint.Local
	// Do runs a function in the host's network namespace; nil: in the caller's.
	Do func(func() error) error
}

func (p *Participant) do(f func() error) error {
	if p.Do == nil {
		return f()
	}
	return p.Do(f)
}

// Join has all participants form a group, the first as its master, whose exchange
// is at an address of its namespace, or at m's Listener if there is one. It sets
// Local and Members of m. When one fails, the others are cancelled. Groups are by
// participant, nil for one that failed; the error names all that did.
func Join(ctx context.Context, at netip.AddrPort, m endpoint.MasterConfig, all []Participant) ([]*endpoint.Group, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	groups := make([]*endpoint.Group, len(all))
	if m.Listener == nil {
		listen := func() (err error) { m.Listener, err = net.Listen("tcp", at.String()); return err }
		if err := all[0].do(listen); err != nil {
			return groups, fmt.Errorf("host %s: %w", all[0].Name, err)
		}
		defer m.Listener.Close()
	}
	m.Local, m.Members = all[0].Local, len(all)-1
	err := Each(len(all), func(i int) error {
		err := all[i].do(func() (err error) {
			if i == 0 {
				groups[i], err = endpoint.Master(ctx, m)
			} else {
				groups[i], err = endpoint.Member(ctx, endpoint.MemberConfig{Local: all[i].Local, Master: m.Listener.Addr().String()})
			}
			return err
		})
		if err != nil {
			cancel()
			return fmt.Errorf("host %s: %w", all[i].Name, err)
		}
		return nil
	})
	return groups, err
}

// Leave closes a group at its master, the first, which ends it, and then at its
// members, which hear of it. Groups may be nil.
func Leave(groups []*endpoint.Group) error {
	closeOne := func(i int) error {
		if groups[i] == nil {
			return nil
		}
		return groups[i].Close()
	}
	err := closeOne(0)
	return errors.Join(err, Each(len(groups)-1, func(i int) error { return closeOne(i + 1) }))
}

// Pair connects two queue pairs, as any RC application does.
func Pair(ctx context.Context, a, b endpoint.QP, pathMTU int) error {
	for _, c := range []struct{ from, to endpoint.QP }{{a, b}, {b, a}} {
		peer := c.to.Info()
		if err := c.from.Connect(ctx, endpoint.Remote{IP: peer.IP, QPN: peer.QPN, PathMTU: pathMTU, RQPSN: peer.SQPSN}); err != nil {
			return err
		}
	}
	return nil
}

// Each runs f for 0 to n-1 at once, and returns their errors in this order.
func Each(n int, f func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}
