// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/stranger"
)

// secondKey is that of the group's tenant. The stranger x holds the first one.
const secondKey envelope.KeyID = 2

func secondSecret() []byte { b := sha256.Sum256([]byte("the second tenant's")); return b[:] }

// twoKeys gives gleamd the key of a second tenant, and has the first tenant, at x, claim c: its group has c behind x, as the
// switch's kernel was poisoned when it was registered, and x has answered in c's name. What a host says under one key counts
// in the groups of that key alone.
func twoKeys(s *scene) {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.dir, "run-*", s.at, "gleamd.yaml"))
	if err != nil || len(found) != 1 {
		s.t.Fatalf("the configuration: %v, %v", found, err)
	}
	text, err := os.ReadFile(found[0])
	s.must(err)
	first := []byte(fmt.Sprintf("    - {id: %d,", testbed.KeyID))
	second := []byte(fmt.Sprintf("    - {id: %d, secret: \"hex:%x\"}\n", secondKey, secondSecret()))
	s.must(os.WriteFile(found[0], bytes.Replace(text, first, append(second, first...), 1), 0o600))
	s.stop(syscall.SIGTERM)
	s.start()
	s.claim()
}

func (s *scene) claim() {
	s.t.Helper()
	c, x := s.hosts["c"], s.hosts["x"]
	k := x.NS.Handle()
	l, err := k.LinkByName(fabric.HostInterface)
	s.must(err)
	claimed := netip.PrefixFrom(c.ip, c.ip.BitLen())
	s.must(x.NS.AddAddr(fabric.HostInterface, claimed))
	br, err := c.Switch.NS.Handle().LinkByName("br0")
	s.must(err)
	entry := &netlink.Neigh{LinkIndex: br.Attrs().Index, IP: c.ip.AsSlice(), HardwareAddr: x.MAC, State: netlink.NUD_REACHABLE}
	own, err := c.NS.Handle().LinkByName(fabric.HostInterface)
	s.must(err)
	// c's kernel knows its gateway: solicitations of it would be answered to x.
	s.must(c.NS.Handle().NeighSet(&netlink.Neigh{LinkIndex: own.Attrs().Index, IP: stranger.Gateway(c.ip).AsSlice(), HardwareAddr: c.gateway[:], State: netlink.NUD_PERMANENT}))
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	go func() { // as if c were asked for, and x had answered, again and again
		for ctx.Err() == nil {
			_ = c.Switch.NS.Handle().NeighSet(entry)
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	s.open("x", envelope.Keys{testbed.KeyID: s.bed.Key}, testbed.KeyID)
	config := endpoint.HostConfig{Auth: s.bed.Key.Auth()}
	inName, err := lab.In(x.NS, func() (*endpoint.Host, error) { return endpoint.NewHost(c.ip, config) })
	s.must(err)
	s.t.Cleanup(func() { inName.Close() })
	member := func(ip netip.Addr, envs *endpoint.Host) session.Participant {
		qp := queuePair(x)
		qp.LocalIP = ip
		return session.Participant{Name: "x as " + ip.String(), Do: x.NS.Do, Local: endpoint.Local{Device: x.dev, Host: envs, HostConfig: config, QPConfig: qp}}
	}
	_, err = session.Join(ctx, netip.AddrPortFrom(x.ip, 0), endpoint.MasterConfig{GroupIP: s.address().Next(), PathMTU: pathMTU, OtherNetwork: true}, []session.Participant{member(x.ip, x.envs), member(c.ip, inName)})
	cancel()
	s.must(err)
	all, err := netlink.ParseAddr(claimed.String())
	s.must(err)
	s.must(k.AddrDel(l, all)) // c and the others find each other
}

// byEnvelopesOfSecond is a group of the second tenant's.
// c says where it is meanwhile.
func byEnvelopesOfSecond(s *scene) *group {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	c := s.hosts["c"]
	w := stranger.New(s.t, c.Host)
	go func() {
		for ctx.Err() == nil {
			c.announce(w)
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return byEnvelopesUnder(s, secondSecret(), secondKey)
}

// staysHome checks that the second tenant's c is where it is.
func staysHome(s *scene) {
	s.t.Helper()
	c := s.hosts["c"]
	if at := s.place(c); at != c.home() {
		s.t.Errorf("in the group of the second tenant c is at %s, want %s", at, c.home())
	}
}
