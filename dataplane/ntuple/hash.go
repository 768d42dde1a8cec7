// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package ntuple

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// What is asked of struct ethtool_rxnfc for the fields that a hash goes by (include/uapi/linux/ethtool.h).
const (
	cmdHash = 0x29 // ETHTOOL_GRXFH

	atFlowType = 4
	hashPorts  = 1<<6 | 1<<7 // RXH_L4_B_0_1 and RXH_L4_B_2_3
)

// HashesPorts reports whether an interface chooses the receive queue of a UDP packet over IPv4 by addresses and
// ports (`ethtool -n DEV rx-flow-hash udp4`), and not by addresses alone. The error of a driver that
// does not say wraps unix.EOPNOTSUPP.
func HashesPorts(name string) (bool, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, fmt.Errorf("hash of %s: %w", name, err)
	}
	defer unix.Close(fd)
	b := request(cmdHash)
	binary.NativeEndian.PutUint32(b[atFlowType:], udp4)
	if err := call(fd, name, b); err != nil {
		return false, fmt.Errorf("hash of %s: %w", name, err)
	}
	return binary.NativeEndian.Uint64(b[atData:])&hashPorts == hashPorts, nil
}
