// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package wireshark

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

// sample is a message with the frame that it came in.
type sample struct {
	what  string // what tshark is to say of it, or its beginning
	frame []byte
	at    int // where the message begins
}

var (
	host  = netip.MustParseAddr("10.0.0.1")
	group = netip.MustParseAddr("10.9.0.1")
)

// datagram puts a message into a datagram for a UDP port.
func datagram(what string, port uint16, message []byte) sample {
	buf := make([]byte, len(message)+100)
	n := rocev2.BuildUDP(buf, &rocev2.Path{Src: host, Dst: group, SrcPort: 5000}, port, message)
	return sample{what, buf[:n], n - len(message)}
}

var (
	said    = regexp.MustCompile(`^\S+ \S+ → [^ :]+(?::\d+)?: (.*)$`)
	hexLine = regexp.MustCompile(`^    (?:[0-9a-f]{2,8} ?)+$`)
)

// exchanges returns all messages of docs/exchanges, with what is said of each there.
func exchanges(t testing.TB) (list []sample) {
	t.Helper()
	files, err := filepath.Glob("../../docs/exchanges/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		what, digits := "", ""
		for line := range strings.Lines(string(text) + "\n") {
			line = strings.TrimRight(line, "\n")
			if hexLine.MatchString(line) {
				digits += strings.ReplaceAll(line, " ", "")
				continue
			}
			if digits != "" {
				b, err := hex.DecodeString(digits)
				if err != nil {
					t.Fatalf("%s: %s: %v", f, what, err)
				}
				list = append(list, datagram(what, 4797, b))
				digits = ""
			}
			if m := said.FindStringSubmatch(line); m != nil {
				what = m[1]
			}
		}
	}
	return list
}

// hexLines returns the messages of a file with one a line, behind a word; without words, all of
// the file is one.
func hexLines(t testing.TB, file string) (words []string, messages [][]byte) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if strings.HasSuffix(file, "hello.hex") {
		lines = []string{"Hello " + strings.Join(strings.Fields(string(text)), "")}
	}
	for _, l := range lines {
		word, digits, _ := strings.Cut(l, " ")
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		words, messages = append(words, word), append(messages, b)
	}
	return words, messages
}

// others returns relays, token messages, a hello, and target messages.
func others(t testing.TB) (list []sample) {
	t.Helper()
	words, relays := hexLines(t, "../../envelope/testdata/relays.hex")
	for i := range relays {
		list = append(list, datagram(words[i]+" epoch 7", 4797, relays[i]))
	}
	m := token.Message{Group: group, Session: 7, Seq: 8, Ack: 6, Poll: true, Report: token.Report{Term: 5, Joined: true, Requests: true, Member: 3},
		Position: token.Position{Source: 2, PSN: 0xABCDEF, Next: 0xABCDF0, Ends: true, Layout: 4}}
	list = append(list, datagram("Token of group 10.9.0.1, term 5, seq 8, ack 6, poll, joined, requests", 4797, m.AppendBinary(nil)))
	m.Group = netip.MustParseAddr("fd00:9::1")
	list = append(list, datagram("Token of group fd00:9::1", 4797, m.AppendBinary(nil)))
	_, hellos := hexLines(t, "../../envelope/hello/testdata/hello.hex")
	for padding := range 2 {
		frame := append([]byte{1, 0x80, 0xC2, 0, 0, 0xE, 2, 0, 0, 0, 0, 1, 0x88, 0xB5}, hellos[0]...)
		list = append(list, sample{"Hello of switch 1111111122222222, seq 85", append(frame, make([]byte, 3*padding)...), 14})
	}
	for _, ip := range []string{"10.0.0.2", "fd00::2"} {
		records := []envelope.TargetRecord{{IP: netip.MustParseAddr(ip), VA: 0x1000, RKey: 7}, {IP: netip.MustParseAddr(ip).Next(), VA: 0x2000, RKey: 8}}
		p := rocev2.Packet{Op: rocev2.WriteOnly, DestQP: 0x4711, PSN: 1, VA: envelope.TargetMessageVA, RKey: 9}
		payload := envelope.AppendTargets(nil, records)
		p.DMALen = uint32(len(payload))
		buf := make([]byte, 512)
		n := rocev2.BuildPacket(buf, &rocev2.Path{Src: host, Dst: group, SrcPort: 0xC000}, &p, payload)
		list = append(list, sample{"Target message, records 2", buf[:n], n - rocev2.ICRCLen - len(payload)})
	}
	return list
}

