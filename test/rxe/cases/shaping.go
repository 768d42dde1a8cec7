// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// tc runs the program of this name.
func tc(words ...string) error {
	if out, err := exec.Command("tc", words...).CombinedOutput(); err != nil {
		return fmt.Errorf("tc %s: %w: %s", strings.Join(words, " "), err, out)
	}
	return nil
}

// queue sets the queueing discipline of what h sends.
func (h *host) queue(discipline ...string) error {
	return tc(append([]string{"qdisc", "replace", "dev", h.link, "root"}, discipline...)...)
}

// lose makes h lose packets at random that it sends and that it receives. What
// comes in takes a detour over an ifb interface, whose queue loses it; netem on
// the switch's port would see nothing, because AF_XDP goes past it.
func (h *host) lose(sent, received string) error {
	if err := h.queue("netem", "limit", "10000", "loss", sent); err != nil {
		return err
	}
	ifb := h.ifb()
	if out, err := exec.Command("ip", "link", "add", ifb, "type", "ifb").CombinedOutput(); err != nil {
		return fmt.Errorf("ip link add %s type ifb: %w: %s", ifb, err, out)
	}
	if out, err := exec.Command("ip", "link", "set", ifb, "up").CombinedOutput(); err != nil {
		return fmt.Errorf("ip link set %s up: %w: %s", ifb, err, out)
	}
	return errors.Join(
		tc("qdisc", "add", "dev", ifb, "root", "netem", "limit", "10000", "loss", received),
		tc("qdisc", "add", "dev", h.link, "handle", "ffff:", "ingress"),
		// RoCE alone: ARP and envelopes are not what is tested.
		tc("filter", "add", "dev", h.link, "parent", "ffff:", "protocol", "ip", "prio", "1", "u32",
			"match", "ip", "protocol", "17", "0xff", "match", "ip", "dport", "4791", "0xffff",
			"action", "mirred", "egress", "redirect", "dev", ifb),
	)
}

func (h *host) ifb() string { return "ifb" + h.link }

// heal ends it.
func (h *host) heal() error {
	err := errors.Join(h.queue("pfifo", "limit", "10000"), tc("qdisc", "del", "dev", h.link, "ingress"))
	if out, e := exec.Command("ip", "link", "del", h.ifb()).CombinedOutput(); e != nil {
		err = errors.Join(err, fmt.Errorf("ip link del %s: %w: %s", h.ifb(), e, out))
	}
	return err
}
