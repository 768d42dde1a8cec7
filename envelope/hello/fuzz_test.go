// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hello

import (
	"bytes"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
)

// signed puts the HMAC behind a body, with the length.
func signed(b []byte) []byte {
	b = append([]byte(nil), b...)
	if len(b) >= 12 {
		b[10], b[11] = byte((len(b)+envelope.MACLen)>>8), byte(len(b)+envelope.MACLen)
	}
	return append(b, macOf(testKeys()[1], b)...)
}

// TestMalformed changes one byte of a good hello each, under the right HMAC.
func TestMalformed(t *testing.T) {
	m := Message{KeyID: 1, MaxVersion: 1, Interval: DefaultInterval, Speaker: speaker(1, 1), Address: address(1), Seq: 1, Neighbour: []Heard{{speaker(9, 1), 3, 4}}}
	good, err := m.Append(nil, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	body := good[:len(good)-envelope.MACLen]
	if _, drop := Open(signed(body), testKeys()); drop != NoDrop {
		t.Fatal(drop)
	}
	clear8 := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { clear(b[at : at+8]); return b }
	}
	more := func(b ...byte) func([]byte) []byte {
		return func(body []byte) []byte { return append(body, b...) }
	}
	api := append([]byte{extensionAPI, apiLen}, make([]byte, apiLen)...)
	api[19] = 99
	for name, change := range map[string]func([]byte) []byte{
		"type 0":          more(0, 0),
		"a type twice":    more(7, 0, 7, 0),
		"a lower type":    more(8, 0, 7, 0),
		"value cut off":   more(7, 2, 1),
		"too much":        more(append([]byte{7, maxExtensions - 1}, make([]byte, maxExtensions-1)...)...),
		"API at nobody":   more(api...),
		"API, no port":    more(append(append([]byte{extensionAPI, apiLen, 0x20}, make([]byte, 15)...), 0, 0)...),
		"API, multicast":  more(append(append([]byte{extensionAPI, apiLen, 0xff}, make([]byte, 15)...), 0, 9)...),
		"API of 4 bytes":  more(extensionAPI, 4, 10, 0, 0, 1),
		"magic":           func(b []byte) []byte { b[3]++; return b },
		"no version":      func(b []byte) []byte { b[5] = 0; return b },
		"interval 9 ms":   func(b []byte) []byte { b[9] = 9; return b },
		"interval 10 s":   func(b []byte) []byte { b[8], b[9] = 0x27, 0x11; return b },
		"no ID":           clear8(16),
		"no incarnation":  clear8(24),
		"no seq":          clear8(32),
		"no MAC":          func(b []byte) []byte { clear(b[44:50]); return b },
		"group's MAC":     func(b []byte) []byte { b[44] |= 1; return b },
		"count 0":         func(b []byte) []byte { b[50] = 0; return b },
		"count 2":         func(b []byte) []byte { b[50] = 2; return b },
		"count 5":         func(b []byte) []byte { b[50] = 5; return append(b, bytes.Repeat(b[76:], 4)...) },
		"reserved":        func(b []byte) []byte { b[51] = 1; return b },
		"IPv4 in IPv6":    func(b []byte) []byte { clear(b[56:66]); b[66], b[67] = 255, 255; return b },
		"neighbour no ID": clear8(76),
		"its incarnation": clear8(84),
		"its challenge":   clear8(92),
		"a byte more":     func(b []byte) []byte { return append(b, 0) },
		"a byte less":     func(b []byte) []byte { return b[:len(b)-1] },
	} {
		changed := signed(change(bytes.Clone(body)))
		if _, drop := Open(changed, testKeys()); drop != Malformed {
			t.Errorf("%s: %v", name, drop)
		}
	}
	short := bytes.Clone(body)
	short[11]--
	if _, drop := Open(append(short, macOf(testKeys()[1], short)...), testKeys()); drop != Malformed {
		t.Errorf("longer than it says: %v", drop)
	}
	for n := range good {
		if _, drop := Open(good[:n], testKeys()); drop != Malformed {
			t.Errorf("%d bytes: %v", n, drop)
		}
	}
	m.KeyID = 3
	if _, err := m.Append(nil, testKeys()); err == nil {
		t.Error("encoded under an unknown key")
	}
	m.KeyID, m.Neighbour = 1, make([]Heard, MaxNeighbours+1)
	if _, err := m.Append(nil, testKeys()); err == nil {
		t.Error("encoded with too many neighbours")
	}
	m.Neighbour = nil
	for interval, good := range map[time.Duration]bool{MinInterval: true, MaxInterval: true, MinInterval - 1: false, MaxInterval + 1: false} {
		m.Interval = interval
		b, err := m.Append(nil, testKeys())
		if good != (err == nil) {
			t.Errorf("interval %v: %v", interval, err)
		}
		if _, drop := Open(b, testKeys()); good && drop != NoDrop {
			t.Errorf("interval %v: %v", interval, drop)
		}
	}
}

