// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/lab"
)

// admitTimeout is longer than the registrar's time for an update.
const admitTimeout = 10 * time.Second

// admit has a host that is not in the group join it, where there is one. It returns false if the
// group has ended. An update that is refused or fails changes nothing: the transfers that follow
// see to that.
func (l *life) admit() bool {
	var free []*host
	for _, h := range l.r.hosts {
		if !slices.ContainsFunc(l.live(), func(m *member) bool { return m.host == h }) {
			free = append(free, h)
		}
	}
	if len(free) == 0 {
		return true
	}
	m := &member{host: free[l.rng.IntN(len(free))]}
	l.register(append(slices.Clone(l.members), m))
	x, err := l.equip(m)
	if errors.Is(err, errKilled) {
		l.register(l.members)
		return true
	}
	if err != nil {
		return false
	}
	master := l.members[0]
	ln, err := lab.In(master.NS, func() (net.Listener, error) { return net.Listen("tcp", netip.AddrPortFrom(master.IPv4, 0).String()) })
	if err != nil {
		l.r.wrong("%s: %s: %v", l.name, master.Name, err)
		return false
	}
	defer ln.Close()
	ctx, cancel := context.WithTimeout(context.Background(), admitTimeout)
	defer cancel()
	err = session.Each(2, func(i int) error {
		if i == 0 {
			err := master.NS.Do(func() error { return l.master.UpdateFrom(ctx, ln) })
			if err != nil {
				cancel()
			}
			return err
		}
		return m.NS.Do(func() (err error) {
			m.group, err = endpoint.Member(ctx, endpoint.MemberConfig{Local: x.Local(), Master: ln.Addr().String()})
			return err
		})
	})
	l.r.note("%s: %s joins: %v", l.name, m.Name, err)
	l.members = append(l.members, m)
	switch {
	case err == nil:
		l.r.count("members joined")
	case strings.Contains(err.Error(), envelope.NotInTrees.String()):
		l.r.count("updates refused")
	default:
		l.r.count("updates failed")
	}
	m.left = err != nil
	return !l.over()
}
