// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/mcast"
)

const (
	memory      = 1 << 20 // bytes of each member; a source writes a part of its own
	window      = uint64(0x5000_0000_0000)
	depth       = 16
	joinTimeout = 5 * time.Second
	// healTime bounds how long it takes after the last fault until a group can be registered, and has transferred: longer
	// than the grace of a lost neighbour, and its hello's hold time.
	healTime = 6 * time.Second
	again    = 100 * time.Millisecond // the time until the next attempt to register
)

// life is a group that is registered again and again, with other members each time.
type life struct {
	r     *round
	index int
	ip    netip.Addr
	rng   *rand.Rand

	name    string
	members []*member
	policy  mcast.Policy
	master  *endpoint.Group
	mu      sync.Mutex // the lock of the members' left, and of the master's events
	begun   time.Time

	// What follows has the round's lock.
	registered []*member // those of the group while it is registered
	killed     time.Time // the time when the programs of one of them were killed; zero: none was
}

// member is a member of the group as it is now registered.
type member struct {
	*host
	group *endpoint.Group
	mr    endpoint.MR
	left  bool

	killed bool // its programs were; has the round's lock
}

func newLife(r *round, i int) *life {
	return &life{r: r, index: i, ip: groupIP(i), rng: random(r.seed, uint64(2+i))}
}

// run registers the group, and has its members send, until ctx ends.
func (l *life) run(ctx context.Context) {
	for n := 1; ctx.Err() == nil; n++ {
		l.name = fmt.Sprintf("group %s, registration %d", l.ip, n)
		if l.join(ctx) {
			l.transfers(ctx)
		}
		l.end()
		if !sleep(ctx, again) {
			return
		}
	}
}

// heals registers the group once more when no fault goes on any more, and has it transfer.
func (l *life) heals() {
	l.name = fmt.Sprintf("group %s, after the last fault", l.ip)
	l.healsBy(func() bool {
		defer l.end()
		if !l.join(context.Background()) {
			return false
		}
		live := l.live()
		return l.send(context.Background(), live[0], live, 0, memory, l.rng.Uint64()) == nil
	})
}

// healsBy tries until a group has transferred.
func (l *life) healsBy(try func() bool) {
	for begin := time.Now(); ; {
		ok := try()
		took := time.Since(begin)
		if ok {
			l.r.healed(took)
		}
		if took > healTime {
			l.r.wrong("%s: %v after the last fault: success %v", l.name, took, ok)
		}
		if ok || took > healTime {
			return
		}
		time.Sleep(again)
	}
}

// join registers the group with some of the hosts, in a random order.
func (l *life) join(ctx context.Context) bool {
	l.members, l.begun = nil, time.Now()
	l.master = nil
	order := l.rng.Perm(len(l.r.hosts))
	for _, i := range order[:2+l.rng.IntN(len(order)-1)] {
		l.members = append(l.members, &member{host: l.r.hosts[i]})
	}
	l.register(l.members)
	l.policy = []mcast.Policy{mcast.Strict, mcast.Strict, mcast.Evict}[l.rng.IntN(3)]
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), joinTimeout)
	defer cancel()
	all := make([]*testbed.Host, len(l.members))
	var names []string
	for i, m := range l.members {
		var err error
		if all[i], err = l.equip(m); err != nil {
			return false
		}
		names = append(names, m.Name)
	}
	groups, err := testbed.Join(ctx, endpoint.MasterConfig{GroupIP: l.ip, PathMTU: 1024, WindowBase: window, Policy: l.policy}, all)
	for i, g := range groups {
		l.members[i].group = g
	}
	l.r.note("%s: %v of %v: %v", l.name, l.policy, names, err)
	if err == nil {
		l.master = groups[0]
		l.r.count("groups registered")
		return true
	}
	l.r.count("registrations failed")
	return false
}

// errKilled is that of a host whose programs were killed.
var errKilled = errors.New("its programs were killed")

// equip registers a member's memory, and returns its host with it.
func (l *life) equip(m *member) (*testbed.Host, error) {
	l.r.mu.Lock()
	h := m.open
	l.r.mu.Unlock()
	address := uint64(l.rng.Uint32()|1) << 24
	if h == nil {
		return nil, errKilled
	}
	x := *h
	err := x.Register(make([]byte, memory), address)
	m.mr = x.Memory
	if errors.Is(err, endpoint.ErrClosed) {
		return nil, errKilled
	}
	if err != nil {
		l.r.wrong("%s: %s: %v", l.name, m.Name, err)
	}
	return &x, err
}

