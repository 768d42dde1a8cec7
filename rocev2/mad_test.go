// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// A MAD that is built is decoded, and each byte that makes it one counts.
func TestMAD(t *testing.T) {
	for _, p := range []Path{v4Path(), v6Path()} {
		mad := make([]byte, MADLen)
		for i := range mad {
			mad[i] = byte(i)
		}
		b := make([]byte, 400)
		n := BuildMAD(b, &p, 0x123456, mad)
		if b = b[:n]; n != p.HeaderLen()+BTHLen+dethLen+MADLen+ICRCLen {
			t.Fatalf("%d bytes", n)
		}
		f := mustDecode(t, b)
		if f.Kind != KindMAD || !bytes.Equal(f.MAD(), mad) || !f.VerifyMAD() || f.BTH() != nil || f.UDP() != nil {
			t.Fatalf("decoded as %v", f.Kind)
		}
		bth := p.HeaderLen()
		for _, x := range []struct {
			name string
			at   int
			to   byte
			want Reason
		}{
			{"another UD opcode", bth, 0x65, ReasonUnknownOpcode},
			{"a UC opcode", bth, 0x24, ReasonUnknownOpcode},
			{"queue pair 2", bth + 7, 2, ReasonUnknownOpcode},
			{"queue pair 0x10001", bth + 5, 1, ReasonUnknownOpcode},
			{"pad", bth + 1, 0x10, ReasonBadBTHLength},
			{"version", bth + 1, 1, ReasonBadTVer},
			{"Q_Key", bth + BTHLen, 0, ReasonBadQKey},
			{"Q_Key's last byte", bth + BTHLen + 3, 1, ReasonBadQKey},
		} {
			c := slices.Clone(b)
			c[x.at] = x.to
			var g Frame
			if r := Decode(c, &g); r != x.want {
				t.Errorf("%s: %v, want %v", x.name, r, x.want)
			}
		}
		for at := bth + BTHLen; at < n; at++ { // whatever is damaged after the BTH, the ICRC says it
			c := slices.Clone(b)
			c[at] ^= 0x10
			var g Frame
			if Decode(c, &g) == OK && g.VerifyMAD() {
				t.Fatalf("damage at byte %d is not seen", at)
			}
		}
		for _, l := range []int{0, MADLen - 1, MADLen + 1} {
			if BuildMAD(make([]byte, 400), &p, 0, make([]byte, l)) != 0 {
				t.Errorf("built of %d bytes", l)
			}
		}
		if BuildMAD(make([]byte, n-1), &p, 0, mad) != 0 {
			t.Error("built into a buffer that is too short")
		}
	}
}

// A UDP payload of another length is no MAD, in one buffer or two.
func TestMADLength(t *testing.T) {
	p := v4Path()
	for _, extra := range []int{-4, 4} {
		payload := make([]byte, BTHLen+dethLen+MADLen+ICRCLen+extra)
		payload[0], payload[7] = 0x64, 1
		binary.BigEndian.PutUint32(payload[BTHLen:], qkeyGSI)
		b := make([]byte, 400)
		b = b[:BuildUDP(b, &p, UDPPort, payload)]
		var f Frame
		if r := Decode(b, &f); r != ReasonBadBTHLength {
			t.Errorf("%+d bytes: %v", extra, r)
		}
	}
	b := make([]byte, 400)
	b = b[:BuildMAD(b, &p, 0, make([]byte, MADLen))]
	for _, cut := range []int{42 + 10, 42 + BTHLen, 200} {
		c, f := Chain{slices.Clone(b[:cut]), slices.Clone(b[cut:])}, Frame{}
		if r := DecodeChain(&c, &f); r != ReasonSplitOther && r != ReasonSplitHeaders || f.VerifyMAD() || f.MAD() != nil {
			t.Errorf("cut at %d: %v", cut, r)
		}
	}
}
