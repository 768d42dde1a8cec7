// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
)

// A host whose link flaps resolves the group's address again before its second request,
// which Linux sends after 1 s: the first request goes out before the switch can receive
// it. One of a few flaps is enough, since the machine may be busy.
func TestLinkFlapDoesNotCostTheNeighbourEntry(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}})
	r.join()
	h := r.star.Hosts[1]
	const second, enough = time.Second, 900 * time.Millisecond
	best := time.Hour
	for range 5 {
		resolve(t, h, r.group)
		if err := h.NS.SetDown(lab.HostInterface); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		if err := h.NS.SetUp(lab.HostInterface); err != nil {
			t.Fatal(err)
		}
		if best = min(best, timeToResolve(t, h, r.group.String())); best < enough {
			return
		}
		time.Sleep(second)
	}
	t.Errorf("the host knows the group's address %v after the link came up at the earliest, want less than %v", best, enough)
}

// timeToResolve sends to a group, as a requester does, until h's kernel has resolved
// the group's address.
func timeToResolve(t *testing.T, h lab.Host, group string) time.Duration {
	t.Helper()
	link, err := h.NS.Handle().LinkByName(h.Interface)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	until(t, "the host knows the group's address", func() bool {
		if err := h.NS.Do(func() error {
			c, err := net.Dial("udp", net.JoinHostPort(group, "9"))
			if err != nil {
				return nil // the route comes back with the link
			}
			defer c.Close()
			_, err = c.Write([]byte{0})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		list, err := h.NS.Handle().NeighList(link.Attrs().Index, unix.AF_INET)
		if err != nil {
			t.Fatal(err)
		}
		const valid = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE
		for _, n := range list {
			if n.IP.Equal(net.ParseIP(group)) && n.State&valid != 0 {
				return true
			}
		}
		return false
	})
	return time.Since(start)
}
