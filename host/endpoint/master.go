// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint/oob"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// MasterConfig configures a group. Members connect to Listener, or listen at Addrs. The
// zero value of an optional field takes the default in brackets.
type MasterConfig struct {
	Local
	Listener net.Listener // members connect to it; stays open; with the next group at it members of the same Host save the handshake
	Members  int          // number of members to wait for at Listener, without the master
	Addrs    []string     // host:port of listening members; each tried until ctx ends
	// OtherNetwork says that the exchange uses another network than the group, or one
	// that translates addresses. Otherwise the address of a member's queue pair must be
	// that of its connection.
	OtherNetwork bool

	GroupIP    netip.Addr
	VirtualQPN rocev2.QPN // [DefaultVirtualQPN]
	PathMTU    int        // bytes [1024]
	Policy     mcast.Policy
	Quorum     int // the number of receivers that must have the acknowledged data; used under mcast.Quorum
	// DeadAfter is the time after which a silent member is dead [100 ms; with mcast.Strict
	// the switch's, which is 10 s, or the senders' timeout times their tries if that is longer].
	// Negative: never.
	DeadAfter time.Duration
	// LagPSNs and LagTime, not with mcast.Strict, evict a live member that is further
	// behind another one, in packets or in time [never].
	LagPSNs int
	LagTime time.Duration
	// SenderTimeout and SenderRetries are the Timeout and RetryCount of the sending queue
	// pairs, equal at all members [QPConfig's, whose defaults are 14 and 7]. The switch
	// rejects a DeadAfter that does not fit between them.
	SenderTimeout, SenderRetries uint8
	Lease                        time.Duration // requested from the switch, renewed in the background [the switch's default]
	Epoch                        uint64        // [the next after the newest that the switch knows]

	// WindowBase is the first address of the group's WRITE window and WindowLen its
	// length in bytes [the least of the members' memories]. The window's R_Key is random.
	// Without members' memory the group has no window.
	WindowBase uint64
	WindowLen  uint64
	// Targets lets sources name each member's memory before a WRITE
	// (Group.TargetMessageWR), for memory that changes from one WRITE to the next. Not
	// with mcast.Quorum.
	Targets bool
	// NoRepair leaves the repair of losses to the sources. Otherwise the switch repairs
	// losses from its own memory where it can.
	NoRepair bool
	// Exclusive refuses to replace a group that has GroupIP: the error is an *envelope.Problem
	// of GroupExists. Without it the newer registration has the address.
	Exclusive bool

	ReadyTimeout time.Duration // bounds the wait until members have connected their queue pairs [10 s]
}

// Master makes a group and joins it: it connects its own queue pair, collects
// the members' connection states, has them connect theirs, registers the group
// with the switch, and returns when all members have confirmed. From then on it
// renews the group's lease until Close. Sockets are opened in the network
// namespace of the calling thread.
//
// An error names the member or the switch that caused it; the members are told, and fail
// too.
func Master(ctx context.Context, cfg MasterConfig) (*Group, error) {
	g := newGroup()
	if err := g.joinAsMaster(ctx, &cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("make group %s: %w", cfg.GroupIP, err), g.release())
	}
	return g, nil
}

// params returns the group's parameters, with defaults for those that are not set.
func (cfg *MasterConfig) params() mcast.GroupParams {
	p := mcast.GroupParams{
		QPN: cmp.Or(cfg.VirtualQPN, DefaultVirtualQPN), PathMTU: cmp.Or(cfg.PathMTU, rocev2.DefaultPathMTU),
		Policy: cfg.Policy, Quorum: cfg.Quorum, DeadAfter: cfg.DeadAfter, LagPSNs: cfg.LagPSNs, LagTime: cfg.LagTime,
		SenderTimeout: cmp.Or(cfg.SenderTimeout, cfg.QPConfig.Timeout, 14),
		SenderRetries: cmp.Or(cfg.SenderRetries, cfg.QPConfig.RetryCount, 7),
	}
	switch {
	case cfg.DeadAfter < 0:
		p.WaitForEver()
	case cfg.DeadAfter == 0 && cfg.Policy != mcast.Strict:
		p.DeadAfter = envelope.DefaultDeadAfter
	}
	return p
}

