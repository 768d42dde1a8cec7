// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"fmt"
)

// LostLink is the adjacency of two switches whose loss has ended a group. It is the Err of
// a GroupGone with SwitchLost.
type LostLink struct {
	At   SwitchID // the switch that has lost the other one
	To   SwitchID
	Port string // the port of At, toward To
}

// Error says what was lost.
func (l *LostLink) Error() string {
	return fmt.Sprintf("switch %v lost switch %v at port %s", l.At, l.To, l.Port)
}

// err returns l as an error, nil if nothing was lost.
func (l LostLink) err() error {
	if l == (LostLink{}) {
		return nil
	}
	return &l
}

// maxPortName is the longest name of a Linux interface in bytes.
const maxPortName = 15

// inPortName reports whether a port's name may have c on the wire: names are printed.
func inPortName(c byte) bool { return c > ' ' && c < 0x7F }

func (l *LostLink) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, uint64(l.At)), uint64(l.To))
	n := min(len(l.Port), maxPortName)
	b = append(b, byte(n))
	for _, c := range []byte(l.Port[:n]) {
		if !inPortName(c) {
			c = '?'
		}
		b = append(b, c)
	}
	return b
}

func parseLostLink(r *reader) (l LostLink) {
	l.At, l.To = SwitchID(r.u64()), SwitchID(r.u64())
	n := int(r.u8())
	if n > maxPortName {
		r.fail("length of a port's name")
		return l
	}
	name := r.take(n)
	for _, c := range name {
		if !inPortName(c) {
			r.fail("name of a port")
			return l
		}
	}
	l.Port = string(name)
	return l
}
