// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/host/endpoint/verbs"
	"github.com/gleam-rdma/gleam/lab"
)

const (
	maxHosts  = 8
	longHosts = 4 // the first ones, whose links take path MTU 4096
	bridge    = "br0"
	firstRule = 7700 // priority of policy rules, and number of routing tables
	linkWait  = 20 * time.Second
)

// Keys of the lab's envelopes.
var auth = envelope.Auth{Keys: envelope.Keys{1: []byte("an rxe lab's key of 32 bytes....")}, Send: 1}

// machine is the topology: rxe knows no network namespaces (kernel 6.12: its
// routes and sockets are those of the first one), so all hosts' interfaces stay
// in ours, and the switch has a namespace of its own.
//
// A packet from one local address to another nevertheless crosses both veths
// and the switch, because rxe routes by its own interface; for UDP a policy
// rule by source address does that.
type machine struct {
	lab   *lab.Lab
	init  *lab.Namespace // where the hosts are
	sw    *lab.Namespace
	hosts []*host        // hosts of rxe
	soft  *host          // one whose RDMA device is a software endpoint, package rc
	star  *lan           // the LAN of hosts and soft
	tree  *tree          // two more switches, with hosts of rxe; nil if not made yet
	undo  []func() error // functions that undo changes outside of our own interfaces
	state string         // folder for sockets and configuration
}

// host is an RDMA device on its interface: of rxe, or a software endpoint of ours.
type host struct {
	index  int
	lan    *lan
	ns     *lab.Namespace // the interface's
	link   string         // its interface
	port   string         // the switch's
	mac    net.HardwareAddr
	addr4  netip.Addr
	addr6  netip.Addr
	rdma   string // its RDMA device; "" if it is a software endpoint
	ifb    string // where packets get lost on their way in; "" if not made yet
	device endpoint.Device
	// The host's answers to envelopes, for each family.
	confirm4, confirm6 *endpoint.Host
}

func (h *host) addr(v6 bool) netip.Addr {
	if v6 {
		return h.addr6
	}
	return h.addr4
}

func (h *host) confirm(v6 bool) *endpoint.Host {
	if v6 {
		return h.confirm6
	}
	return h.confirm4
}

