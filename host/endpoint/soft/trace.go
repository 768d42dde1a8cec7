// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/gleam-rdma/gleam/rocev2"
)

// tracer writes frames as pcapng. A nil tracer does nothing.
type tracer struct {
	w   *pcapgo.NgWriter
	buf []byte
}

func newTracer(w io.Writer, name string) (*tracer, error) {
	if w == nil {
		return nil, nil
	}
	options := pcapgo.DefaultNgWriterOptions
	options.SectionInfo.Application = "gleam endpoint"
	ng, err := pcapgo.NewNgWriterInterface(w, pcapgo.NgInterface{
		Name: name, LinkType: layers.LinkTypeEthernet, OS: "linux", TimestampResolution: 9,
	}, options)
	if err != nil {
		return nil, fmt.Errorf("write trace: %w", err)
	}
	return &tracer{w: ng}, nil
}

// received restores the tag that the kernel removed.
func (t *tracer) received(b []byte, tci uint16, tagged bool, s *Stats) {
	if tagged && len(b) >= rocev2.EthernetLen {
		t.buf = append(t.buf[:0], b[:12]...)
		t.buf = append(t.buf, 0x81, 0x00, byte(tci>>8), byte(tci))
		t.buf = append(t.buf, b[12:]...)
		b = t.buf
	}
	t.write(b, s)
}

func (t *tracer) sent(b []byte, s *Stats) { t.write(b, s) }

func (t *tracer) write(b []byte, s *Stats) {
	ci := gopacket.CaptureInfo{Timestamp: time.Now(), CaptureLength: len(b), Length: len(b)}
	if err := t.w.WritePacket(ci, slices.Clone(b)); err != nil {
		s.TraceErrors++
	}
}

// flush writes the buffered frames.
func (t *tracer) flush(s *Stats) {
	if t == nil {
		return
	}
	if err := t.w.Flush(); err != nil {
		s.TraceErrors++
	}
}
