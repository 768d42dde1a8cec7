// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/gleam-rdma/gleam/host/endpoint/oob"
)

// MemberConfig configures the join to a group that another host masters. Exactly one of
// Master and Listener must be set.
type MemberConfig struct {
	Local
	Master   string       // host:port at which the master listens; tried until ctx ends
	Listener net.Listener // the master connects to it; stays open
}

// Member joins a group: it sends the master its queue pair's connection state, connects
// the queue pair to the group that the master names, confirms the switch's notification,
// and returns when all members have confirmed. Sockets are opened in the network
// namespace of the calling thread.
//
// A member that gives up tells the master the reason, and a master its members: the error
// names the side that gave up.
func Member(ctx context.Context, cfg MemberConfig) (*Group, error) {
	g := newGroup()
	if err := g.joinAsMember(ctx, &cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("join as member: %w", err), g.release())
	}
	return g, nil
}

func (g *Group) joinAsMember(ctx context.Context, cfg *MemberConfig) error {
	if (cfg.Master == "") == (cfg.Listener == nil) {
		return errors.New("want either the address of a listening master, or a Listener for the master to connect to")
	}
	if err := cfg.open(g); err != nil {
		return err
	}
	x, err := cfg.meet(ctx, g.host.identity)
	if err != nil {
		return err
	}
	info := cfg.connInfo(g)
	described, err := x.Offer(ctx, info)
	if err != nil {
		_ = x.Close()
		return err
	}
	g.info = GroupInfo{
		IP: described.IP, QPN: described.QPN, PathMTU: described.PathMTU, Members: described.Members,
		Window: window(described.Window), TargetKey: described.TargetKey, App: described.App,
	}
	if err := g.prepare(ctx, info); err != nil {
		x.Fail(err)
		return err
	}
	if err := x.Ready(ctx); err != nil {
		err = fmt.Errorf("group %s: %w", g.info.IP, err)
		why := errors.New("it stopped waiting")
		if trouble := g.host.problem(g.info.IP); trouble != nil {
			err, why = fmt.Errorf("%w; here, %w", err, trouble), trouble
		}
		x.Fail(why)
		return err
	}
	return x.Close()
}

// prepare connects the queue pair and makes the host confirm the membership.
func (g *Group) prepare(ctx context.Context, info oob.ConnInfo) error {
	if err := g.connect(ctx); err != nil {
		return err
	}
	return g.host.join(g, membership(&g.info, info))
}

// meet returns a connection to a master that has proved that it has the key.
func (cfg *MemberConfig) meet(ctx context.Context, id *oob.Identity) (*oob.Member, error) {
	if cfg.Master != "" {
		x, err := oob.DialMaster(ctx, id, cfg.Master)
		if err != nil {
			return nil, fmt.Errorf("connect to the master at %s: %w", cfg.Master, err)
		}
		return x, nil
	}
	c, err := id.Accept(ctx, cfg.Listener, oob.Exchange)
	if err != nil {
		return nil, fmt.Errorf("wait for the master at %s: %w", cfg.Listener.Addr(), err)
	}
	return oob.NewMember(c), nil
}
