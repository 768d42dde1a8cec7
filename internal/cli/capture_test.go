// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/gleam-rdma/gleam/rocev2"
)

// capturedAt is when the frames of the tests were captured.
var capturedAt = time.Date(2026, 5, 6, 7, 8, 9, 123456000, time.UTC)

// pcapIn makes a capture as tcpdump does, in any byte order, with times in microseconds or
// nanoseconds.
func pcapIn(order binary.AppendByteOrder, magic uint32, unit time.Duration) func(testing.TB, layers.LinkType, ...[]byte) []byte {
	return func(_ testing.TB, link layers.LinkType, frames ...[]byte) []byte {
		b := order.AppendUint32(nil, magic)
		b = order.AppendUint16(order.AppendUint16(b, 2), 4)
		b = order.AppendUint32(append(b, make([]byte, 8)...), 262144)
		b = order.AppendUint32(b, uint32(link))
		for _, f := range frames {
			b = order.AppendUint32(b, uint32(capturedAt.Unix()))
			b = order.AppendUint32(b, uint32(capturedAt.Nanosecond()/int(unit)))
			b = order.AppendUint32(order.AppendUint32(b, uint32(len(f))), uint32(len(f)))
			b = append(b, f...)
		}
		return b
	}
}

var pcapOf = pcapIn(binary.LittleEndian, 0xa1b2c3d4, time.Microsecond)

// pcapngBig makes a pcapng file in big-endian order.
func pcapngBig(_ testing.TB, link layers.LinkType, frames ...[]byte) []byte {
	order := binary.BigEndian
	var out []byte
	block := func(kind uint32, body []byte) {
		n := uint32(len(body) + 12)
		out = order.AppendUint32(append(order.AppendUint32(order.AppendUint32(out, kind), n), body...), n)
	}
	block(0x0a0d0d0a, []byte{0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255})
	block(1, order.AppendUint32(order.AppendUint16(order.AppendUint16(nil, uint16(link)), 0), 262144))
	for _, f := range frames {
		b := order.AppendUint64(order.AppendUint32(nil, 0), uint64(capturedAt.UnixMicro()))
		b = order.AppendUint32(order.AppendUint32(b, uint32(len(f))), uint32(len(f)))
		b = append(append(b, f...), make([]byte, -len(f)&3)...)
		block(6, b)
	}
	return out
}

