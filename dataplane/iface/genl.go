// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package iface

import (
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// genlHeader is the header of a generic netlink message: command, version, 2 bytes reserved. nl.Genlmsg
// has the first 2 bytes and reads 4, so that what lies beside it is sent, and another goroutine may write that.
type genlHeader [nl.SizeofGenlmsg]byte

// Len is the length of the header.
func (h genlHeader) Len() int { return len(h) }

// Serialize returns the header's bytes.
func (h genlHeader) Serialize() []byte { return h[:] }

// askGenl sends a request to a family of generic netlink, and returns the answers without their netlink headers.
func askGenl(family uint16, flags int, command, version byte, attribute *nl.RtAttr) ([][]byte, error) {
	req := nl.NewNetlinkRequest(int(family), flags)
	req.AddData(genlHeader{command, version})
	req.AddData(attribute)
	return req.Execute(unix.NETLINK_GENERIC, 0)
}

// genlFamily returns the number of a family of generic netlink. The error of a kernel without it wraps unix.ENOENT.
func genlFamily(name string) (uint16, error) {
	answers, err := askGenl(nl.GENL_ID_CTRL, 0, nl.GENL_CTRL_CMD_GETFAMILY, nl.GENL_CTRL_VERSION,
		nl.NewRtAttr(nl.GENL_CTRL_ATTR_FAMILY_NAME, nl.ZeroTerminated(name)))
	if err != nil {
		return 0, err
	}
	for _, m := range answers {
		if len(m) < nl.SizeofGenlmsg {
			continue
		}
		attrs, err := nl.ParseRouteAttr(m[nl.SizeofGenlmsg:])
		if err != nil {
			return 0, err
		}
		for _, a := range attrs {
			if a.Attr.Type == nl.GENL_CTRL_ATTR_FAMILY_ID && len(a.Value) >= 2 {
				return binary.NativeEndian.Uint16(a.Value), nil
			}
		}
	}
	return 0, fmt.Errorf("the kernel's answer has no number of the generic netlink family %s", name)
}
