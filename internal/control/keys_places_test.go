// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

var tenants = envelope.Keys{1: []byte("the first tenant's secret, 32 B."), 2: []byte("another tenant's secret of 32 B.")}

func tenantsConfig() string {
	return fmt.Sprintf("psn_probe: 1ms\nenvelope: {keys: [{id: 1, secret: \"hex:%x\"}, {id: 2, secret: \"hex:%x\"}]}\n", tenants[1], tenants[2])
}

// enrollUnder registers group n of hosts by an envelope of the first one under a key.
func (f *fakeSwitch) enrollUnder(key envelope.KeyID, n int, hosts ...int) {
	f.t.Helper()
	head := envelope.Header{Epoch: 1, Transaction: 1, Total: 1, Group: fakeGroup(n), ReplyTo: netip.AddrPortFrom(fakeHost(hosts[0]), 4797)}
	body := envelope.GroupBody{GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024, Policy: mcast.Strict}, TotalMembers: len(hosts), NoRepair: true, Lease: time.Minute}
	for _, i := range hosts {
		m := f.record(i, api.QPN(0x100*(n+1)+i))
		body.Members = append(body.Members, record(&m))
	}
	message := &envelope.Message{Header: head, Body: &envelope.Register{GroupBody: body}}
	f.control.do(func() {
		c := f.control
		for range 2 { // the answer to the first has the instance
			b, err := envelope.Append(nil, message, tenants, key)
			if err != nil {
				f.t.Fatal(err)
			}
			if h := c.dir.hosts.Of(head.ReplyTo.Addr()); h != nil {
				c.dir.cameFrom = c.dir.hosts.Origin(h.At())
			}
			c.registrar.Input(c.now(), head.ReplyTo, b, &c.out)
			for _, p := range c.out.Packets {
				if m, err := envelope.Open(p.Data, tenants, false); err == nil && m.Type == envelope.TypeChallenge {
					message.Instance, message.Epoch = m.Instance, m.Body.(*envelope.Challenge).EpochKnown+1
				}
			}
			c.sendOutput()
			c.doDue()
		}
	})
}

// asked waits until a host is asked under a key, and returns where.
func (f *fakeSwitch) asked(host int, key envelope.KeyID, ask int) (a location.Request) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("host %d is asked under key %d", host, key), func() bool {
		f.control.do(func() { a = f.control.dir.inquirer.ProofOf(fakeHost(host), key)[ask] })
		return a.Nonce != envelope.Nonce{}
	})
	return a
}

// The holder of key 1 is behind port 0. It has poisoned the kernel's tables, and answers for 10.77.0.3 in a
// group of its own. What that holder may not touch are groups of another key (SECURITY.md, "Who is trusted
// with what"; "an answer under another tenant's key moves the member in that tenant's groups alone").
func (f *fakeSwitch) claim(t *testing.T) (home dataplane.Origin) {
	f.spoof(2, 0, 66)
	f.enrollUnder(1, 0, 0, 2)
	for _, i := range []int{0, 2} {
		a := f.asked(i, 1, 0)
		f.proves(0, i, a, a.Origin)
	}
	f.eventually("the group of the first tenant is there", func() bool { return f.installed(0) })
	f.spoof(2, 2, 2) // nobody forges any more
	return dataplane.Origin{Port: 2, MAC: rocev2.MAC{2, 0, 0, 0, 0, 2}}
}

func TestAnotherKeysPlaceAfterRestart(t *testing.T) {
	dir := t.TempDir()
	f := newBridgedSwitch(t, 4, tenantsConfig()+"state: "+dir+"\n")
	home := f.claim(t)
	f.enrollUnder(2, 1, 1, 2)
	a := f.asked(2, 2, 0) // comes to the first tenant, who passes it on: the member answers from home
	f.proves(1, 2, a, home)
	a = f.asked(2, 2, 1)
	f.proves(1, 2, a, home)
	f.eventually("the group of the second tenant is there", func() bool { // its master has no need to answer twice
		f.control.do(func() { a = f.control.dir.inquirer.ProofOf(fakeHost(1), 2)[0] })
		f.proves(1, 1, a, a.Origin)
		return f.installed(1)
	})
	if at := f.placeIn(1, 1); at != "f2 02:00:00:00:00:02" {
		t.Fatalf("in the group of the second tenant the member is at %s", at)
	}
	f.eventually("the groups are in the file", func() bool { return !f.waits() })
	f.end()
	f = newBridgedSwitch(t, 4, tenantsConfig()+"state: "+dir+"\n")
	f.spoof(2, 0, 66)
	if at := f.placeIn(1, 1); at != "f2 02:00:00:00:00:02" {
		t.Errorf("after a restart the member of the second tenant's group is at %s, by the word of the first tenant", at)
	}
	f.spoof(2, 0, 66)                                // feed brings the member's packets from the port and the MAC address of the first tenant, who makes them up
	f.feed(1, answer(2, 2000-1, rocev2.SyndromeACK)) // an answer to the keepalive probe
	f.spoof(2, 2, 2)
	f.answerProbes(1, 2) // the member's own
	f.spoof(2, 0, 66)
	source := send(1, 1000)
	f.eventually("the source is served", func() bool {
		f.feed(1, source)
		g, err := f.Group(fakeGroup(1))
		return err == nil && g.Source == fakeHost(1) && g.NextPSN == 1001
	})
	f.feed(1, answer(2, 2000, rocev2.SyndromeACK))
	if g, err := f.Group(fakeGroup(1)); err != nil || g.AckPSN == 1000 {
		t.Errorf("FALSE COMPLETION: the group under key 2 takes the acknowledgement of a holder of key 1 as its member's: ack %v next %v (%v)", g.AckPSN, g.NextPSN, err)
	}
	f.end()
}

// The same holder keeps the second tenant from registering the member at all.
func TestAnotherKeyKeepsFromRegistering(t *testing.T) {
	f := newBridgedSwitch(t, 4, tenantsConfig())
	f.claim(t)
	f.enrollUnder(2, 1, 1, 2)
	f.looked(2) // what the kernel says now
	if a := f.asked(2, 2, 0); a.Origin.Port != 2 {
		t.Errorf("the kernel has the member behind f2; the second tenant's question goes to f%d %v, where the first tenant has claimed it to be, alone", a.Origin.Port, a.Origin.MAC)
	}
}
