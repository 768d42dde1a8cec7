// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
)

// WaitUp waits until the interfaces of the namespace that were set up carry traffic,
// and until its IPv6 addresses can be resolved by neighbours. Both happen in the kernel
// some time after the calls; a first packet sent earlier is lost, and its
// retransmission costs a second.
func (n *Namespace) WaitUp(timeout time.Duration) error {
	end := time.Now().Add(timeout)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		waiting, err := n.whyNotUp()
		if errors.Is(err, netlink.ErrDumpInterrupted) {
			waiting, err = "interfaces keep changing", nil
		}
		if err != nil {
			return fmt.Errorf("interfaces in %s: %w", n.name, err)
		}
		if waiting == "" {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("interfaces in %s are not up after %v: %s", n.name, timeout, waiting)
		}
		time.Sleep(pause)
	}
}

// whyNotUp names an interface that is not up yet; "" if all are.
func (n *Namespace) whyNotUp() (string, error) {
	links, err := n.handle.LinkList()
	if err != nil {
		return "", err
	}
	for _, l := range links {
		a := l.Attrs()
		if a.Flags&net.FlagUp == 0 {
			continue
		}
		// Loopback and dummy interfaces stay in state unknown while up.
		if a.OperState != netlink.OperUp && a.OperState != netlink.OperUnknown {
			return fmt.Sprintf("%s is %s", a.Name, a.OperState), nil
		}
	}
	return n.whyNotResolvable(links)
}

// whyNotResolvable returns an IPv6 address whose solicited-node group has not been
// joined. The kernel joins it in a work queue, also for addresses without duplicate
// address detection (net/ipv6/addrconf.c:addrconf_dad_work).
func (n *Namespace) whyNotResolvable(links []netlink.Link) (string, error) {
	addrs, err := n.handle.AddrList(nil, netlink.FAMILY_V6)
	if err != nil {
		return "", err
	}
	var joined []byte // lines of: index, name, group in hex, …
	err = n.Do(func() (err error) {
		joined, err = os.ReadFile("/proc/thread-self/net/igmp6")
		return err
	})
	if err != nil {
		return "", err
	}
	groups := make(map[string]bool)
	for line := range strings.Lines(string(joined)) {
		if f := strings.Fields(line); len(f) > 2 {
			groups[f[1]+" "+f[2]] = true
		}
	}
	for _, a := range addrs {
		ip, ok := netip.AddrFromSlice(a.IP)
		i := indexOf(links, a.LinkIndex)
		if !ok || i < 0 || links[i].Attrs().Flags&(net.FlagUp|net.FlagLoopback) != net.FlagUp {
			continue
		}
		b := ip.As16()
		group := fmt.Sprintf("ff0200000000000000000001ff%x", b[13:]) // RFC 4291 §2.7.1
		if name := links[i].Attrs().Name; !groups[name+" "+group] {
			return fmt.Sprintf("%s on %s is not resolvable", ip, name), nil
		}
	}
	return "", nil
}

func indexOf(links []netlink.Link, index int) int {
	for i, l := range links {
		if l.Attrs().Index == index {
			return i
		}
	}
	return -1
}