func (cfg *MasterConfig) check() error {
	if (cfg.Listener == nil) == (len(cfg.Addrs) == 0) {
		return errors.New("want either a Listener, or the addresses of listening members")
	}
	receivers := len(cfg.Addrs)
	if cfg.Listener != nil {
		receivers = cfg.Members
	}
	if receivers < 1 {
		return fmt.Errorf("%d members to wait for: want at least 1", receivers)
	}
	params := cfg.params()
	if e := params.Check(receivers); e != nil {
		return e
	}
	return nil
}

func (g *Group) joinAsMaster(ctx context.Context, cfg *MasterConfig) (err error) {
	if err := cfg.check(); err != nil {
		return err
	}
	cfg.ReadyTimeout = cmp.Or(cfg.ReadyTimeout, 10*time.Second)
	if err := cfg.open(g); err != nil {
		return err
	}
	g.otherNetwork = cfg.OtherNetwork
	params := cfg.params()
	g.info = GroupInfo{IP: cfg.GroupIP, QPN: params.QPN, PathMTU: params.PathMTU, App: cfg.App}
	peers, err := g.exchange(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		for _, p := range peers {
			if err != nil {
				p.Fail(err)
			} else {
				_ = p.Close() // the peer has had its message
			}
		}
	}()
	for _, p := range peers {
		g.peers = append(g.peers, p.Info) // no other goroutine has g yet
	}
	g.info.Members = len(peers) + 1
	self := cfg.connInfo(g)
	if cfg.Targets {
		g.info.TargetKey = rand.Uint32()&^1 | 2 // even and not 0: never the window's
	}
	if err := cfg.chooseWindow(g, self); err != nil {
		return err
	}
	// The machine checks the registration before the members do any more work.
	if err := g.prepareRegistration(cfg, self); err != nil {
		return err
	}
	if err := g.host.join(g, membership(&g.info, self)); err != nil {
		return err
	}
	if err := g.collectMembers(ctx, cfg, peers); err != nil {
		return err
	}
	if err := g.register(ctx); err != nil {
		return err
	}
	for _, p := range peers {
		_ = p.Registered(ctx) // the switch notices a member that has gone by now
	}
	return nil
}

// exchange connects the master's queue pair while it collects the members, so that they
// are told at once if GroupIP does not answer.
func (g *Group) exchange(ctx context.Context, cfg *MasterConfig) ([]*oob.Peer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	connected := make(chan error, 1)
	go func() {
		err := g.connect(ctx)
		if err != nil {
			cancel(err)
		}
		connected <- err
	}()
	peers, err := cfg.collect(ctx, g.host.identity)
	if err != nil {
		cancel(err)
	}
	e := <-connected
	if e == nil || err != nil && errors.Is(e, err) { // in the latter case e only follows from the cancellation
		return peers, err
	}
	for _, p := range peers {
		p.Fail(e)
	}
	return nil, e
}

// collect performs the exchange's first step with all members.
func (cfg *MasterConfig) collect(ctx context.Context, id *oob.Identity) ([]*oob.Peer, error) {
	check := func(c *oob.ConnInfo) error {
		if c.IP.BitLen() != cfg.GroupIP.BitLen() {
			return fmt.Errorf("its address is not of the family of GroupIP %s", cfg.GroupIP)
		}
		return nil
	}
	a := oob.Admission{Identity: id, Check: check, OtherNetwork: cfg.OtherNetwork}
	if cfg.Listener != nil {
		return oob.Collect(ctx, cfg.Listener, cfg.Members, a)
	}
	return oob.Call(ctx, cfg.Addrs, a)
}

