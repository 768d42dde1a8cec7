// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
)

// TestHostsSayNoSecret makes a group beside strangers and a host with another key, and
// searches for the keys and all R_Keys in the output of hosts: logs, errors, events, and
// the values that an application may print by itself.
func TestHostsSayNoSecret(t *testing.T) {
	w := newWorld(t, 4, false, accepted, auth)
	at := netip.AddrPortFrom(w.ip(0), oobPort).String()
	ctx, cancel := context.WithTimeout(w.ctx, 15*time.Second)
	defer cancel()
	var mu sync.Mutex
	var log []string
	say := func(text string) { mu.Lock(); log = append(log, text); mu.Unlock() }
	var ln net.Listener
	if err := w.Hosts[0].NS.Do(func() (err error) { ln, err = net.Listen("tcp", at); return err }); err != nil {
		t.Fatal(err)
	}
	defer ln.Close()

	locals := make([]endpoint.Local, 4)
	for i := range locals {
		locals[i] = w.local(i)
		locals[i].HostConfig.Log = say
	}
	other := otherKey
	locals[3].HostConfig.Auth = other
	member := func(i int) (*endpoint.Group, error) {
		var g *endpoint.Group
		err := w.Hosts[i].NS.Do(func() (err error) {
			g, err = endpoint.Member(ctx, endpoint.MemberConfig{Local: locals[i], Master: at})
			return err
		})
		return g, err
	}
	said := make(map[string]any)
	cfg := endpoint.MasterConfig{Local: locals[0], Listener: ln, Members: 2, GroupIP: w.group, Targets: true}
	master := make(chan *endpoint.Group, 1)
	go func() {
		var g *endpoint.Group
		err := w.Hosts[0].NS.Do(func() (err error) { g, err = endpoint.Master(ctx, cfg); return err })
		if err != nil {
			t.Error(err)
		}
		master <- g
	}()
	(&stranger{w: w, i: 3}).connect(t, at, hello(w.ip(1)))
	_, err := member(3)
	if err == nil {
		t.Fatal("a host with another key has joined")
	}
	said["error of another key"] = err
	first := make(chan *endpoint.Group, 1)
	go func() {
		g, err := member(1)
		if err != nil {
			t.Error(err)
		}
		first <- g
	}()
	second, err := member(2)
	groups := []*endpoint.Group{<-master, <-first, second}
	if err != nil || t.Failed() {
		t.Fatal(err)
	}
	w.registrar.Evict(w.group, envelope.MemberKey{IP: w.ip(2), QPN: second.QP().Info().QPN})
	for i, g := range groups {
		said[fmt.Sprintf("group of host %d", i)] = g.Info()
		said[fmt.Sprintf("peers of host %d", i)] = g.Peers()
		said[fmt.Sprintf("event of host %d", i)] = next(t, ctx, g)
		if i != 1 { // which is not concerned
			said[fmt.Sprintf("second event of host %d", i)] = next(t, ctx, g)
		}
	}
	said["configuration"] = cfg.HostConfig
	said["error of a removal"] = groups[0].Remove(ctx, netip.MustParseAddr("10.9.9.9"))
	secrets := []uint32{groups[0].Info().Window.RKey, groups[0].Info().TargetKey}
	for _, l := range locals {
		secrets = append(secrets, l.Memory.RKey())
	}
	for _, g := range groups {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	mu.Lock()
	said["log"] = log
	mu.Unlock()
	if len(log) == 0 || !strings.Contains(strings.Join(log, "\n"), "connection refused") {
		t.Fatalf("nothing to look at: %q", log)
	}
	for name, v := range said {
		text := strings.ToLower(fmt.Sprintf("%v\n%+v\n%#v", v, v, v))
		for _, k := range secrets {
			for _, form := range []string{fmt.Sprintf("%x", k), fmt.Sprintf("%d", k)} {
				if len(form) >= 6 && strings.Contains(text, form) {
					t.Errorf("%s has the R_Key 0x%x: %s", name, k, text)
				}
			}
		}
		for _, key := range []string{"kkkkkkkk", "xxxxxxxx", "6b6b6b6b", "78787878", "107 107 107", "120 120 120", "0x6b, 0x6b"} {
			if strings.Contains(text, key) {
				t.Errorf("%s has a key: %s", name, text)
			}
		}
	}
}
