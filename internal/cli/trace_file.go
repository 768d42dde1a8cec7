// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/gleam-rdma/gleam/api"
)

// traceFile writes a trace as pcapng: to standard output, to one file, or to a ring of files.
type traceFile struct {
	name   string
	ring   int // files that stay; 0: one file
	size   int // MB of each
	stdout io.Writer

	begin  *api.TraceStart
	out    *os.File // nil: standard output
	ng     *pcapgo.NgWriter
	ids    map[string]int // numbers of interfaces, by name
	bytes  int            // bytes in this file
	number int            // the number of this file in the ring
}

// start begins the first file.
func (t *traceFile) start(s *api.TraceStart) error {
	t.begin = s
	return t.open()
}

// path returns the name of file number n of the ring: FILE-000001.pcapng for FILE.pcapng.
func (t *traceFile) path(n int) string {
	if t.ring == 0 {
		return t.name
	}
	ext := filepath.Ext(t.name)
	return fmt.Sprintf("%s-%06d%s", strings.TrimSuffix(t.name, ext), n, ext)
}

// open begins a file, and removes the one that leaves the ring.
func (t *traceFile) open() (err error) {
	w := t.stdout
	if t.number++; t.name != "-" {
		if t.out, err = CreateFile(t.path(t.number), 0o600); err != nil {
			return err
		}
		w = t.out
	}
	if t.ring > 0 && t.number > t.ring {
		if err := os.Remove(t.path(t.number - t.ring)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	t.ids, t.bytes = make(map[string]int), 0
	for _, p := range t.begin.Ports {
		for _, d := range api.TraceDirections {
			if _, err := t.idOf(w, p, d); err != nil {
				return err
			}
		}
	}
	if t.ng == nil { // no port: the file has to begin all the same
		_, err = t.idOf(w, "", api.TraceNotSent)
	}
	return errors.Join(err, t.flush())
}

// traceApplication is the writer that the files name.
const traceApplication = "gleam trace"

// meanings describe the interfaces of a port.
var meanings = map[string]string{
	api.TraceIn:      "packets as they came by this port",
	api.TraceOut:     "packets as they were put into the egress queue of this port",
	api.TraceNotSent: "copies for this port that were not sent, as they came to the switch",
}

// idOf returns the interface of a port and direction, which it adds if it is new.
func (t *traceFile) idOf(w io.Writer, port, direction string) (id int, err error) {
	name := strings.TrimSpace(port + " " + direction)
	if id, ok := t.ids[name]; ok {
		return id, nil
	}
	x := pcapgo.NgInterface{
		Name: name, Description: meanings[direction], LinkType: layers.LinkTypeEthernet, TimestampResolution: 9, SnapLength: uint32(t.begin.Snap),
	}
	if t.ng == nil {
		info := pcapgo.NgSectionInfo{Application: traceApplication}
		t.ng, err = pcapgo.NewNgWriterInterface(w, x, pcapgo.NgWriterOptions{SectionInfo: info})
	} else {
		id, err = t.ng.AddInterface(x)
	}
	t.ids[name] = id
	return id, err
}

// packet writes one packet. The file is complete up to it unless more follow at once.
func (t *traceFile) packet(p *api.TracePacket, more bool) error {
	id, err := t.idOf(nil, p.Port, p.Direction)
	if err != nil {
		return err
	}
	ci := gopacket.CaptureInfo{Timestamp: p.Time, CaptureLength: len(p.Data), Length: max(p.Length, len(p.Data)), InterfaceIndex: id}
	opts := pcapgo.NgPacketOptions{Comments: []string{comment(p)}, Flags: &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionOutbound}}
	if p.Direction == api.TraceIn {
		opts.Flags.Direction = pcapgo.NgEpbFlagDirectionInbound
	}
	if p.Lost > 0 {
		opts.DropCount = &p.Lost
	}
	if err := t.ng.WritePacketWithOptions(ci, p.Data, opts); err != nil {
		return err
	}
	const overhead = 64 // bytes of a block besides packet and comment, about
	if t.bytes += len(p.Data) + len(opts.Comments[0]) + overhead; t.ring > 0 && t.bytes >= t.size*1e6 {
		if err := t.end(nil); err != nil {
			return err
		}
		return t.open()
	}
	if more {
		return nil
	}
	return t.flush()
}

func (t *traceFile) flush() error {
	if t.ng == nil {
		return nil
	}
	return t.ng.Flush()
}

// end completes the file.
func (t *traceFile) end(*api.TraceEnd) error {
	err := t.flush()
	if t.ng = nil; t.out != nil {
		err = errors.Join(err, t.out.Close())
		t.out = nil
	}
	return err
}
