// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/mcast"
)

const (
	windowBase = 0x5000_0000_0000 // the first address of a group's window
	lease      = 5 * time.Second  // the lease of a group: a switch that has forgotten it is noticed at a renewal
)

// lane sends the entries to some replicas: to all of them by one group, or with Unicast each to one. The gateway's
// mu guards it.
type lane struct {
	g       *Gateway
	groupIP netip.Addr
	members []*member

	session   *session
	next      uint64 // the entry to post
	completed uint64
}

// session is a group, from its registration to its end.
type session struct {
	group   *endpoint.Group
	over    bool
	warming bool // no entry is posted yet
}

// has reports whether a joined replica of the lane has the role.
func (l *lane) has(r role) bool {
	for _, m := range l.members {
		if m.joined && m.role == r {
			return true
		}
	}
	return false
}

// pump posts what may be posted. The caller holds mu.
func (l *lane) pump() {
	s, g := l.session, l.g
	if s == nil || s.over || s.warming || len(g.entries) == 0 {
		return
	}
	w := s.group.Info().Window
	for ; l.next <= g.seq && l.next-l.completed <= postDepth; l.next++ {
		e := g.entries[l.next-g.entries[0].seq]
		at := e.at % int64(g.cfg.Ring)
		_, err := s.group.QP().PostSend(endpoint.SendWR{
			ID: e.seq, Op: endpoint.WriteImm, Local: endpoint.Segment{MR: g.ring, Offset: int(at), Len: entryHead + int(e.payload())},
			Imm: uint32(at / entryAlign), RemoteAddr: w.Base + uint64(at), RKey: w.RKey,
		})
		if errors.Is(err, endpoint.ErrQueueFull) {
			return
		}
		if err != nil {
			l.broken(s, err)
			return
		}
	}
}