// Extensions arrive; those of unknown types have no effect.
func TestExtensions(t *testing.T) {
	m := Message{KeyID: 1, MaxVersion: 1, Interval: DefaultInterval, Speaker: speaker(1, 1), Address: address(1), Seq: 1, Neighbour: []Heard{{speaker(9, 1), 3, 4}}}
	for _, at := range []string{"10.0.0.1:4798", "[fd00::1]:65535"} {
		m.API = netip.MustParseAddrPort(at)
		b, err := m.Append(nil, testKeys())
		if err != nil {
			t.Fatal(err)
		}
		if got, drop := Open(b, testKeys()); drop != NoDrop || !reflect.DeepEqual(got, m) {
			t.Errorf("%s: %+v, %v", at, got, drop)
		}
		b = append(b[:len(b)-envelope.MACLen], 7, 2, 1, 2, 200, 0)
		if got, drop := Open(signed(b), testKeys()); drop != NoDrop || !reflect.DeepEqual(got, m) {
			t.Errorf("%s, with more: %+v, %v", at, got, drop)
		}
	}
}

// FuzzParse: what is accepted is encoded as the same bytes, or without the extensions that
// have no effect.
func FuzzParse(f *testing.F) {
	m := Message{KeyID: 1, MaxVersion: 1, Interval: DefaultInterval, Speaker: speaker(1, 1), Address: address(1), Seq: 1, Neighbour: []Heard{{speaker(9, 1), 3, 4}}}
	good, err := m.Append(nil, testKeys())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good[:len(good)-envelope.MACLen])
	m.API = netip.MustParseAddrPort("10.0.0.1:4798")
	if good, err = m.Append(nil, testKeys()); err != nil {
		f.Fatal(err)
	}
	f.Add(append(good[:len(good)-envelope.MACLen], 9, 1, 5))
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, drop := Open(body, testKeys()); drop == NoDrop {
			t.Fatal("accepted without a right HMAC") // the fuzzer cannot make one
		}
		b := signed(body)
		m, drop := Open(b, testKeys())
		if drop != NoDrop {
			return
		}
		again, err := m.Append(nil, testKeys())
		if err != nil || len(again) >= len(b) && !bytes.Equal(again, b) {
			t.Fatalf("%x\nis encoded as\n%x, %v", b, again, err)
		}
		if same, drop := Open(again, testKeys()); drop != NoDrop || !reflect.DeepEqual(same, m) {
			t.Fatalf("%x\nis encoded as\n%x, %v", b, again, drop)
		}
	})
}

// FuzzLink: authentic hellos of any contents, with time going by, leave a link with a state
// that its peers explain, and hellos that are well-formed.
func FuzzLink(f *testing.F) {
	f.Add([]byte{1, 0, 1, 2, 10, 3, 1, 1, 200, 1, 1, 2, 10})
	f.Fuzz(func(t *testing.T, script []byte) {
		l := link(t, 0, config(9, 1))
		var out Output
		now, heard := time.Duration(0), make(map[Speaker]uint64)
		for ; len(script) >= 4; script = script[4:] {
			s := speaker(int(script[0]%4)+1, int(script[1]%4)+1)
			m := Message{KeyID: 1, MaxVersion: 1, Interval: DefaultInterval, Speaker: s, Address: address(int(s.ID)), Seq: uint64(script[2]) + 1}
			if c, ok := heard[s]; ok && script[3]&1 != 0 {
				m.Neighbour = []Heard{{speaker(9, 1), 7, c}}
			}
			b, err := m.Append(nil, testKeys())
			if err != nil {
				t.Fatal(err)
			}
			l.Input(now, m.MAC, b, &out)
			now += time.Duration(script[3]) * time.Millisecond
			l.Advance(now, &out)
			for _, p := range out.Packets {
				own, drop := Open(p, testKeys())
				if drop != NoDrop {
					t.Fatal(drop)
				}
				for _, h := range own.Neighbour {
					heard[h.Speaker] = h.Challenge
				}
			}
			proved := 0
			for _, p := range l.peers {
				if p.proved {
					proved++
				}
				if p.deadline <= now {
					t.Fatalf("%v is heard after its hold time", p.Speaker)
				}
			}
			if state, _ := l.State(); (state == Up) != (proved == 1) || (state == Init) != (proved == 0 && len(l.peers) > 0) || len(l.peers) > MaxNeighbours {
				t.Fatalf("%v with %d of %d proved", state, proved, len(l.peers))
			}
		}
	})
}
