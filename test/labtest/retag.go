// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// Retag returns a frame that a packet socket with PACKET_AUXDATA has received, with the outer
// VLAN tag that the kernel has taken out of it. control has the socket's control messages. A
// frame without such a tag is returned as it is, and one with it as a copy.
func Retag(frame, control []byte) []byte {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return frame
	}
	for _, m := range messages {
		d := m.Data // struct tpacket_auxdata: status, len, snaplen u32, mac, net, vlan_tci, vlan_tpid u16
		if m.Header.Level != unix.SOL_PACKET || m.Header.Type != unix.PACKET_AUXDATA || len(d) < 20 ||
			binary.NativeEndian.Uint32(d)&unix.TP_STATUS_VLAN_VALID == 0 {
			continue
		}
		tag := binary.BigEndian.AppendUint16(nil, binary.NativeEndian.Uint16(d[18:]))
		tag = binary.BigEndian.AppendUint16(tag, binary.NativeEndian.Uint16(d[16:]))
		return slices.Concat(frame[:12], tag, frame[12:])
	}
	return frame
}
