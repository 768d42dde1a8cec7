// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// The examples that libgleam's gleam_cm_private writes too (host/libgleam/lockstep) are read, and
// authentic.
func TestPrivateExamples(t *testing.T) {
	file, err := os.ReadFile("testdata/private")
	if err != nil {
		t.Fatal(err)
	}
	key := bytes.Repeat([]byte{0xa5}, 40)
	n := 0
	for line := range strings.Lines(string(file)) {
		var group, member, data string
		var port uint16
		var qpn, rkey uint32
		var nonce, flags, base, length uint64
		var expect int
		if _, err := fmt.Sscan(line, &group, &member, &port, &qpn, &nonce, &flags, &base, &length, &rkey, &expect, &data); err != nil {
			continue // the heading
		}
		n++
		b, err := hex.DecodeString(data)
		if err != nil {
			t.Fatal(err)
		}
		q := Request{Dst: netip.MustParseAddr(group), Src: netip.MustParseAddr(member), QPN: rocev2.QPN(qpn)}
		p, ok := readPrivate(b)
		if !ok || p.receiveOnly != (flags != 0) || p.window != (mcast.Window{Base: base, Len: length, RKey: rkey}) || p.expect != expect || q.authentic(key, port, b) != (p.key == 7) {
			t.Errorf("%s: read as %+v, %v; authentic %v", line, p, ok, q.authentic(key, port, b))
		}
	}
	if n != 5 {
		t.Errorf("%d examples", n)
	}
}