// chooseWindow determines the group's WRITE window. At most one member, which then never
// receives, may do without memory.
func (cfg *MasterConfig) chooseWindow(g *Group, self oob.ConnInfo) error {
	var lacking []netip.Addr
	least := uint64(0)
	for _, m := range append([]oob.ConnInfo{self}, g.peers...) {
		switch {
		case m.Window == nil:
			lacking = append(lacking, m.IP)
		case least == 0 || m.Window.Len < least:
			least = m.Window.Len
		}
	}
	switch {
	case least == 0 && cfg.WindowLen == 0:
		return nil // a group for SEND
	case len(lacking) > 1:
		return fmt.Errorf("no WRITE window is possible: %v have no memory for it, and only the member that always sends can do without", lacking)
	case cfg.WindowLen > least:
		return fmt.Errorf("a WRITE window of %d bytes does not fit: the smallest memory of a member has %d", cfg.WindowLen, least)
	case cfg.WindowLen != 0:
		least = cfg.WindowLen
	}
	if cfg.WindowBase+(least-1) < cfg.WindowBase {
		return fmt.Errorf("a WRITE window of %d bytes at 0x%x passes the end of the address space", least, cfg.WindowBase)
	}
	g.info.Window = mcast.Window{Base: cfg.WindowBase, Len: least, RKey: rand.Uint32() | 1}
	return nil
}

// prepareRegistration creates the machine that will register the group.
func (g *Group) prepareRegistration(cfg *MasterConfig, self oob.ConnInfo) error {
	reg := envelope.Registration{
		Group: g.info.IP, Epoch: cfg.Epoch, GroupParams: cfg.params(), Lease: cfg.Lease, Window: g.info.Window, TargetKey: g.info.TargetKey, NoRepair: cfg.NoRepair,
		Exclusive: cfg.Exclusive,
	}
	for _, m := range append([]oob.ConnInfo{self}, g.peers...) {
		reg.Members = append(reg.Members, record(&m))
	}
	if err := checkLoopback(); err != nil {
		return err
	}
	conn, err := listenUDP(netip.AddrPortFrom(self.IP, 0))
	if err != nil {
		return err
	}
	hc := g.host.cfg
	g.master, err = envelope.NewMaster(envelope.MasterConfig{
		Local: local(conn), Port: hc.Port, Auth: hc.Auth, Seed: rand.Uint64(), MTU: hc.MTU, Deadline: hc.Deadline, RenewWithin: g.host.renewWithin(),
	}, reg)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	g.driver = newDriver(conn, g.master, g.masterEvent)
	return nil
}

func record(m *oob.ConnInfo) envelope.MemberRecord {
	return envelope.MemberRecord{IP: m.IP, QPN: m.QPN, SQPSN: m.SQPSN, RQPSN: m.RQPSN, Window: window(m.Window), ReceiveOnly: m.ReceiveOnly}
}

// collectMembers sends the members the group and waits until all have connected.
func (g *Group) collectMembers(ctx context.Context, cfg *MasterConfig, peers []*oob.Peer) error {
	g.readyTimeout = cfg.ReadyTimeout
	return g.sendGroup(ctx, peers)
}

// sendGroup describes the group to the peers and waits until all are ready.
func (g *Group) sendGroup(ctx context.Context, peers []*oob.Peer) error {
	described := oob.Group{IP: g.info.IP, QPN: g.info.QPN, PathMTU: g.info.PathMTU, Members: g.info.Members, TargetKey: g.info.TargetKey, App: g.info.App}
	if w := g.info.Window; w != (mcast.Window{}) {
		described.Window = &oob.Window{VA: w.Base, Len: w.Len, RKey: w.RKey}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, g.readyTimeout,
		fmt.Errorf("its queue pair was not connected within %v", g.readyTimeout))
	defer cancel()
	results := make(chan error, len(peers))
	for _, p := range peers {
		go func() {
			err := p.Describe(ctx, described)
			if err == nil {
				err = p.AwaitReady(ctx)
			}
			results <- err
		}()
	}
	var first error
	for range peers {
		if err := <-results; err != nil && first == nil {
			first = err
			cancel() // the other waits end too
		}
	}
	return first
}

// register runs the machine until all members have confirmed.
func (g *Group) register(ctx context.Context) error {
	g.driver.call(g.master.Start)
	var err error
	select {
	case <-g.registered:
		return nil
	case err = <-g.failed:
	case <-ctx.Done():
		err = g.giveUpCause(ctx)
		// The result is ignored: the lease would end the group as well.
		g.driver.call(g.master.Delete)
	}
	if e := g.driver.lastSendError(); e != nil {
		return fmt.Errorf("register: %w (last error on sending: %w)", err, e)
	}
	return fmt.Errorf("register: %w", err)
}
