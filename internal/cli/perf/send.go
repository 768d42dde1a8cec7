// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/internal/cli/port"
)

// SendOptions configure the sender.
type SendOptions struct {
	Params
	Local
	Receivers  []string      // host or host:port of each
	GroupIP    netip.Addr    // the IP of the first lane's group; the other lanes have the next ones
	OnEachSize func(r *Size) // gets each size as soon as it is measured; may be nil
	OnAgain    func(error)   // a function that is told why the test begins anew; may be nil

	tamper  func(int, []byte) // tests only: see sendLane
	onStart func()            // tests only: called at the beginning of each run
}

// sender runs a test.
type sender struct {
	*peer
	opts     *SendOptions
	session  string
	controls []*control // the connections of receivers, in order
	ready    [][]laneState
	lanes    []*sendLane
	members  []netip.Addr // the addresses of receivers in the groups, in order

	mu   sync.Mutex           // held while a receiver gets lost
	left int                  // receivers that are not lost
	lost []context.Context    // done when the switch has evicted the receiver, in order
	lose []context.CancelFunc // their ends
}

// maxBeginnings bounds how often a test begins whose switch starts again and again.
const maxBeginnings = 5

// Send runs a test with listening receivers. Sockets are opened in the network namespace
// of the calling thread. With an error it may return the results so far. If the switch
// starts again and does not know the groups any more, the test begins anew.
func Send(ctx context.Context, o *SendOptions) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		res, err := send(ctx, o)
		if n == maxBeginnings || ctx.Err() != nil || !errors.Is(err, errAgain) {
			return res, err
		}
		if o.OnAgain != nil {
			o.OnAgain(err)
		}
	}
}

func send(ctx context.Context, o *SendOptions) (*Result, error) {
	s := &sender{peer: newPeer(ctx, &o.Local), opts: o, session: rand.Text()}
	s.params = o.Params
	if o.DeadAfter > 0 {
		s.evicted = s.goOnWithout
	}
	s.left = len(o.Receivers)
	for range o.Receivers {
		lost, lose := context.WithCancel(context.Background())
		defer lose()
		s.lost, s.lose = append(s.lost, lost), append(s.lose, lose)
	}
	res := &Result{Params: o.Params, Backend: o.Backend, Receivers: len(o.Receivers), Sizes: []*Size{}}
	if o.Mode == Group {
		res.Group = &o.GroupIP
	}
	err := s.send(res)
	for _, c := range s.controls {
		if err != nil {
			c.fail(err)
		} else {
			_ = c.send(message{Type: typeBye}) // a receiver that is gone has sent its result
		}
	}
	err = errors.Join(err, s.close())
	for _, c := range s.controls {
		c.close()
	}
	return res, err
}

func (o *SendOptions) check() error {
	if err := errors.Join(o.Params.check(), o.Local.check()); err != nil {
		return err
	}
	switch {
	case o.Backend != port.Soft && (o.Congestion || o.Rate != linkrate.None):
		return errors.New("--dcqcn and --rate are the soft backend's: an RNIC's own are set where it is configured")
	case len(o.Receivers) == 0:
		return errors.New("name the receivers, which have been started with --listen, or give --listen to be one")
	case o.twice() != "":
		return fmt.Errorf("receiver %s is named twice: a receiver serves one sender, and has one queue pair in a group", o.twice())
	case o.Mode == Group && !o.GroupIP.IsValid():
		return errors.New("--mode group needs --group GROUPIP, out of the switch's group prefixes")
	case o.Mode != Group && o.GroupIP.IsValid():
		return fmt.Errorf("--group goes with --mode group, not with %s", o.Mode)
	case o.Mode == Group:
		if _, err := groups(o.GroupIP, o.Lanes); err != nil {
			return err
		}
	}
	return port.CheckKey(&o.Host)
}

// twice returns a receiver that is named twice; "": there is none.
func (o *SendOptions) twice() string {
	seen := map[string]bool{}
	for _, at := range o.Receivers {
		if at = withPort(at, DefaultPort); seen[at] {
			return at
		}
		seen[at] = true
	}
	return ""
}

