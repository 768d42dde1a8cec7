// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package wireshark has tests of the Wireshark dissector in contrib/wireshark, and runs tshark with
// it for other tests.
package wireshark

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/gleam-rdma/gleam/test/labtest"
	"github.com/gleam-rdma/gleam/test/mutation/module"
)

// Find skips the test if there is no tshark, or fails it as labtest.Unavailable does.
func Find(t testing.TB) {
	t.Helper()
	labtest.Needs(t, "tshark")
}

// Tshark runs tshark on a file, with the dissector, and returns its output. It fails the test if the
// dissector has an error.
func Tshark(t testing.TB, file string, args ...string) string {
	t.Helper()
	root, err := module.Root()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(root, "contrib/wireshark/gleam.lua")
	c := exec.Command("tshark", append([]string{"-r", file, "-X", "lua_script:" + script}, args...)...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil || strings.Contains(strings.ToLower(stderr.String()), "lua") {
		t.Fatalf("tshark %q: %v: %s", args, err, &stderr)
	}
	if i := bytes.Index(out, []byte("Lua Error")); i >= 0 {
		t.Fatalf("the dissector has an error: %s", out[i:min(len(out), i+300)])
	}
	return string(out)
}

// Lines returns the lines of Tshark's output.
func Lines(t testing.TB, file string, args ...string) []string {
	t.Helper()
	return strings.FieldsFunc(Tshark(t, file, args...), func(c rune) bool { return c == '\n' })
}

// Frame is a captured frame of Length bytes; 0: all are in Data.
type Frame struct {
	Data   []byte
	Length int
}

// Write writes frames to a capture and returns its name.
func Write(t testing.TB, frames ...Frame) string {
	t.Helper()
	var b bytes.Buffer
	w := pcapgo.NewWriter(&b)
	err := w.WriteFileHeader(1<<16, layers.LinkTypeEthernet)
	for i, f := range frames {
		ci := gopacket.CaptureInfo{Timestamp: time.Unix(int64(i), 0), CaptureLength: len(f.Data), Length: max(f.Length, len(f.Data))}
		err = errors.Join(err, w.WritePacket(ci, f.Data))
	}
	file := filepath.Join(t.TempDir(), "frames.pcap")
	if err = errors.Join(err, os.WriteFile(file, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return file
}

// NoMessage is what Uncovered returns for a frame without a message of Gleam.
const NoMessage = "no message of Gleam"

// Uncovered returns, for each frame of the file, the bytes of Gleam's messages that no field has, or
// that two have, and the empty string if there are none.
func Uncovered(t testing.TB, file string) (list []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(Tshark(t, file, "-T", "pdml")))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "packet" {
			var p packet
			if err := d.DecodeElement(&p, &e); err != nil {
				t.Fatal(err)
			}
			list = append(list, p.uncovered())
		}
	}
}

// packet is a frame in tshark's PDML.
type packet struct {
	Protos []node `xml:"proto"`
}

// node is a protocol or field, with the bytes of the frame that it has.
type node struct {
	Name   string `xml:"name,attr"`
	Show   string `xml:"showname,attr"`
	Pos    string `xml:"pos,attr"`
	Size   string `xml:"size,attr"`
	Fields []node `xml:"field"`
	Protos []node `xml:"proto"`
}

func (n *node) span() (from, to int) {
	from, _ = strconv.Atoi(n.Pos)
	size, _ := strconv.Atoi(n.Size)
	return from, from + size
}

func (p *packet) uncovered() string {
	for i := range p.Protos {
		top := &p.Protos[i]
		if !strings.HasPrefix(top.Name, "gleam") {
			continue
		}
		from, to := top.span()
		times := make([]int, to)
		top.cover(times)
		for at := from; at < to; at++ {
			if times[at] != 1 {
				return fmt.Sprintf("byte %d of %d of %s is in %d fields", at-from, to-from, top.Name, times[at])
			}
		}
		return ""
	}
	return NoMessage
}

// cover counts for each byte the fields below n that have it. Bits of a byte count once, with the
// field that they are of; what the dissector has computed has no bytes of its own.
func (n *node) cover(times []int) {
	for _, list := range [][]node{n.Fields, n.Protos} {
		for i := range list {
			f := &list[i]
			from, to := f.span()
			switch {
			case strings.HasPrefix(f.Name, "_ws.") || strings.HasPrefix(f.Show, "["), f.Name != "" && strings.HasSuffix(f.Name, ".malformed"):
			case f.isGroup():
				f.cover(times)
			default:
				for at := from; at < min(to, len(times)); at++ {
					times[at]++
				}
			}
		}
	}
}

// isGroup reports whether n only holds other fields together: a subtree of the dissector.
func (n *node) isGroup() bool {
	for _, list := range [][]node{n.Fields, n.Protos} {
		for i := range list {
			from, to := list[i].span()
			nfrom, nto := n.span()
			if nto-nfrom != 1 || from != nfrom || to != nto {
				return true
			}
		}
	}
	return false
}
