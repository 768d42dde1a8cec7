// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/vishvananda/netlink"
)

// tc runs the program of this name.
func tc(words ...string) error {
	if out, err := exec.Command("tc", words...).CombinedOutput(); err != nil {
		return fmt.Errorf("tc %s: %w: %s", strings.Join(words, " "), err, out)
	}
	return nil
}

// queue sets the queueing discipline of h's outgoing packets.
func (h *host) queue(discipline ...string) error {
	return tc(append([]string{"qdisc", "replace", "dev", h.link, "root"}, discipline...)...)
}

// narrow limits the rate of h's outgoing packets, and takes those of queue pairs in turn, as an
// adapter does: an acknowledgement does not wait for the data of others. The queue is long enough for
// all packets that a host's queue pairs have outstanding, as an adapter's memory is: none is dropped.
func (h *host) narrow(rate string) error {
	if err := h.queue("handle", "1:", "tbf", "rate", rate, "burst", "10kb", "limit", "4mb"); err != nil {
		return err
	}
	return tc("qdisc", "add", "dev", h.link, "parent", "1:1", "fq_codel", "limit", "20000", "memory_limit", "128mb", "target", "1000s", "interval", "1000s", "noecn")
}

// dropped counts the packets that h's queue has dropped since narrow.
func (h *host) dropped() (n uint64, err error) {
	link, err := h.ns.Handle().LinkByName(h.link)
	if err != nil {
		return 0, fmt.Errorf("interface %s: %w", h.link, err)
	}
	all, err := h.ns.Handle().QdiscList(link)
	if err != nil {
		return 0, fmt.Errorf("queues of %s: %w", h.link, err)
	}
	for _, q := range all {
		if s := q.Attrs().Statistics; s != nil && s.Queue != nil && q.Attrs().Parent == netlink.MakeHandle(1, 1) {
			n += uint64(s.Queue.Drops)
		}
	}
	return n, nil
}

// droppedAll counts them for all hosts that MPI's ranks are at.
func (b *bench) droppedAll() (n uint64, err error) {
	for _, h := range b.hosts[:mpiStar] {
		one, err := h.dropped()
		if err != nil {
			return 0, err
		}
		n += one
	}
	return n, nil
}

// fast ends narrow.
func (h *host) fast() error {
	return h.queue("pfifo", "limit", "10000")
}

// lose makes h lose packets at random that it sends and that it receives. Incoming
// packets take a detour over an ifb interface, whose queue loses them; netem on the
// switch's port would have no effect, because AF_XDP bypasses it.
func (h *host) lose(sent, received string) error {
	if err := h.queue("netem", "limit", "10000", "loss", sent); err != nil {
		return err
	}
	if err := h.detour(); err != nil {
		return err
	}
	return errors.Join(
		tc("qdisc", "replace", "dev", h.ifb, "root", "netem", "limit", "10000", "loss", received),
		tc("qdisc", "add", "dev", h.link, "handle", "ffff:", "ingress"),
		// RoCE alone: ARP and envelopes are not tested here.
		tc("filter", "add", "dev", h.link, "parent", "ffff:", "protocol", "ip", "prio", "1", "u32",
			"match", "ip", "protocol", "17", "0xff", "match", "ip", "dport", "4791", "0xffff",
			"action", "mirred", "egress", "redirect", "dev", h.ifb),
	)
}

// detour makes h's ifb interface. It stays, because making one takes long.
func (h *host) detour() error {
	if h.ifb != "" {
		return nil
	}
	link := &netlink.Ifb{LinkAttrs: netlink.NewLinkAttrs()}
	link.Name = "ifb" + h.link
	if err := netlink.LinkAdd(link); err != nil {
		return fmt.Errorf("interface %s of type ifb (is the module ifb loaded?): %w", link.Name, err)
	}
	h.ifb = link.Name
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", h.ifb, err)
	}
	return nil
}

// setMTU sets the MTU of h's link.
func (h *host) setMTU(mtu int) error {
	link, err := h.ns.Handle().LinkByName(h.link)
	if err != nil {
		return fmt.Errorf("interface %s: %w", h.link, err)
	}
	return h.ns.Handle().LinkSetMTU(link, mtu)
}

// heal ends it.
func (h *host) heal() error {
	return errors.Join(h.fast(), tc("qdisc", "del", "dev", h.link, "ingress"))
}
