// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Feature is an interface feature that can be switched, as by `ethtool -K`.
type Feature uint32

// Features: the ETHTOOL_S… commands of linux/ethtool.h.
const (
	// TXChecksum off makes the kernel fill in transport checksums before a frame leaves,
	// as on a real wire. Otherwise a veth passes them on unfinished, and a reader of raw
	// frames at the far end gets wrong ones. TSO goes off with it.
	TXChecksum Feature = 0x17
	// GRO on starts NAPI on a veth without an XDP program; frames that XDP
	// redirects into its peer are dropped without.
	GRO Feature = 0x2c
)

// ethtoolValue and ifreqPtr are struct ethtool_value and struct ifreq (with
// ifr_data) of linux/ethtool.h and linux/if.h.
type ethtoolValue struct{ cmd, data uint32 }

type ifreqPtr struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [24 - unsafe.Sizeof(uintptr(0))]byte
}

// SetFeature switches a feature of an interface.
func (n *Namespace) SetFeature(name string, f Feature, on bool) error {
	if len(name) >= unix.IFNAMSIZ {
		return fmt.Errorf("interface name %q is longer than %d bytes", name, unix.IFNAMSIZ-1)
	}
	value := &ethtoolValue{cmd: uint32(f)}
	if on {
		value.data = 1
	}
	req := &ifreqPtr{data: unsafe.Pointer(value)}
	copy(req.name[:], name)
	err := n.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(req)))
		runtime.KeepAlive(value)
		if errno != 0 {
			return errno
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("set feature %#x of %s in %s to %t: %w", uint32(f), name, n.name, on, err)
	}
	return nil
}
