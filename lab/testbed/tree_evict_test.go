// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// TestEvictionInTree: a host behind another leaf than the master's is killed in mid-transfer.
// The rest completes, byte for byte; the master's event names the member and the reason, and so
// does the journal of the switch that the host was at.
func TestEvictionInTree(t *testing.T) {
	labtest.Require(t)
	f, err := BuildFabric(t.Context(), FabricConfig{Dir: t.TempDir(), Gleamd: gleamd(t), FastPath: labtest.FastPath(), Fabric: fabric.Config{Topology: fabric.LeafSpine(3, 1, 2)}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size, message, deadline = 1 << 20, 32 << 10, 20 * time.Second
	members := openHosts(t, f, len(f.Hosts), Endpoints{Memory: size, Deadline: deadline, Answer: true})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	group, last := fabric.GroupsIPv4.Addr().Next(), len(members)-1
	groups, err := Join(ctx, endpoint.MasterConfig{GroupIP: group, Policy: mcast.Evict, PathMTU: 1024, WindowBase: windowBase}, members)
	if err != nil {
		t.Fatal(err)
	}
	source, dead := members[0], members[last]
	for i := range source.Memory.Bytes() {
		source.Memory.Bytes()[i] = byte(i*7>>3 + 1)
	}
	var killed, begin time.Time
	var stall time.Duration
	done := 0
	begin = time.Now()
	err = Writes(source.Memory, message).SendToGroup(ctx, groups[0], source.Memory, 1, func(bytes int) {
		stall = max(stall, time.Since(begin))
		if done += bytes; done == size/2 {
			killed = time.Now()
			_ = dead.Close()
		}
		begin = time.Now()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("complete %v after the host was killed; the longest message took %v", time.Since(killed).Round(time.Millisecond), stall.Round(time.Millisecond))
	for _, m := range members[:last] {
		if !bytes.Equal(m.Memory.Bytes(), source.Memory.Bytes()) {
			t.Errorf("%v has other bytes", m.IP)
		}
	}
	for told := false; !told; {
		select {
		case e, ok := <-groups[0].Events():
			if !ok {
				t.Fatal("the master was told nothing of the eviction")
			}
			if told = e.Kind == endpoint.Evicted; told && (e.Member != dead.IP || e.Reason != envelope.Evicted || e.Cause() == "") {
				t.Errorf("the master's event: %+v, %s", e, e.Cause())
			} else if told {
				t.Logf("the master was told: %v %v, %s, %v after the kill", e.Member, e.Reason, e.Cause(), time.Since(killed).Round(time.Millisecond))
			}
		case <-ctx.Done():
			t.Fatal("the master was told nothing of the eviction")
		}
	}
	at := f.Gleamds[f.Hosts[last].Switch.Name].Client
	list, err := at.Events(ctx, 0, 0)
	if err != nil || !slices.ContainsFunc(list.Events, func(e api.Event) bool {
		return e.Kind == api.EventEvicted && e.Group == group && e.Member == dead.IP && e.PSN != nil && e.Reason != ""
	}) {
		t.Errorf("%v: the switch of the dead host has no event: %+v", err, list)
	}
	for name, g := range f.Gleamds {
		x, err := g.Client.Group(ctx, group)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for end := time.Now().Add(10 * time.Second); slices.ContainsFunc(x.Members, func(m api.Member) bool { return m.IP == dead.IP }); {
			if time.Sleep(20 * time.Millisecond); time.Now().After(end) {
				t.Errorf("%s still has the member: %+v", name, x.Members)
				break
			}
			if x, err = g.Client.Group(ctx, group); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := groups[0].Close(); err != nil {
		t.Error(err)
	}
}
