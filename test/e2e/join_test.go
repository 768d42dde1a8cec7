// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
)

// testSecrets are the keys that the tests' switches and hosts share, by key id.
var testSecrets = map[envelope.KeyID]string{
	1: "c7d1f0a94e6b35821d0fb9e27a46c358f18e0b6d7342a5c99b5fe013d8642c7a",
	2: "50ae93b7c2f81d644b0ae67f13d9852c9ef4713ab806cd5de2174896bb3c0fa1",
}

// authOf has some of the keys; the first is the one for requests.
func authOf(ids ...envelope.KeyID) envelope.Auth {
	a := envelope.Auth{Keys: envelope.Keys{}, Send: ids[0]}
	for _, id := range ids {
		var err error
		if a.Keys[id], err = hex.DecodeString(testSecrets[id]); err != nil {
			panic(err)
		}
	}
	return a
}

// testAuth has the key of the switch's configuration.
func testAuth() envelope.Auth { return authOf(1) }

// keysConfig is the switch's configuration of some of the keys.
func keysConfig(ids ...envelope.KeyID) string {
	var keys []string
	for _, id := range ids {
		keys = append(keys, fmt.Sprintf("{id: %d, secret: \"hex:%s\"}", id, testSecrets[id]))
	}
	return "envelope: {keys: [" + strings.Join(keys, ", ") + "]}\n"
}

// joinByMaster connects all hosts to the group by the envelope protocol, host 0
// being the master, and returns their groups.
func (r *rig) joinByMaster(change func(*endpoint.MasterConfig)) []*endpoint.Group {
	r.t.Helper()
	groups, err := r.tryMaster(change)
	if err != nil {
		r.t.Fatal(err)
	}
	return groups
}

// tryMaster is joinByMaster that may fail; the error is the master's.
func (r *rig) tryMaster(change func(*endpoint.MasterConfig)) ([]*endpoint.Group, error) {
	r.t.Helper()
	auth := testAuth()
	if len(r.c.keys) > 0 {
		auth = authOf(r.c.keys[len(r.c.keys)-1])
	}
	local := func(h *rigHost) endpoint.Local {
		return endpoint.Local{Device: h.dev, QP: h.qp, Memory: h.mr, HostConfig: endpoint.HostConfig{Auth: auth, Deadline: 10 * time.Second}}
	}
	c := endpoint.MasterConfig{GroupIP: r.group, VirtualQPN: virtualQPN, PathMTU: r.c.pathMTU, WindowBase: groupBase, Local: local(r.hosts[0])}
	if change != nil {
		change(&c)
	}
	all := make([]session.Participant, len(r.hosts))
	for i, h := range r.hosts {
		all[i] = session.Participant{Name: h.Name, Local: local(h), Do: h.NS.Do}
	}
	all[0].Local = c.Local
	groups, err := session.Join(r.ctx, netip.AddrPortFrom(r.hosts[0].ip, 7001), c, all)
	for _, g := range groups {
		if g != nil {
			r.t.Cleanup(func() { g.Close() })
		}
	}
	return groups, err
}
