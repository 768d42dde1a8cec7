// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
)

// A receiver that is registered with the numbers of the first time, after traffic,
// would acknowledge new messages unread: no completion may rest on that. Strict fails
// the group, evict removes the member; both report the PSN that the receiver expects.
// (A deleted group, or a restarted switch, has no memory of the first time.)
func TestOldNumbers(t *testing.T) {
	const size, n = 1000, 5
	for _, policy := range []string{api.PolicyStrict, api.PolicyEvict} {
		t.Run(policy, func(t *testing.T) {
			r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 4}, memory: n * size, policy: policy})
			r.join()
			first := bytes.Clone(r.fill(0))
			r.write(0, size)
			r.same(0)
			reg := r.registration()
			if err := r.engine.Delete(r.group); err != nil {
				t.Fatal(err)
			}
			reg.Members[0].SQPSN = (reg.Members[0].SQPSN + n) & 0xFFFFFF
			for i := range 2 { // and host 3 has its old ones
				m := &reg.Members[1+i]
				m.RQPSN = (m.RQPSN + n) & 0xFFFFFF
			}
			if err := r.engine.Register(reg); err != nil {
				t.Fatal(err)
			}
			old := r.hosts[3]
			want := (reg.Members[3].RQPSN + n) & 0xFFFFFF
			told := func(kind string) (e *api.Event) {
				es, err := r.engine.Events(canceled(), 0)
				if err != nil {
					t.Fatal(err)
				}
				for i := range es.Events {
					if e := &es.Events[i]; e.Kind == kind && e.Member == old.ip {
						return e
					}
				}
				return nil
			}
			until(t, "the event", func() bool { return told(api.EventMismatch) != nil })
			if e := told(api.EventMismatch); !strings.Contains(e.Reason, fmt.Sprintf("expects PSN 0x%06x", want)) {
				t.Errorf("event %+v, want PSN %#06x", e, want)
			}
			for i, b := range r.hosts[0].mr.Bytes() {
				r.hosts[0].mr.Bytes()[i] = ^b
			}
			r.post(0, size)
			if policy == api.PolicyEvict {
				r.complete(r.hosts[0], n)
				until(t, "the eviction", func() bool { return told(api.EventEvicted) != nil })
				if !bytes.Equal(r.hosts[1].mr.Bytes(), r.hosts[0].mr.Bytes()) {
					t.Error("a member with the right numbers lacks what was completed")
				}
			} else {
				var wc [1]endpoint.Completion
				if _, err := r.hosts[0].qp.Poll(r.ctx, wc[:]); err != nil {
					t.Fatal(err)
				}
				if wc[0].Status != endpoint.RemoteOpErr {
					t.Errorf("strict: completion with status %d, and a member did not get the message; want %d", wc[0].Status, endpoint.RemoteOpErr)
				}
				until(t, "the failure", func() bool { return told(api.EventFailed) != nil })
			}
			if !bytes.Equal(old.mr.Bytes(), first) {
				t.Error("the member with old numbers was written to")
			}
			g, err := r.engine.Group(r.group)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range g.Members {
				if says := strings.Contains(m.Diagnosis, "expects PSN"); says != (m.IP == old.ip) {
					t.Errorf("%s: %q", m.IP, m.Diagnosis)
				}
			}
		})
	}
}