func (s *sender) send(res *Result) error {
	if err := s.dialAll(); err != nil {
		return err
	}
	if err := s.prepare(); err != nil {
		return err
	}
	if s.params.Mode == Group {
		if err := s.join(); err != nil {
			return err
		}
	}
	if s.params.rotates() {
		return s.rotate(res)
	}
	for _, l := range s.lanes {
		l.start(s.ctx, &s.wg, func(err error) { s.cancel(err) })
	}
	for _, n := range s.params.sizes() {
		z, err := s.run(n)
		if err != nil {
			return err
		}
		res.Sizes = append(res.Sizes, z)
		if s.opts.OnEachSize != nil {
			s.opts.OnEachSize(z)
		}
	}
	return nil
}

// dialAll connects to the receivers, opens the device, and sends the receivers the test.
func (s *sender) dialAll() error {
	ctx, cancel := s.step("connecting to the receivers")
	defer cancel()
	id, err := s.local.identity()
	if err != nil {
		return err
	}
	var beside netip.Addr
	for _, at := range s.opts.Receivers {
		// One after the other: sockets must be opened by the calling thread.
		conn, err := id.Dial(ctx, withPort(at, DefaultPort), role)
		if err != nil {
			return fmt.Errorf("connect to the receiver at %s: %w", at, port.DialError(err))
		}
		s.controls = append(s.controls, newControl(conn, "receiver", func(err error) {
			if !s.mayBeLost(err) {
				s.cancel(err)
			}
		}))
		if !beside.IsValid() {
			beside = addrOf(conn.LocalAddr())
		}
	}
	v6 := beside.Is6()
	if s.params.Mode == Group {
		v6 = s.opts.GroupIP.Is6()
	}
	if s.port, err = openPort(s.local, &s.params, beside, v6); err != nil {
		return err
	}
	for i, c := range s.controls {
		m := message{Type: typeSetup, Setup: &setupMessage{
			Params: s.params, Session: s.session, Rank: i + 1, Receivers: len(s.controls), IPv6: v6,
		}}
		if err := c.send(m); err != nil {
			return err
		}
	}
	for i, c := range s.controls {
		m, err := c.receive(ctx, typeReady)
		if err != nil {
			return err
		}
		if err := s.checkReady(m.Lanes, i+1); err != nil {
			return fmt.Errorf("%s: %w", c.peer, err)
		}
		s.ready = append(s.ready, m.Lanes)
	}
	return nil
}

// withPort adds a port to a host that has none.
func withPort(at string, port uint16) string {
	if _, _, err := net.SplitHostPort(at); err == nil {
		return at
	}
	return net.JoinHostPort(strings.Trim(at, "[]"), fmt.Sprint(port))
}

// addrOf returns the IP of a TCP address.
func addrOf(a net.Addr) netip.Addr {
	ap, _ := netip.ParseAddrPort(a.String()) // the net package's own text
	return ap.Addr().Unmap().WithZone("")
}

// checkReady checks whether receiver rank has all that the mode needs.
func (s *sender) checkReady(lanes []laneState, rank int) error {
	if len(lanes) != s.params.Lanes {
		return fmt.Errorf("it has %d lanes, want %d", len(lanes), s.params.Lanes)
	}
	for _, l := range lanes {
		if (l.In == nil) != (s.params.Mode == Group) || (l.Answer == nil) == s.params.needsAnswers() || l.Memory == nil ||
			len(l.Out) != len(forwarders(s.params.Mode, rank, len(s.controls))) {
			return errors.New("it has not the queue pairs that this mode needs: use the same release on all hosts")
		}
	}
	return nil
}

// prepare makes the lanes, with their queue pairs for the baselines and for answers, and
// connects them at both ends.
func (s *sender) prepare() error {
	ctx, cancel := s.step("connecting queue pairs")
	defer cancel()
	n := len(s.controls)
	links := make([][]laneLinks, n) // by receiver
	for i := range s.params.Lanes {
		l := newSendLane(&s.params, i, n)
		l.tamper = s.opts.tamper
		s.lanes = append(s.lanes, l)
		var err error
		if l.mr, err = s.port.Buffer(s.params.memory(), uint64(memoryBase+i*laneStride), s.params.access()); err != nil {
			return err
		}
		to := forwarders(s.params.Mode, 0, n)
		var out []qpState
		for _, r := range to {
			q, err := s.qp(s.params.work(), 1)
			if err != nil {
				return err
			}
			them := s.ready[r-1][i]
			if err := s.connect(ctx, q, them.In); err != nil {
				return err
			}
			p := newPipe(q, s.params.work())
			p.va, p.rkey = them.Memory.VA, them.Memory.RKey
			l.targets, out = append(l.targets, p), append(out, *stateOf(q))
		}
		from := sources(s.params.Mode, n)
		for r := 1; r <= n; r++ {
			k, err := s.link(ctx, l, r, from[r], out)
			if err != nil {
				return err
			}
			links[r-1] = append(links[r-1], k)
		}
	}
	for r, c := range s.controls {
		if err := c.send(message{Type: typeConnect, Connect: links[r]}); err != nil {
			return err
		}
	}
	return s.awaitAll(ctx, typeConnected, nil)
}