// register says which hosts are members, so that they can be killed as such.
func (l *life) register(members []*member) {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	if l.registered = members; len(members) == 0 {
		l.killed = time.Time{}
	}
}

// isKilled reports whether the programs of a member were killed.
func (l *life) isKilled(m *member) bool {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	return m.killed
}

// end closes the group's members, and their memory.
func (l *life) end() {
	groups := make([]*endpoint.Group, len(l.members))
	for i, m := range l.members {
		groups[i] = m.group
	}
	if err := session.Leave(groups); err != nil {
		l.r.note("%s: leave: %v", l.name, err)
	}
	for _, m := range l.members {
		if m.mr != nil {
			_ = m.mr.Close() // a queue pair that is not gone holds it
		}
	}
	l.register(nil)
	l.r.note("%s: closed", l.name)
}

// transfers has sources send, one after the other or two at once, and members leave.
func (l *life) transfers(ctx context.Context) {
	most := 1 + l.rng.IntN(40)
	for n := 1; ctx.Err() == nil && n <= most; n++ {
		live := l.live()
		if len(live) < 2 {
			return
		}
		change := !l.isKilled(l.members[0])
		if change && len(live) > 2 && l.rng.IntN(12) == 0 && !l.leave(live[1+l.rng.IntN(len(live)-1)]) {
			return
		}
		if change && l.rng.IntN(12) == 0 && !l.admit() {
			return
		}
		if live = l.live(); len(live) < 2 {
			return
		}
		sources := 1 + l.rng.IntN(2)
		order := l.rng.Perm(len(live))
		seeds := [2]uint64{l.rng.Uint64(), l.rng.Uint64()}
		errs := make([]error, sources)
		_ = session.Each(sources, func(i int) error { // two sources write other parts of the window
			part := memory / sources
			errs[i] = l.send(ctx, live[order[i]], live, i*part, part, seeds[i])
			return nil
		})
		if err := errors.Join(errs...); err != nil {
			l.failed(fmt.Errorf("transfer %d: %w", n, err))
			l.r.count("transfers failed")
			return
		}
		l.r.count("transfers")
	}
}

// failed notes how a transfer has failed. Without a fault that takes something from the group, or kills a member, none does.
func (l *life) failed(err error) {
	l.r.mu.Lock()
	killed := l.killed
	l.r.mu.Unlock()
	if killed.IsZero() && l.r.brokenSince(l.begun) == 0 {
		l.r.wrong("%s: nothing was missing, and %v", l.name, err)
		return
	}
	l.r.note("%s: %v", l.name, err)
}

// live are the members that are still in the group.
func (l *life) live() (all []*member) {
	for _, m := range l.members {
		if !m.left && !l.isKilled(m) {
			all = append(all, m)
		}
	}
	return all
}

// leave has a member leave. It returns false if the group has ended.
func (l *life) leave(m *member) bool {
	ctx, cancel := context.WithTimeout(context.Background(), stuckTime)
	defer cancel()
	err := m.group.Leave(ctx)
	l.r.note("%s: %s leaves: %v", l.name, m.Name, err)
	m.left = true
	l.r.count("members left")
	return err == nil && !l.over()
}

// over reports whether the master knows that the group has ended.
func (l *life) over() bool {
	select {
	case <-l.master.Over():
		return true
	default:
		return false
	}
}

// evicted reports whether the master, or where it hears no more (its programs were killed, or the group has ended) a switch's
// journal, says that a member is out of the group, or the programs of the member were killed.
func (l *life) evicted(m *member) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.master.Events()
	for end := time.After(mostAway + stuckTime); ; { // the master hears of it when the state file has it: a disk may be full
		switch {
		case m.left || l.isKilled(m):
			return true
		case (l.over() || l.isKilled(l.members[0])) && l.r.expelled(l.ip, m.IPv4, l.begun):
			l.out(m.IPv4)
			return true
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case e := <-events:
			if e.Kind == endpoint.Evicted || e.Kind == endpoint.MemberLeft {
				l.out(e.Member)
			}
		case <-end:
			return m.left
		}
	}
}

// out notes that a member is out of the group.
func (l *life) out(ip netip.Addr) {
	for _, m := range l.members {
		if m.IPv4 == ip && !m.left {
			m.left = true
			l.r.note("%s: %s was evicted", l.name, m.Name)
			l.r.count("members evicted")
		}
	}
}
