// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"testing"
	"time"
)

// FuzzMachines gives each machine an arbitrary message, by the form that passes
// where nothing is authenticated: nothing panics, and no machine answers with
// what does not parse.
func FuzzMachines(f *testing.F) {
	for _, m := range examples() {
		b, err := Append(nil, &m, testKeys, 0)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, true)
		f.Add(b, false)
	}
	f.Fuzz(func(t *testing.T, b []byte, fresh bool) {
		insecure := Auth{Insecure: true}
		w := newWorld(t, RegistrarConfig{Auth: insecure, MaxMembers: 300})
		reg := sample(1, 2)
		reg.Members[0].IP = netip.MustParseAddr("10.0.0.2")
		mem := w.addMember(t, reg.Members[0], reg)
		mas := w.addMaster(t, "A", MasterConfig{Local: masterAddr, Auth: insecure}, reg)
		var out Output
		mas.Start(0, &out)
		if !fresh {
			w.do("A", &out)
			w.run(50 * time.Millisecond)
		}
		// The header's guards are what a fuzzer cannot guess.
		if msg, err := Parse(b); err == nil && msg.KeyID == 0 {
			msg.Instance, msg.Epoch = w.sw.cookie(msg.ReplyTo, 0), 1+msg.Epoch%2
			b, _ = msg.append(nil, 0)
		}
		from := masterAddr
		if msg, err := Parse(b); err == nil {
			from = msg.ReplyTo
		}
		for _, m := range []machine{w.sw, mas, mem} {
			m.Input(w.now, placeOf(b, from), b, &out)
			for _, p := range out.Packets {
				if _, err := Parse(p.Data); err != nil {
					t.Fatal(err)
				}
			}
			m.Advance(w.now+time.Hour, &out)
		}
	})
}
