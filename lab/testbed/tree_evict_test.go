// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bytes"
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// treeMember is a member of a group, at an address of a host.
type treeMember struct {
	host *fabric.Host
	ip   netip.Addr
	dev  *soft.Device // the host's
	envs *endpoint.Host
	mr   endpoint.MR
}

// newMember opens what a member needs: dev is the device of its host.
func newMember(t *testing.T, f *Fabric, h *fabric.Host, ip netip.Addr, dev *soft.Device, memory int, deadline time.Duration) *treeMember {
	t.Helper()
	m := &treeMember{host: h, ip: ip, dev: dev}
	var err error
	if m.mr, err = dev.RegisterMemory(make([]byte, memory), 0x1000_0000, endpoint.LocalWrite|endpoint.RemoteWrite); err != nil {
		t.Fatal(err)
	}
	if err := h.NS.Do(func() (err error) { m.envs, err = endpoint.NewHost(ip, f.hostConfig(deadline)); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.envs.Close() })
	return m
}

func openDevice(t *testing.T, h *fabric.Host, seed int) (dev *soft.Device) {
	t.Helper()
	if err := h.NS.Do(func() (err error) {
		dev, err = soft.Open(soft.Config{Interface: fabric.HostInterface, Seed: uint64(seed)})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

func (f *Fabric) hostConfig(deadline time.Duration) endpoint.HostConfig {
	return endpoint.HostConfig{Auth: envelope.Auth{Keys: envelope.Keys{KeyID: f.Key}, Send: KeyID}, Deadline: deadline}
}

// joinMembers makes a group of members, the first as its master.
func joinMembers(ctx context.Context, f *Fabric, c endpoint.MasterConfig, members []*treeMember, deadline time.Duration) ([]*endpoint.Group, error) {
	var all []session.Participant
	for _, m := range members {
		all = append(all, session.Participant{Name: m.ip.String(), Do: m.host.NS.Do, Local: endpoint.Local{
			Device: m.dev, Memory: m.mr, Host: m.envs, HostConfig: f.hostConfig(deadline),
			QPConfig: endpoint.QPConfig{LocalIP: m.ip, SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN(), MaxSend: 16, MaxRecv: 16, Timeout: 14, RetryCount: 7, RNRRetry: 7},
		}})
	}
	c.PathMTU, c.WindowBase = 1024, 0x5000_0000_0000
	return session.Join(ctx, netip.AddrPortFrom(members[0].ip, 7000), c, all)
}

// write sends a part of the source's memory by a WRITE, and waits for its completion.
func write(ctx context.Context, g *endpoint.Group, mr endpoint.MR, offset, length int) error {
	w := g.Info().Window
	wr := endpoint.SendWR{Op: endpoint.Write, Local: endpoint.Segment{MR: mr, Offset: offset, Len: length}, RemoteAddr: w.Base + uint64(offset), RKey: w.RKey}
	if _, err := g.QP().PostSend(wr); err != nil {
		return err
	}
	var wc [1]endpoint.Completion
	if _, err := g.QP().Poll(ctx, wc[:]); err != nil {
		return err
	}
	return wc[0].Err()
}

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
	var members []*treeMember
	for i, h := range f.Hosts {
		members = append(members, newMember(t, f, h, h.IPv4, openDevice(t, h, i), size, deadline))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	group, last := fabric.GroupsIPv4.Addr().Next(), len(members)-1
	groups, err := joinMembers(ctx, f, endpoint.MasterConfig{GroupIP: group, Policy: mcast.Evict}, members, deadline)
	if err != nil {
		t.Fatal(err)
	}
	source, dead := members[0], members[last]
	for i := range source.mr.Bytes() {
		source.mr.Bytes()[i] = byte(i*7>>3 + 1)
	}
	var killed time.Time
	var stall time.Duration
	for at := 0; at < size; at += message {
		if at == size/2 {
			killed = time.Now()
			dead.dev.Close()
			dead.envs.Close()
		}
		begin := time.Now()
		if err := write(ctx, groups[0], source.mr, at, message); err != nil {
			t.Fatalf("the WRITE at %d: %v", at, err)
		}
		stall = max(stall, time.Since(begin))
	}
	t.Logf("complete %v after the host was killed; the longest message took %v", time.Since(killed).Round(time.Millisecond), stall.Round(time.Millisecond))
	for _, m := range members[:last] {
		if !bytes.Equal(m.mr.Bytes(), source.mr.Bytes()) {
			t.Errorf("%v has other bytes", m.ip)
		}
	}
	for told := false; !told; {
		select {
		case e, ok := <-groups[0].Events():
			if !ok {
				t.Fatal("the master was told nothing of the eviction")
			}
			if told = e.Kind == endpoint.Evicted; told && (e.Member != dead.ip || e.Reason != envelope.Evicted || e.Cause() == "") {
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
		return e.Kind == api.EventEvicted && e.Group == group && e.Member == dead.ip && e.PSN != nil && e.Reason != ""
	}) {
		t.Errorf("%v: the switch of the dead host has no event: %+v", err, list)
	}
	for name, g := range f.Gleamds {
		x, err := g.Client.Group(ctx, group)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for end := time.Now().Add(10 * time.Second); slices.ContainsFunc(x.Members, func(m api.Member) bool { return m.IP == dead.ip }); {
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
