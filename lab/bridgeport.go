// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// BridgePortFlag is a property of a bridge's port (IFLA_BRPORT_…).
type BridgePortFlag int

// Properties of a bridge's port.
const (
	PortState    = BridgePortFlag(nl.IFLA_BRPORT_STATE) // the state, one of BR_STATE_…
	PortLocked   = BridgePortFlag(nl.IFLA_BRPORT_LOCKED)
	PortLearning = BridgePortFlag(nl.IFLA_BRPORT_LEARNING)
	PortIsolated = BridgePortFlag(nl.IFLA_BRPORT_ISOLATED)
)

// States of a bridge's port that a bridge without a spanning tree does not change.
const (
	StateDisabled   = 0
	StateForwarding = 3
)

// SetBridgePort sets a property of interface ifindex of the calling thread's network
// namespace, which is a port of a bridge.
func SetBridgePort(ifindex int, flag BridgePortFlag, value uint8) error {
	req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_BRIDGE)
	msg.Index = int32(ifindex)
	req.AddData(msg)
	info := nl.NewRtAttr(unix.IFLA_PROTINFO|unix.NLA_F_NESTED, nil)
	info.AddRtAttr(int(flag), []byte{value})
	req.AddData(info)
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("set property %d of bridge port %d to %d: %w", flag, ifindex, value, err)
	}
	return nil
}

// SetBridgePort sets a property of an interface that is a port of a bridge.
func (n *Namespace) SetBridgePort(name string, flag BridgePortFlag, value uint8) error {
	link, err := n.link(name)
	if err != nil {
		return err
	}
	return n.Do(func() error { return SetBridgePort(link.Attrs().Index, flag, value) })
}
