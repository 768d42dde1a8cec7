// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/internal/cli/port"
)

// ListenOptions configure a receiver.
type ListenOptions struct {
	Params          // parameters from the command line; the sender sets the others
	Given  []string // names of the flags whose values must equal the sender's
	Local
	Address string           // host:port to listen at; an empty host is any address
	Say     func(msg string) // gets reports of progress, for people

	onStore func(store []byte) // tests only: called after each write that a replica stores
}

// receiver takes part in one test.
type receiver struct {
	*peer
	opts    *ListenOptions
	setup   *setupMessage
	control *control
	ln      net.Listener
	lanes   []*recvLane
}

// Listen waits for a sender, takes part in its test, and returns at the end of the test.
// Sockets are opened in the network namespace of the calling thread.
func Listen(ctx context.Context, o *ListenOptions) error {
	if err := errors.Join(o.Params.check(), o.Local.check(), port.CheckKey(&o.Local.Host)); err != nil {
		return err
	}
	say, saying := o.Say, new(sync.Mutex)
	o.Say = func(msg string) { // exchanges at several listeners report concurrently with this function
		saying.Lock()
		defer saying.Unlock()
		say(msg)
	}
	o.Local.Host.Log = o.Say
	id, err := o.Local.identity()
	if err != nil {
		return err
	}
	ln, err := port.Listen(o.Address, "gleam perf --listen")
	if err != nil {
		return fmt.Errorf("listen for the sender: %w", err)
	}
	defer ln.Close()
	o.Say(fmt.Sprintf("waiting for the sender at %s", ln.Addr()))
	for {
		conn, err := id.Accept(ctx, ln, role)
		if err != nil {
			return fmt.Errorf("wait for the sender at %s: %w", ln.Addr(), err)
		}
		r := &receiver{peer: newPeer(ctx, &o.Local), opts: o, ln: ln}
		r.control = newControl(conn, "sender", r.cancel)
		stranger, err := r.handleSetup()
		if stranger {
			o.Say(fmt.Sprintf("%v; still waiting", err))
			r.control.fail(err)
			_ = r.close() // it holds no resources yet
			continue
		}
		if err == nil {
			err = r.serve()
		}
		if err != nil {
			r.control.fail(err)
		}
		err = errors.Join(err, r.close())
		r.control.close()
		if errors.Is(err, errAgain) {
			o.Say(fmt.Sprintf("%v; waiting for the sender again", err))
			continue
		}
		return err
	}
}

// handleSetup waits for the sender's setup message. A connection without one is a
// stranger's.
func (r *receiver) handleSetup() (stranger bool, err error) {
	ctx, cancel := r.step("the greeting")
	defer cancel()
	m, err := r.control.receive(ctx, typeSetup)
	if err == nil && m.Setup == nil {
		err = fmt.Errorf("%s sent a setup with nothing in it", r.control.peer)
	}
	if err != nil {
		return true, err
	}
	r.setup, r.params = m.Setup, m.Setup.Params
	if err := mismatch(&r.opts.Params, &r.params, r.opts.Given); err != nil {
		return false, err
	}
	if err := r.params.check(); err != nil {
		return false, fmt.Errorf("%s: %w", r.control.peer, err)
	}
	if r.setup.Rank < 1 || r.setup.Rank > r.setup.Receivers {
		return false, fmt.Errorf("%s: receiver %d of %d makes no sense", r.control.peer, r.setup.Rank, r.setup.Receivers)
	}
	return false, nil
}

// serve performs the receiver's part of the test.
func (r *receiver) serve() (err error) {
	if r.port, err = openPort(r.local, &r.setup.Params, addrOf(r.control.conn.LocalAddr()), r.setup.IPv6); err != nil {
		return err
	}
	if err := r.prepare(); err != nil {
		return err
	}
	if r.params.Mode == Group {
		if err := r.join(); err != nil {
			return err
		}
	}
	for _, l := range r.lanes {
		l.start(r.ctx, &r.wg, func(err error) { r.cancel(err) })
	}
	for {
		m, err := r.control.receive(r.ctx, typeRun, typeBye)
		switch {
		case err != nil:
			return err
		case m.Type == typeBye:
			r.awaitGroupsEnd()
			return nil
		case m.Run == nil || m.Run.Size < 1 || m.Run.Size > maxSize || m.Run.Iterations < 0 ||
			m.Run.Size*r.params.slots(m.Run.Size) > r.params.memory() || m.Run.Iterations == 0 && r.params.Duration == 0:
			return fmt.Errorf("%s: a run that makes no sense", r.control.peer)
		}
		if r.params.rotates() {
			err = r.turn(m.Run)
		} else {
			err = r.run(m.Run)
		}
		if err != nil {
			return err
		}
	}
}

// awaitGroupsEnd waits until the sender has deleted the groups: leaving them one by one
// would be more work for the switch.
func (r *receiver) awaitGroupsEnd() {
	t := time.NewTimer(time.Second)
	defer t.Stop()
	for _, g := range r.groups {
		select {
		case <-g.Over():
		case <-t.C:
			return
		}
	}
}

