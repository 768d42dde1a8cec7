// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// idleQP is a queue pair that nothing comes to.
type idleQP struct {
	endpoint.QP
	ip netip.Addr
}

func (q idleQP) Info() endpoint.QPInfo { return endpoint.QPInfo{IP: q.ip, QPN: 0x100} }
func (q idleQP) Close() error          { return nil }

func (q idleQP) Connect(context.Context, endpoint.Remote) error { return nil }

// A member that cannot take part ends the wait of the master, and is named first.
func TestJoinEndsWithTheFirstFailure(t *testing.T) {
	master := labtest.Star(t, lab.StarConfig{Hosts: 1}).Hosts[0]
	begin := time.Now()
	groups, err := Join(t.Context(), netip.AddrPortFrom(master.IPv4, 7001), endpoint.MasterConfig{GroupIP: netip.MustParseAddr("10.77.254.1"), PathMTU: 1024}, []Participant{
		{Name: "master", Do: master.NS.Do, Local: endpoint.Local{
			QP:         idleQP{ip: master.IPv4},
			HostConfig: endpoint.HostConfig{Auth: envelope.Auth{Insecure: true}, Deadline: time.Minute},
		}},
		{Name: "broken", Local: endpoint.Local{}},
		{Name: "elsewhere", Do: func(func() error) error { return errors.New("no such namespace") }},
	})
	if len(groups) != 3 || groups[0] != nil || groups[1] != nil || groups[2] != nil {
		t.Errorf("groups %v", groups)
	}
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"host master: ", "host broken: join as member: neither a QP nor a Device", "host elsewhere: no such namespace"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	if err := Leave(groups); err != nil {
		t.Errorf("leave: %v", err)
	}
}

// A listener that cannot be made is named before anything is joined.
func TestJoinNamesTheListener(t *testing.T) {
	_, err := Join(t.Context(), netip.MustParseAddrPort("192.0.2.1:0"), endpoint.MasterConfig{}, []Participant{{Name: "h1"}})
	if err == nil || !strings.Contains(err.Error(), "host h1: listen tcp 192.0.2.1:0") {
		t.Errorf("%v", err)
	}
}

// Errors are in the order of the calls.
func TestEach(t *testing.T) {
	err := Each(3, func(i int) error {
		if i == 1 {
			return nil
		}
		return errors.New(strings.Repeat("x", i+1))
	})
	if err == nil || err.Error() != "x\nxxx" {
		t.Errorf("%q", err)
	}
}

// unansweredQP is an idleQP whose peer's address has no answer to the first tries.
type unansweredQP struct {
	idleQP
	unanswered int
	tries      *atomic.Int32
}

func (q unansweredQP) Connect(context.Context, endpoint.Remote) error {
	if int(q.tries.Add(1)) <= q.unanswered {
		return fmt.Errorf("nobody answers: %w", unix.ETIMEDOUT)
	}
	return errors.New("enough tries")
}

// A lost packet of the address resolution does not fail a join; an address that never
// answers does.
func TestAddressResolutionIsTriedAgain(t *testing.T) {
	for unanswered, want := range map[int]string{2: "enough tries", 100: "nobody answers"} {
		hosts := labtest.Star(t, lab.StarConfig{Hosts: 2}).Hosts
		master, member := hosts[0], hosts[1]
		cfg := endpoint.HostConfig{Auth: envelope.Auth{Insecure: true}, Deadline: time.Minute}
		qp := unansweredQP{idleQP{ip: master.IPv4}, unanswered, new(atomic.Int32)}
		_, err := Join(t.Context(), netip.AddrPortFrom(master.IPv4, 7001), endpoint.MasterConfig{GroupIP: netip.MustParseAddr("10.77.254.1"), PathMTU: 1024}, []Participant{
			{Name: "master", Do: master.NS.Do, Local: endpoint.Local{QP: qp, HostConfig: cfg}},
			{Name: "member", Do: member.NS.Do, Local: endpoint.Local{QP: idleQP{ip: member.IPv4}, HostConfig: cfg}},
		})
		if err == nil || !strings.Contains(err.Error(), want) || qp.tries.Load() != 3 {
			t.Errorf("%d tries without an answer: %v after %d tries, want %q after 3", unanswered, err, qp.tries.Load(), want)
		}
	}
}