// pcapngOf makes a pcapng file as dumpcap does: of an interface without packets, of one of another
// link type, and of the frames'.
func pcapngOf(t testing.TB, link layers.LinkType, frames ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := pcapgo.NewNgWriterInterface(&b, pcapgo.NgInterface{Name: "any", LinkType: layers.LinkTypeLinuxSLL2}, pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "Dumpcap (Wireshark) 4.4.0"}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddInterface(pcapgo.NgInterface{Name: "eth7", LinkType: link, TimestampResolution: 9})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		ci := gopacket.CaptureInfo{Timestamp: capturedAt, CaptureLength: len(f), Length: len(f), InterfaceIndex: id}
		if err := w.WritePacketWithOptions(ci, f, pcapgo.NgPacketOptions{Comments: []string{"a comment"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}

// files are the formats of captures.
var files = map[string]func(testing.TB, layers.LinkType, ...[]byte) []byte{
	"pcap":                pcapOf,
	"pcap, ns":            pcapIn(binary.LittleEndian, 0xa1b23c4d, time.Nanosecond),
	"pcap, big-endian":    pcapIn(binary.BigEndian, 0xa1b2c3d4, time.Microsecond),
	"pcap, big-endian ns": pcapIn(binary.BigEndian, 0xa1b23c4d, time.Nanosecond),
	"pcapng":              pcapngOf,
	"pcapng, big-endian":  pcapngBig,
}

// links make a captured frame of one of Ethernet.
var links = map[layers.LinkType]func([]byte) []byte{
	layers.LinkTypeEthernet: bytes.Clone,
	layers.LinkTypeRaw:      func(b []byte) []byte { return bytes.Clone(b[14:]) },
	layers.LinkTypeIPv4:     func(b []byte) []byte { return bytes.Clone(b[14:]) },
	layers.LinkTypeLinuxSLL: func(b []byte) []byte { return slices.Concat([]byte{0, 0, 0, 1, 0, 6}, b[6:12], []byte{0, 0}, b[12:]) },
	layers.LinkTypeLinuxSLL2: func(b []byte) []byte {
		return slices.Concat(b[12:14], []byte{0, 0, 0, 0, 0, 7, 0, 1, 0, 6}, b[6:12], []byte{0, 0}, b[14:])
	},
}

// wholeFrames are packets of a member to a group.
func wholeFrames(t testing.TB) (list [][]byte) {
	for i := range 4 {
		list = append(list, frameOf(t, &rocev2.Packet{Op: rocev2.WriteOnly, AckReq: true, DestQP: 0x4711, PSN: rocev2.PSN(0x10 + i), VA: 0x1000, RKey: 7, DMALen: uint32(60 + i)}, 60+i))
	}
	return list
}

// readAll reads a capture to its end.
func readAll(b []byte) (list []capturedFrame, err error) {
	c, err := openCapture(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	for {
		f, err := c.next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		x := *f
		x.data = bytes.Clone(f.data)
		list = append(list, x)
	}
}

// TestCaptures reads the same packets from captures of each format and link type, also compressed,
// and cut anywhere: the whole frames come, and then the word that it is cut.
func TestCaptures(t *testing.T) {
	frames := wholeFrames(t)
	for name, file := range files {
		for link, captured := range links {
			var in [][]byte
			for _, f := range frames {
				in = append(in, captured(f))
			}
			b := file(t, link, in...)
			for _, form := range []struct {
				name string
				file []byte
			}{{name, b}, {name + ", gzip", gzipped(t, b)}} {
				list, err := readAll(form.file)
				if err != nil || len(list) != len(frames) {
					t.Errorf("%s of %s: %d frames, %v", form.name, link, len(list), err)
					continue
				}
				checkFrames(t, fmt.Sprintf("%s of %s", form.name, link), list, frames)
			}
			begin, ends := len(file(t, link)), []int{}
			for i := range in {
				ends = append(ends, len(file(t, link, in[:i+1]...)))
			}
			for n := begin; n < len(b); n++ {
				list, err := readAll(b[:n])
				whole, at := slices.BinarySearch(ends, n)
				if at {
					whole++
				}
				if at = at || n == begin; len(list) != whole || at != (err == nil) || !at && !errors.As(err, new(cutError)) {
					t.Fatalf("%s of %s, cut at byte %d of %d: %d frames, %v; want %d", name, link, n, len(b), len(list), err, whole)
				}
				checkFrames(t, fmt.Sprintf("%s of %s, cut at byte %d", name, link, n), list, frames)
			}
		}
	}
}

// checkFrames compares captured frames with those sent, from the IP header on.
func checkFrames(t *testing.T, name string, list []capturedFrame, sent [][]byte) {
	t.Helper()
	for i, f := range list {
		if f.foreign != nil || f.missing != 0 || f.number != i+1 || !f.at.Equal(capturedAt) || !bytes.Equal(f.data[12:], sent[i][12:]) {
			t.Fatalf("%s: frame %d is %+v", name, i+1, f)
		}
		if strings.HasPrefix(name, "pcapng of") && f.port != "eth7" {
			t.Fatalf("%s: port %q", name, f.port)
		}
	}
}

// TestOtherFiles refuses what is no capture, and says what it is.
func TestOtherFiles(t *testing.T) {
	frame := wholeFrames(t)[0]
	for _, c := range []struct{ file, says string }{
		{"", "it is empty"},
		{"x", "too short"},
		{"gleam\n" + strings.Repeat("x", 40), "it is no capture"},
		{"\x28\xb5\x2f\xfd....", "zstd -d"},
		{"\x1f\x8b....", "damaged gzip"},
		{string(pcapOf(t, layers.LinkTypeIEEE802_11, frame)), "its link type is 105 (802.11)"},
		{string(pcapOf(t, layers.LinkTypeEthernet, frame)[:20]), "too short"},
		{string(pcapngOf(t, layers.LinkTypeEthernet, frame)[:20]), "too short"},
		{string(pcapngOf(t, layers.LinkTypeIEEE802_11, frame)), "frame 1: its link type is 105 (802.11)"},
	} {
		if _, _, err := decodeCapture(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.40q: %v; want %s", c.file, err, c.says)
		}
	}
}

// TestFrameIsFound finds the packet that is meant without --frame, also in a capture that is cut, in
// one of headers alone, and in a trace of the switch, behind copies that the switch has sent.
func TestFrameIsFound(t *testing.T) {
	frames, group := wholeFrames(t), netip.MustParseAddr("10.77.254.1")
	arp := append(make([]byte, 12), 8, 6, 0, 1)
	whole := pcapOf(t, layers.LinkTypeEthernet, arp, frames[0], frames[1])
	headers := pcapOf(t, layers.LinkTypeEthernet, frames[0])
	const length = 24 + 8
	short := func(n int) []byte {
		b := slices.Concat(headers[:24+16], frames[0][:n])
		binary.LittleEndian.PutUint32(b[length:], uint32(n))
		return b
	}
	for _, c := range []struct {
		name  string
		file  []byte
		frame int
		group netip.Addr
		psn   uint32
		note  string
		err   string
	}{
		{"by number", whole, 3, netip.Addr{}, 0x11, "", ""},
		{"the first", whole, 0, netip.Addr{}, 0x10, "frame 2: the first packet", ""},
		{"no packet", whole, 1, netip.Addr{}, 0, "", "frame 1: "},
		{"the first to a group", whole, 0, group, 0x10, "frame 2: the first packet", ""},
		{"none to a group", whole, 0, netip.MustParseAddr("10.77.254.2"), 0, "", "none of its 3 frames is a RoCEv2 packet of a queue pair to 10.77.254.2"},
		{"cut behind it", whole[:len(whole)-1], 2, netip.Addr{}, 0x10, "", ""},
		{"cut within it", whole[:len(whole)-1], 3, netip.Addr{}, 0, "", "it has 2 whole ones, and ends within the next"},
		{"headers alone", short(14 + 20 + 8 + 12 + 16), 1, netip.Addr{}, 0x10, "frame 1: the capture lacks 64 bytes at its end: its ICRC is taken for right", ""},
		{"headers cut", short(14 + 20 + 8 + 12 + 15), 1, netip.Addr{}, 0, "", "the capture lacks 65 bytes, some of its headers"},
	} {
		p, to, note, err := packetOfCapture(bytes.NewReader(c.file), c.frame, c.group)
		if err != nil || c.err != "" {
			if err == nil || c.err == "" || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v; want %q", c.name, err, c.err)
			}
			continue
		}
		if *p.PSN != c.psn || to != group || p.BadICRC || (c.note == "") != (note == "") || !strings.HasPrefix(note, c.note) {
			t.Errorf("%s: PSN %#x to %s, wrong ICRC %v, %q; want PSN %#x, %q", c.name, *p.PSN, to, p.BadICRC, note, c.psn, c.note)
		}
	}
}

// FuzzCapture reads arbitrary files as captures: the frames of each are numbered, each ends in time,
// and a packet that is found in one is one that the API takes.
func FuzzCapture(f *testing.F) {
	frames := wholeFrames(f)
	for _, file := range files {
		for link, captured := range links {
			f.Add(file(f, link, captured(frames[0]), captured(frames[1])))
		}
	}
	f.Add(gzipped(f, pcapOf(f, layers.LinkTypeEthernet, frames[0])))
	for _, name := range []string{"cm-connect-ipv4.pcap", "cm-connect-ipv6.pcap"} {
		b, err := os.ReadFile(filepath.Join("../../envelope/cm/testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := readAll(b)
		for i, x := range list {
			if x.number != i+1 || (x.data == nil) != (x.foreign != nil) && len(x.data) > 0 {
				t.Fatalf("frame %d of %d: %+v", i+1, len(list), x)
			}
		}
		decoded, others, ends := decodeCapture(bytes.NewReader(b))
		if decoded != nil && len(decoded)+others != len(list) || (ends == nil) && err != nil {
			t.Fatalf("%d messages and %d others of %d frames: %v, %v", len(decoded), others, len(list), ends, err)
		}
		for n := range min(len(list)+2, 50) {
			if p, _, _, err := packetOfCapture(bytes.NewReader(b), n, netip.Addr{}); err == nil {
				taken(t, p)
			}
		}
	})
}
