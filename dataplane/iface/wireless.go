// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package iface

import (
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Of linux/nl80211.h.
const (
	wirelessFamily       = "nl80211"
	wirelessGetInterface = 5
	wirelessIfindex      = 3
)

// isWireless reports whether an interface is one of Wi-Fi: the kernel's wireless subsystem knows
// it.
func isWireless(ifindex int) bool {
	family, err := genlFamily(wirelessFamily)
	if err != nil {
		return false // the kernel has no Wi-Fi
	}
	_, err = askGenl(family, unix.NLM_F_ACK, wirelessGetInterface, 1, nl.NewRtAttr(wirelessIfindex, nl.Uint32Attr(uint32(ifindex))))
	return err == nil
}
