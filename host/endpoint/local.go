// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint/oob"
	"github.com/gleam-rdma/gleam/mcast"
)

// Local describes a host's part in a group.
type Local struct {
	// QP is a queue pair in state INIT, that is, created and not connected;
	// joining connects it. nil makes one of Device by QPConfig, whose zero value
	// has random PSNs; it belongs to the Group.
	QP       QP
	Device   Device
	QPConfig QPConfig
	// Memory is the region, registered with RemoteWrite, for WRITEs to the group. Its
	// addresses may differ from those of other members. nil: none.
	Memory MR
	// ReceiveOnly registers the host as one that never sends to the group: the switch
	// drops its data, and its queue pair fails if it sends.
	ReceiveOnly bool
	// Host answers envelopes for the queue pair's address. nil makes one by
	// HostConfig; it belongs to the Group.
	Host       *Host
	HostConfig HostConfig
	// App is JSON of at most oob.MaxApp bytes that the exchange passes to the other side.
	App json.RawMessage
}

// open prepares g's queue pair and host.
func (l *Local) open(g *Group) error {
	g.qp, g.host = l.QP, l.Host
	if g.qp == nil {
		if l.Device == nil {
			return errors.New("neither a QP nor a Device is given")
		}
		cfg := l.QPConfig
		if cfg.SQPSN == 0 && cfg.RQPSN == 0 {
			cfg.SQPSN, cfg.RQPSN = RandomPSN(), RandomPSN()
		}
		qp, err := l.Device.CreateQP(cfg)
		if err != nil {
			return err
		}
		g.qp, g.ownQP = qp, true
	}
	ip := g.qp.Info().IP
	if g.host == nil {
		h, err := NewHost(ip, l.HostConfig)
		if err != nil {
			return err
		}
		g.host, g.ownHost = h, true
	}
	if g.host.ip != ip {
		return fmt.Errorf("the queue pair's address is %s, the Host's %s", ip, g.host.ip)
	}
	return nil
}

// connInfo describes g's queue pair and l's memory to the master.
func (l *Local) connInfo(g *Group) oob.ConnInfo {
	i := g.qp.Info()
	c := oob.ConnInfo{IP: i.IP, QPN: i.QPN, SQPSN: i.SQPSN, RQPSN: i.RQPSN, ReceiveOnly: l.ReceiveOnly, App: l.App}
	if l.Memory != nil {
		c.Window = &oob.Window{VA: l.Memory.Addr(), Len: uint64(l.Memory.Len()), RKey: l.Memory.RKey()}
	}
	return c
}

// connectTries bounds how often a queue pair is connected whose peer's address has no
// answer. Within the second that a try lasts a kernel asks once, and a lost packet of that
// exchange is no reason to fail a join.
const connectTries = 3

// connect connects g's queue pair to the group.
func (g *Group) connect(ctx context.Context) error {
	to := Remote{IP: g.info.IP, QPN: g.info.QPN, PathMTU: g.info.PathMTU, RQPSN: g.qp.Info().RQPSN}
	for try := 1; ; try++ {
		err := g.qp.Connect(ctx, to)
		if !errors.Is(err, unix.ETIMEDOUT) || try == connectTries || ctx.Err() != nil {
			return err
		}
	}
}

// membership is the Membership that this host confirms to the switch.
func membership(g *GroupInfo, c oob.ConnInfo) envelope.Membership {
	return envelope.Membership{MemberRecord: record(&c), Group: g.IP, VirtualQPN: g.QPN, PathMTU: g.PathMTU}
}

func window(w *oob.Window) mcast.Window {
	if w == nil {
		return mcast.Window{}
	}
	return mcast.Window{Base: w.VA, Len: w.Len, RKey: w.RKey}
}