// Each message of docs/exchanges, and of every other kind, is described as there, and each of its
// bytes is in one field, which has a name.
func TestDissectorFields(t *testing.T) {
	Find(t)
	all := append(exchanges(t), others(t)...)
	// At another port, envelopes and relays are known by their magic.
	for _, x := range slices.Clone(all[:1]) {
		all = append(all, datagram(x.what, 4999, x.frame[x.at:]))
	}
	var frames []Frame
	for _, x := range all {
		frames = append(frames, Frame{Data: x.frame})
	}
	file := Write(t, frames...)
	infos := strings.Split(strings.TrimSuffix(Tshark(t, file, "-T", "fields", "-e", "_ws.col.Info", "-e", "_ws.expert.message"), "\n"), "\n")
	uncovered := Uncovered(t, file)
	if len(infos) != len(all) || len(uncovered) != len(all) || len(all) < 300 {
		t.Fatalf("%d messages, %d lines, %d packets", len(all), len(infos), len(uncovered))
	}
	malformed := 0
	for i, x := range all {
		info, expert, _ := strings.Cut(infos[i], "\t")
		if strings.HasPrefix(x.what, "envelope truncated") {
			if malformed++; !strings.Contains(expert, "Malformed") {
				t.Errorf("%s: %q, want it to be malformed", x.what, infos[i])
			}
			continue
		}
		if strings.HasPrefix(x.what, "envelope ") { // its form is right, and a value is not
			info = x.what
		}
		if !strings.HasPrefix(x.what, info) && !strings.HasPrefix(info, x.what) || strings.Contains(expert, "Malformed") {
			t.Errorf("tshark says %q, want %q", infos[i], x.what)
		}
		if uncovered[i] != "" {
			t.Errorf("%s: %s", x.what, uncovered[i])
		}
	}
	if malformed == 0 {
		t.Error("no message of docs/exchanges is malformed")
	}
}

// Names of the tables in the dissector are those of the code.
func TestDissectorNames(t *testing.T) {
	script, err := os.ReadFile("../../contrib/wireshark/gleam.lua")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(script)), " ")
	table := func(name, zero string, first, end int, of func(int) string) {
		want := fmt.Sprintf("local %s = {%s", name, zero)
		for i := first; i < end; i++ {
			want += fmt.Sprintf("%q, ", of(i))
		}
		if want = strings.TrimSuffix(want, ", ") + "}"; !strings.Contains(text, want) {
			t.Errorf("the dissector should have\n%s", want)
		}
	}
	table("types", "", 1, int(envelope.TypeNotice)+1, func(i int) string { return envelope.Type(i).String() })
	table("reasons", "", 1, int(envelope.NumReasons), func(i int) string { return envelope.Reason(i).String() })
	table("causes", "", 1, int(envelope.NumEndReasons), func(i int) string { return envelope.EndReason(i).String() })
	table("statuses", "[0] = ", 0, int(envelope.NumStatuses), func(i int) string { return envelope.Status(i).String() })
}

// Cut, damaged and foreign messages make no error in the dissector; what the capture alone has cut
// off is not malformed.
func TestDissectorDamage(t *testing.T) {
	Find(t)
	all := append(exchanges(t), others(t)...)
	seen := map[string]bool{}
	rng := rand.New(rand.NewPCG(1, 2))
	var cut, damaged []Frame
	for _, x := range all {
		kind := strings.SplitN(x.what, " ", 2)[0] + fmt.Sprint(len(x.frame))
		if seen[kind] || strings.HasPrefix(x.what, "envelope ") {
			continue
		}
		seen[kind] = true
		for n := x.at; n < len(x.frame); n += 1 + rng.IntN(3) {
			cut = append(cut, Frame{x.frame[:n], len(x.frame)})
			if x.frame[12] == 8 { // IPv4: the datagram itself is shorter
				port := uint16(x.frame[36])<<8 | uint16(x.frame[37])
				damaged = append(damaged, Frame{Data: datagram("", port, x.frame[x.at:n]).frame})
			} else {
				damaged = append(damaged, Frame{Data: x.frame[:n]})
			}
		}
		for range 60 {
			b := slices.Clone(x.frame)
			for range 1 + rng.IntN(4) {
				b[x.at+rng.IntN(len(b)-x.at)] = byte(rng.Uint32())
			}
			damaged = append(damaged, Frame{Data: b})
		}
	}
	for _, magic := range []string{"GLEM", "GLRL", "GT\x01\x04", "\x05\x00\x00\x00"} {
		for range 200 {
			b := make([]byte, rng.IntN(300))
			for i := range b {
				b[i] = byte(rng.Uint32() >> (8 * rng.IntN(4)))
			}
			damaged = append(damaged, Frame{Data: datagram("", 4797, append([]byte(magic), b...)).frame})
		}
	}
	t.Logf("%d cut, %d damaged", len(cut), len(damaged))
	Tshark(t, Write(t, damaged...), "-V")
	file := Write(t, cut...)
	Tshark(t, file, "-V")
	if bad := Lines(t, file, "-Y", "_ws.malformed || gleam.malformed || gleam.relay.malformed || gleam.token.malformed || gleam.hello.malformed || gleam.targets.malformed"); len(bad) > 0 {
		t.Errorf("%d of %d cut packets are taken for malformed, such as %s", len(bad), len(cut), bad[0])
	}
}

// What the fuzzers have found is dissected without an error, as envelope and as target message.
func TestDissectorCorpus(t *testing.T) {
	Find(t)
	var frames []Frame
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "/testdata/fuzz/") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			var b []byte
			if n, _ := fmt.Sscanf(line, "[]byte(%q)", &b); n == 1 && len(b) < 60_000 {
				frames = append(frames, Frame{Data: datagram("", 4797, b).frame}, Frame{Data: b})
			}
		}
		return nil
	})
	if err != nil || len(frames) == 0 {
		t.Fatal(len(frames), err)
	}
	t.Logf("%d frames", len(frames))
	Tshark(t, Write(t, frames...), "-V")
}