// newMachine builds the topology with n hosts.
func newMachine(ctx context.Context, n int) (*machine, error) {
	m := &machine{}
	if err := m.build(ctx, n); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (m *machine) build(ctx context.Context, n int) (err error) {
	if m.state, err = os.MkdirTemp("", "gleam-rxe-"); err != nil {
		return err
	}
	if m.lab, err = lab.New(lab.Options{}); err != nil {
		return err
	}
	if m.init, err = lab.OpenNamespace("/proc/self/ns/net"); err != nil {
		return err
	}
	if m.sw, err = m.lab.Namespace("sw"); err != nil {
		return err
	}
	if err := m.settings(); err != nil {
		return err
	}
	if err := m.fillDispatcher(); err != nil {
		return err
	}
	m.star = &lan{sw: m.sw, net4: lab.StarIPv4, net6: lab.StarIPv6, own4: lab.StarSwitchIPv4, own6: lab.StarSwitchIPv6}
	if err := m.star.make(mac(3, 1)); err != nil {
		return err
	}
	for i := 1; i <= n; i++ {
		h, err := m.addHost(i, m.star)
		if h != nil {
			m.hosts = append(m.hosts, h)
		}
		if err != nil {
			return fmt.Errorf("host %d: %w", i, err)
		}
	}
	if err := m.addSoft(n + 1); err != nil {
		return fmt.Errorf("host %d: %w", n+1, err)
	}
	for _, ns := range []*lab.Namespace{m.sw, m.soft.ns} {
		if err := ns.WaitUp(linkWait); err != nil {
			return err
		}
	}
	for _, h := range m.all() {
		if err := h.open(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settings lets interfaces of one namespace behave like hosts of their own.
func (m *machine) settings() error {
	for key, value := range map[string]string{
		"ipv4.conf.all.rp_filter": "0", "ipv4.conf.default.rp_filter": "0",
		"ipv4.conf.all.accept_local": "1", "ipv4.conf.default.accept_local": "1",
		"ipv4.conf.all.arp_ignore": "1", "ipv4.conf.default.arp_ignore": "1",
		"ipv4.conf.all.arp_announce": "2", "ipv4.conf.default.arp_announce": "2",
		"ipv6.conf.default.accept_dad": "0", "ipv6.conf.default.accept_ra": "0", "ipv6.conf.default.autoconf": "0",
	} {
		old, err := os.ReadFile("/proc/sys/net/" + strings.ReplaceAll(key, ".", "/"))
		if err != nil {
			return err
		}
		if err := m.init.Sysctl("net."+key, value); err != nil {
			return err
		}
		m.undo = append(m.undo, func() error { return m.init.Sysctl("net."+key, strings.TrimSpace(string(old))) })
	}
	return nil
}

// linkMTU returns the MTU of host i's link. rxe's active path MTU is the largest with
// 80 bytes to spare (rxe_param.h): 4096 or 2048.
func linkMTU(i int) int {
	if i <= longHosts {
		return 4200
	}
	return 2200
}

// mac returns an address of our own kind: 1 a host's, 2 a port's, 3 a bridge's.
func mac(kind byte, i int) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0x67, 0x72, kind, 0, byte(i)}
}

// all returns the hosts of the star that there are so far.
func (m *machine) all() []*host {
	if m.soft == nil {
		return m.hosts
	}
	return append(slices.Clip(m.hosts), m.soft)
}

// open opens h's device, and has it answer envelopes.
func (h *host) open(ctx context.Context) error {
	return h.ns.Do(func() (err error) {
		if h.rdma == "" {
			h.device, err = soft.Open(soft.Config{Interface: h.link})
		} else {
			h.device, err = h.openVerbs(ctx)
		}
		if err != nil {
			return err
		}
		return h.listen()
	})
}

// listen opens the sockets by which h confirms groups.
func (h *host) listen() (err error) {
	if h.confirm4, err = endpoint.NewHost(h.addr4, endpoint.HostConfig{Auth: auth, Deadline: linkWait}); err != nil {
		return err
	}
	h.confirm6, err = endpoint.NewHost(h.addr6, endpoint.HostConfig{Auth: auth, Deadline: linkWait})
	return err
}

// deaf closes them, so that another process can confirm.
func (h *host) deaf() error {
	var errs []error
	for _, c := range []**endpoint.Host{&h.confirm4, &h.confirm6} {
		if *c != nil {
			errs = append(errs, (*c).Close())
			*c = nil
		}
	}
	return errors.Join(errs...)
}

// openVerbs opens h's RDMA device as soon as it has its GIDs.
func (h *host) openVerbs(ctx context.Context) (endpoint.Device, error) {
	ctx, cancel := context.WithTimeout(ctx, linkWait)
	defer cancel()
	for {
		d, err := verbs.Open(verbs.Config{Device: h.rdma, LocalIP: h.addr4})
		if err == nil && len(d.Addrs()) == 2 {
			return d, nil
		}
		if err == nil {
			err = errors.Join(fmt.Errorf("%s has GIDs for %v only", h.rdma, d.Addrs()), d.Close())
		}
		if errors.Is(err, verbs.ErrNotBuilt) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (h *host) close() error {
	errs := []error{h.deaf()}
	if h.device != nil {
		errs = append(errs, h.device.Close())
	}
	return errors.Join(errs...)
}

// close removes everything.
func (m *machine) close() error {
	var errs []error
	all := m.all()
	if m.tree != nil {
		all = append(slices.Clip(all), m.tree.hosts...)
	}
	for _, h := range all {
		errs = append(errs, h.close(), h.ns.DeleteLink(h.link)) // the RDMA device goes with it
		if h.ifb != "" {
			errs = append(errs, m.init.DeleteLink(h.ifb))
		}
	}
	for i := len(m.undo) - 1; i >= 0; i-- {
		errs = append(errs, m.undo[i]())
	}
	if m.lab != nil {
		errs = append(errs, m.lab.Close())
	}
	if m.init != nil {
		errs = append(errs, m.init.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(m.state))...)
}