// link returns the peers for receiver r's queue pairs of lane l. from is the rank that
// sends to r, and out are the sender's queue pairs to receivers.
func (s *sender) link(ctx context.Context, l *sendLane, r, from int, out []qpState) (k laneLinks, err error) {
	n := len(s.controls)
	switch {
	case from == 0:
		k.In = &out[slices.Index(forwarders(s.params.Mode, 0, n), r)]
	case from > 0:
		k.In = &s.ready[from-1][l.number].Out[slices.Index(forwarders(s.params.Mode, from, n), r)]
	}
	for _, c := range forwarders(s.params.Mode, r, n) {
		child := &s.ready[c-1][l.number]
		k.Out = append(k.Out, outLink{QP: *child.In, Memory: child.Memory})
	}
	if !s.params.needsAnswers() {
		return k, nil
	}
	q, err := s.qp(1, answerDepth)
	if err != nil {
		return k, err
	}
	b := newInbox(q)
	if err := b.arm(0, answerDepth, nil); err != nil {
		return k, err
	}
	l.answers = append(l.answers, b)
	k.Answer = stateOf(q)
	return k, s.connect(ctx, q, s.ready[r-1][l.number].Answer)
}

// awaitAll waits for a message from every receiver.
func (s *sender) awaitAll(ctx context.Context, want string, each func(i int, m *message)) error {
	for i, c := range s.controls {
		m, err := s.hear(ctx, c, i, want)
		if s.isLost(i) {
			continue
		}
		if err != nil {
			return err
		}
		if each != nil {
			each(i, &m)
		}
	}
	return nil
}

// join makes the groups, one for each lane, and registers them.
func (s *sender) join() error {
	ips, err := groups(s.opts.GroupIP, s.params.Lanes)
	if err != nil {
		return err
	}
	if s.host, err = endpoint.NewHost(s.port.IP, s.local.Host); err != nil {
		return err
	}
	var addrs []string
	for _, at := range s.opts.Receivers {
		addrs = append(addrs, withPort(at, DefaultPort))
	}
	for i, l := range s.lanes {
		ctx, cancel := s.step(fmt.Sprintf("group %s", ips[i]))
		a, _ := json.Marshal(app{Session: s.session, Lane: i}) // strings and numbers
		g, err := endpoint.Master(ctx, endpoint.MasterConfig{
			Local: s.part(l, a), Policy: s.policy(), DeadAfter: s.params.DeadAfter, Addrs: addrs, GroupIP: ips[i], PathMTU: s.params.PathMTU, WindowBase: windowBase, ReadyTimeout: s.local.Timeout,
			OtherNetwork: s.local.OtherNetwork,
		})
		cancel()
		if err != nil {
			return err
		}
		if s.members == nil {
			for _, p := range g.Peers() {
				s.members = append(s.members, p.IP)
			}
		}
		s.watch(g)
		for r, p := range g.Peers() {
			if err := checkApp(p.App, app{Session: s.session, Lane: i, Rank: r + 1}); err != nil {
				return fmt.Errorf("%s: %w", p.IP, err)
			}
		}
		t := newPipe(g.QP(), s.params.work())
		t.va, t.rkey = g.Info().Window.Base, g.Info().Window.RKey
		l.targets = []*sendPipe{t}
	}
	ctx, cancel := s.step("joining the groups")
	defer cancel()
	return s.awaitAll(ctx, typeJoined, nil)
}

// checkApp checks that the other side of a group's exchange belongs to this test.
func checkApp(raw json.RawMessage, want app) error {
	var got app
	if err := json.Unmarshal(raw, &got); err != nil || got != want {
		return fmt.Errorf("who came to the exchange of lane %d is not of this test", want.Lane)
	}
	return nil
}