// prepare makes the lanes' memory and queue pairs, and connects the queue pairs that do
// not belong to a group.
func (r *receiver) prepare() error {
	var states []laneState
	for i := range r.params.Lanes {
		l := &recvLane{params: &r.params, number: i}
		r.lanes = append(r.lanes, l)
		st, err := r.openLanes(l)
		if err != nil {
			return err
		}
		states = append(states, st)
	}
	if err := r.control.send(message{Type: typeReady, Lanes: states}); err != nil {
		return err
	}
	m, err := r.control.receive(r.ctx, typeConnect)
	if err != nil {
		return err
	}
	if len(m.Connect) != len(r.lanes) {
		return fmt.Errorf("%s connects %d lanes, want %d", r.control.peer, len(m.Connect), len(r.lanes))
	}
	ctx, cancel := r.step("connecting queue pairs")
	defer cancel()
	for i, l := range r.lanes {
		if err := r.link(ctx, l, &m.Connect[i]); err != nil {
			return err
		}
	}
	return r.control.send(message{Type: typeConnected})
}

// openLanes makes a lane's memory and queue pairs.
func (r *receiver) openLanes(l *recvLane) (st laneState, err error) {
	if l.mr, err = r.port.Buffer(r.params.memory(), uint64(memoryBase+l.number*laneStride), endpoint.LocalWrite|endpoint.RemoteWrite); err != nil {
		return st, err
	}
	if r.params.replicates() {
		l.onStore = r.opts.onStore
		l.store = make([]byte, r.params.memory())
	}
	st.Memory = &memory{VA: l.mr.Addr(), RKey: l.mr.RKey()}
	if r.params.Mode != Group {
		q, err := r.qp(1, recvDepth)
		if err != nil {
			return st, err
		}
		l.in, st.In = newInbox(q), stateOf(q)
	}
	for range forwarders(r.params.Mode, r.setup.Rank, r.setup.Receivers) {
		q, err := r.qp(r.params.work(), 1)
		if err != nil {
			return st, err
		}
		l.out, st.Out = append(l.out, newPipe(q, r.params.work())), append(st.Out, *stateOf(q))
	}
	if r.params.needsAnswers() {
		q, err := r.qp(answerBytes, 1)
		if err != nil {
			return st, err
		}
		l.answer, st.Answer = newPipe(q, answerBytes), stateOf(q)
	}
	return st, nil
}

// link connects a lane's queue pairs.
func (r *receiver) link(ctx context.Context, l *recvLane, to *laneLinks) error {
	if len(to.Out) != len(l.out) {
		return fmt.Errorf("%s has us pass on to %d receivers, want %d", r.control.peer, len(to.Out), len(l.out))
	}
	if l.in != nil {
		if err := r.connect(ctx, l.in.qp, to.In); err != nil {
			return err
		}
	}
	for i, o := range l.out {
		if m := to.Out[i].Memory; m != nil {
			o.va, o.rkey = m.VA, m.RKey
		}
		if err := r.connect(ctx, o.qp, &to.Out[i].QP); err != nil {
			return err
		}
	}
	if l.answer != nil {
		return r.connect(ctx, l.answer.qp, to.Answer)
	}
	return nil
}

// join joins the groups, one for each lane, in their order.
func (r *receiver) join() error {
	var err error
	if r.host, err = endpoint.NewHost(r.port.IP, r.local.Host); err != nil {
		return err
	}
	for i, l := range r.lanes {
		a, _ := json.Marshal(app{Session: r.setup.Session, Lane: i, Rank: r.setup.Rank}) // strings and numbers
		loc := endpoint.Local{Device: r.port, QPConfig: r.qpConfig(r.params.sends(), recvDepth), Host: r.host, App: a}
		if r.params.write() {
			loc.Memory = l.mr
		}
		g, err := endpoint.Member(r.ctx, endpoint.MemberConfig{Local: loc, Listener: r.ln})
		if err != nil {
			return err
		}
		r.watch(g)
		if err := checkApp(g.Info().App, app{Session: r.setup.Session, Lane: i}); err != nil {
			return err
		}
		l.in, l.window = newInbox(g.QP()), g.Info().Window
	}
	return r.control.send(message{Type: typeJoined})
}

// run receives the messages of one size.
func (r *receiver) run(z *run) error {
	for _, l := range r.lanes {
		if err := l.arm(z); err != nil {
			return err
		}
	}
	a := &arrivals{meter: newMeter(z.Iterations*len(r.lanes), r.params.slots(z.Size)*len(r.lanes)), known: r.params.notices()}
	if r.params.DeadAfter > 0 { // whoever ends this program in the middle of a transfer is told when
		a.onFirst = func() {
			r.opts.Say(fmt.Sprintf("receiver %d of %d: the first message is here", r.setup.Rank, r.setup.Receivers))
		}
	}
	if err := r.control.send(message{Type: typeArmed}); err != nil {
		return err
	}
	var lanes sync.WaitGroup
	for _, l := range r.lanes {
		lanes.Go(func() {
			if err := l.run(r.ctx, z, a); err != nil {
				r.cancel(err)
			}
		})
	}
	lanes.Wait()
	if r.ctx.Err() != nil {
		return fmt.Errorf("%s of %d bytes: %w", r.params.Test, z.Size, context.Cause(r.ctx))
	}
	res := a.result()
	r.log(z, res)
	return r.control.send(message{Type: typeResult, Result: res})
}

func (r *receiver) log(z *run, res *result) {
	text := fmt.Sprintf("%s, %s: %d messages of %d bytes", r.params.Test, r.params.Mode, res.Messages, z.Size)
	if res.Seconds > 0 && !r.params.latency() {
		text += fmt.Sprintf(", %.2f MiB/s", float64(res.Counted)*float64(z.Size)/(1<<20)/res.Seconds)
	}
	if r.params.Verify {
		text += ", verified"
	}
	r.opts.Say(text)
}