// collect takes the completions of a session.
func (l *lane) collect(ctx context.Context, s *session) {
	wc := make([]endpoint.Completion, 64)
	for {
		n, err := s.group.QP().Poll(ctx, wc)
		if err == nil {
			for i := range n {
				if err = wc[i].Err(); err != nil {
					n = i
					break
				}
			}
		}
		l.g.mu.Lock()
		if l.session == s && n > 0 {
			l.completed = max(l.completed, wc[n-1].ID) // a WRITE without an entry has 0
			l.pump()
			l.g.settle()
		}
		if err != nil {
			l.broken(s, err)
		}
		l.g.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// follow takes the events of a session.
func (l *lane) follow(ctx context.Context, s *session) {
	for {
		select {
		case e := <-s.group.Events():
			if e.Kind == endpoint.Evicted {
				l.g.mu.Lock()
				for _, m := range l.members {
					if m.ip == e.Member && m.joined && l.session == s {
						l.g.drop(m, m.link, fmt.Errorf("removed by the switch: %s", e.Cause()))
					}
				}
				l.g.mu.Unlock()
			}
		case <-s.group.Over():
			l.g.mu.Lock()
			l.broken(s, errors.New("the group is over"))
			l.g.mu.Unlock()
			return
		case <-ctx.Done():
			return
		}
	}
}

// broken ends a session; run makes the next one. The caller holds mu.
func (l *lane) broken(s *session, why error) {
	if s.over {
		return
	}
	s.over = true
	if l.session != s {
		return
	}
	l.session = nil
	if l.g.ctx.Err() == nil {
		l.g.cfg.Log(fmt.Sprintf("group %s is over: %v", l.groupIP, why))
	}
	for _, m := range l.members {
		m.joined = false
		if m.role == partial && !m.reported {
			m.dirty.add(m.todo)
		}
		if l.g.cfg.Unicast { // the other replicas' groups go on, so this one lacks writes now
			l.g.drop(m, m.link, why)
		}
	}
	l.g.changed.Broadcast()
}

// leave takes a replica that is gone out of the group. The caller holds mu.
func (l *lane) leave(m *member) {
	if !m.joined {
		return
	}
	m.joined = false
	s := l.session
	if s == nil {
		return
	}
	if !l.has(current) && (!l.g.cfg.Unicast || !l.has(partial)) {
		l.broken(s, errors.New("it has no current replica"))
		return
	}
	l.remove(s, m)
}

// remove has the switch remove a replica. The caller holds mu.
func (l *lane) remove(s *session, m *member) {
	done := make(chan struct{})
	m.removing = done
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(l.g.ctx, joinTimeout)
		defer cancel()
		_ = s.group.Remove(ctx, m.ip) // fails if the switch has removed it by itself
	}()
}

// run makes groups and adds replicas to them.
func (l *lane) run(ctx context.Context) {
	g := l.g
	var s *session // the last one that was made
	for {
		g.mu.Lock()
		var ready []*member
		for ctx.Err() == nil && (s == nil || !s.over) {
			if ready = l.joinable(); len(ready) > 0 {
				break
			}
			g.changed.Wait()
		}
		over := s != nil && s.over
		g.mu.Unlock()
		if s != nil && (over || ctx.Err() != nil) {
			_ = s.group.Close()
			s = nil
			continue
		}
		if ctx.Err() != nil {
			return
		}
		var err error
		if s == nil {
			s, err = l.create(ctx, ready)
		} else {
			err = l.add(ctx, s, ready[0])
		}
		if err != nil && ctx.Err() == nil {
			g.cfg.Log(err.Error())
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// joinable returns the replicas that may join. The caller holds mu.
func (l *lane) joinable() (ms []*member) {
	source := false
	for _, m := range l.members {
		if m.link != nil && m.role != absent && !m.joined {
			ms = append(ms, m)
			source = source || m.role == current
		}
	}
	if l.session == nil && (!source && !l.g.cfg.Unicast || len(ms) < l.g.cfg.Quorum) {
		return nil
	}
	return ms
}

// ask has a replica leave its last group and wait for the exchange.
func (l *lane) ask(m *member) error {
	g := l.g
	g.mu.Lock()
	k, removing := m.link, m.removing
	f := &frame{kind: frameJoin, seq: m.applied, data: []byte(g.device)}
	if m.role == partial && !m.reported {
		f.n = 1
	}
	g.mu.Unlock()
	if k == nil {
		return errGone
	}
	if removing != nil {
		<-removing
	}
	a, err := k.call(f)
	if err != nil {
		return fmt.Errorf("replica %s does not join: %w", m.addr, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.link != k {
		return errGone
	}
	if a.seq > g.seq {
		return fmt.Errorf("replica %s says that it has applied entry %d, and the last one is %d", m.addr, a.seq, g.seq)
	}
	m.removing = nil
	if m.applied = a.seq; f.n != 0 {
		m.applied, m.flushed = g.seq, 0 // the ring is not overwritten from here on
	}
	m.joined, m.joinID, m.heard = true, f.id, false
	return nil
}

// create makes a group of the replicas, and has what they have not applied sent to it.
func (l *lane) create(ctx context.Context, ms []*member) (*session, error) {
	g := l.g
	var addrs []string
	var links []*link
	for _, m := range ms {
		if err := l.ask(m); err != nil {
			l.fail(ms, err, m)
			return nil, err
		}
		addrs, links = append(addrs, m.addr), append(links, m.link)
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	policy := mcast.Evict
	if g.cfg.Quorum > 0 {
		policy = mcast.Quorum
	}
	group, err := endpoint.Master(ctx, endpoint.MasterConfig{
		Local: endpoint.Local{Device: g.cfg.Device, Host: g.host, QPConfig: endpoint.QPConfig{
			LocalIP: g.cfg.LocalIP, SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN(),
			MaxSend: postDepth + 1, MaxRecv: 1, Timeout: g.cfg.QPTimeout,
		}},
		Addrs: addrs, GroupIP: l.groupIP, PathMTU: g.cfg.PathMTU, Policy: policy, Quorum: g.cfg.Quorum,
		DeadAfter: g.cfg.DeadAfter, Lease: lease, WindowBase: windowBase,
	})
	if err != nil {
		l.fail(ms, err, nil)
		return nil, err
	}
	s := &session{group: group}
	g.mu.Lock()
	defer g.mu.Unlock()
	l.begin(s, ms, links)
	go l.collect(g.ctx, s)
	go l.follow(g.ctx, s)
	if s.warming = g.cfg.Quorum > 0; s.warming {
		go l.warm(s)
	} else {
		l.pump()
	}
	g.changed.Broadcast()
	return s, nil
}

// begin has the lane go on with a session of the replicas ms, after the entries that all of them have applied. The
// caller holds mu.
func (l *lane) begin(s *session, ms []*member, links []*link) {
	g := l.g
	l.session, l.next = s, g.seq+1
	for i, m := range ms {
		switch {
		case m.link != links[i]:
			l.remove(s, m)
		case (m.role == current || m.reported) && g.retired(m.applied+1):
			g.drop(m, m.link, fmt.Errorf("entry %d, which it has not applied, is not in the ring any more", m.applied+1))
		case m.role == current || m.reported:
			l.next = min(l.next, m.applied+1)
		}
	}
	for _, m := range l.members {
		if m.role == current && !m.joined { // it will lack entries
			g.drop(m, m.link, errors.New("it is not in the group"))
		}
	}
	l.completed = l.next - 1
	g.settle() // the last session may have ended before their completions came
}

// warm posts WRITEs without an entry until all replicas have heard one, or for some time: under a quorum the first
// messages of a group go on to some while the switch verifies the numbers of others, which would lack entries then.
func (l *lane) warm(s *session) {
	g, w := l.g, s.group.Info().Window
	g.mu.Lock()
	defer g.mu.Unlock()
	for begin, last := time.Now(), (time.Time{}); l.session == s && !s.over && time.Since(begin) < stallAfter; {
		deaf := false
		for _, m := range l.members {
			deaf = deaf || m.joined && !m.heard
		}
		if !deaf {
			break
		}
		if time.Since(last) > 20*time.Millisecond {
			last = time.Now()
			// It fails with the group.
			_, _ = s.group.QP().PostSend(endpoint.SendWR{Op: endpoint.WriteImm, Imm: noEntry, RemoteAddr: w.Base, RKey: w.RKey})
		}
		g.changed.Wait() // the ticker wakes it
	}
	s.warming = false
	l.pump()
}

// fail undoes a join that has failed, because of replica m if it is not nil.
func (l *lane) fail(ms []*member, why error, m *member) {
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	for _, o := range ms {
		o.joined = false
	}
	if m != nil {
		l.g.drop(m, m.link, why)
	}
}

// add adds a replica to the group: it gets the entries that are posted from now on.
func (l *lane) add(ctx context.Context, s *session, m *member) error {
	g := l.g
	g.mu.Lock()
	k := m.link
	if m.role == current && k != nil { // it lacks entries of this group
		g.drop(m, k, errors.New("the group has gone on without it"))
		k = nil
	}
	g.mu.Unlock()
	if k == nil {
		return nil
	}
	if err := l.ask(m); err != nil {
		l.fail([]*member{m}, err, m)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	go func() {
		select {
		case <-k.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := s.group.Update(ctx, m.addr)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.drop(m, k, err)
		return err
	}
	if m.link != k && l.session == s {
		l.remove(s, m)
	}
	return nil
}
