// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/locate"
)

// The kernel answers while it has time: a question waits for its locks, as long as
// somebody else holds them. So questions are asked by a goroutine of their own, and the
// control loop goes on. What waits for an answer has a deadline of its own: a
// registration locate_timeout, an envelope parkTime; a member keeps its place.

// question is for the place of a host, or for the state of ports.
type question struct {
	ip    netip.Addr
	ports []int // interface indexes
}

// reply is what the locator says to a question.
type reply struct {
	question
	at     locate.Location
	err    error
	states []portState // of ports
}

// portState is the state of a port's interface.
type portState struct {
	up  bool
	mtu int // 0: there is no such interface
}

// asker passes questions to the locator. All but run belongs to the control loop.
type asker struct {
	questions chan question
	answers   chan reply      // has room for all that are asked
	asked     []time.Duration // when, of those without an answer, oldest first
	told      time.Duration   // that the kernel is slow
	total     uint64
}

// askRoom is how many questions the locator has at a time. More would only keep an
// urgent one waiting.
const askRoom = 32

func newAsker() *asker {
	return &asker{questions: make(chan question, askRoom), answers: make(chan reply, askRoom)}
}

// run asks l until there are no more questions.
func (a *asker) run(l locator) {
	for q := range a.questions {
		x := reply{question: q}
		if q.ip.IsValid() {
			x.at, x.err = l.Locate(q.ip)
		}
		for _, p := range q.ports {
			up, mtu := l.Up(p)
			x.states = append(x.states, portState{up, mtu})
		}
		a.answers <- x
	}
}

// room reports whether the locator takes one more question.
func (a *asker) room() bool { return len(a.asked) < askRoom }

// put asks a question; there is room.
func (a *asker) put(now time.Duration, q question) {
	a.asked = append(a.asked, now)
	a.total++
	a.questions <- q
}

// answered notes that the oldest question has its answer.
func (a *asker) answered() { a.asked = a.asked[1:] }

// slowAnswer is how long the kernel may take for an answer before the operator is told,
// and slowInterval the least time until that is said again.
const (
	slowAnswer   = time.Second
	slowInterval = 10 * time.Second
)

// late returns for how long the oldest question has been waiting if that is to be told.
func (a *asker) late(now time.Duration) (d time.Duration, tell bool) {
	if len(a.asked) == 0 || now-a.asked[0] < slowAnswer || now < a.told+slowInterval && a.told > 0 {
		return 0, false
	}
	a.told = now
	return now - a.asked[0], true
}

// next returns when late may have something to tell.
func (a *asker) next() (at time.Duration, ok bool) {
	if len(a.asked) == 0 {
		return 0, false
	}
	at = a.asked[0] + slowAnswer
	if a.told > 0 {
		at = max(at, a.told+slowInterval)
	}
	return at, true
}

// pose asks what is due: the state of the ports first.
func (c *control) pose() {
	now := c.now()
	if c.linksDue && c.asker.room() && !c.linksAsked {
		q := question{}
		for _, p := range c.crew.ports {
			q.ports = append(q.ports, p.ifindex)
		}
		c.linksDue, c.linksAsked = false, true
		c.asker.put(now, q)
	}
	for c.asker.room() {
		h := c.dir.hosts.take(now)
		if h == nil {
			return
		}
		c.asker.put(now, question{ip: h.ip})
	}
}

// hear takes in an answer, and those that are there besides: nothing is asked meanwhile.
func (c *control) hear(x reply) {
	for {
		c.asker.answered()
		if x.states != nil {
			c.linksAsked = false
			c.linksChanged(x.states)
		} else if h := c.dir.hosts.byIP[x.ip]; h != nil && h.asked {
			c.dir.answered(h, x.at, x.err, c.now())
		}
		select {
		case x = <-c.asker.answers:
			continue
		default:
		}
		c.parking.look = 0
		return
	}
}

// readyBatch bounds the registrations that are installed before the control loop looks
// for other work.
const readyBatch = 4

// installReady goes on with registrations whose members all have answers.
func (c *control) installReady() {
	for range min(readyBatch, len(c.dir.ready)) {
		ip := c.dir.ready[0]
		c.dir.ready = c.dir.ready[1:]
		c.reg.RetryGroup(c.now(), ip, &c.out)
		c.finish()
	}
}
