// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/rocev2"
)

// capture reads a file of captured frames: pcap, as tcpdump writes it, or pcapng, as Wireshark,
// dumpcap and gleam trace do, of any byte order, also compressed by gzip.
type capture struct {
	read  func() ([]byte, gopacket.CaptureInfo, error)
	link  layers.LinkType  // the link type of all frames, without ng
	ng    *pcapgo.NgReader // nil: the file is pcap
	count int              // frames that were read
}

// capturedFrame is a frame of a capture.
type capturedFrame struct {
	number  int // the number in the capture, from 1
	at      time.Time
	data    []byte // the bytes from the Ethernet header on
	missing int    // bytes at its end that the capture lacks
	port    string // interface by which it was captured; "": the file does not say
	copied  bool   // the switch has sent it: gleam trace has captured it as it left
	foreign error  // what it is, if it is no frame of Ethernet or IP; data is nil then
}

// absent stands for the bytes that a capture lacks: no IP packet has more.
var absent [1 << 16]byte

// lacking returns as many bytes as the capture lacks of the frame.
func (f *capturedFrame) lacking() []byte { return absent[:min(f.missing, len(absent))] }

// cutError says that a capture ends within a frame: what wrote it was killed, or writes yet. The
// frames before are whole.
type cutError struct{ whole int }

func (e cutError) Error() string {
	return fmt.Sprintf("it ends within frame %d: its writer was killed, or has not written all yet; the %d frames before are whole", e.whole+1, e.whole)
}

const wantCapture = "want pcap or pcapng, as tcpdump -w, Wireshark, dumpcap and gleam trace -w write them, or that compressed by gzip"

var (
	magicGzip = []byte{0x1f, 0x8b}
	magicNext = []byte{0x0a, 0x0d, 0x0d, 0x0a} // the magic number of pcapng

	// otherFiles are what is taken for a capture and is none.
	otherFiles = []struct{ magic, is string }{
		{"\x28\xb5\x2f\xfd", "it is compressed by zstd: decompress it by zstd -d"},
		{"\x04\x22\x4d\x18", "it is compressed by lz4: decompress it by lz4 -d"},
		{"\xfd7zXZ", "it is compressed by xz: decompress it by xz -d"},
		{"BZh", "it is compressed by bzip2: decompress it by bzip2 -d"},
		{"snoop\x00", "it is a capture of snoop: convert it by editcap -F pcapng"},
	}
)

// openInput opens a file that a command reads; - is standard input.
func openInput(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(name)
}

func openCapture(r io.Reader) (*capture, error) {
	b := bufio.NewReader(r)
	if h, _ := b.Peek(len(magicGzip)); bytes.Equal(h, magicGzip) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("it is damaged gzip: %w", err)
		}
		b = bufio.NewReader(z)
	}
	h, err := b.Peek(6)
	for _, o := range otherFiles {
		if strings.HasPrefix(string(h), o.magic) {
			return nil, errors.New(o.is)
		}
	}
	switch {
	case len(h) == 0 && errors.Is(err, io.EOF):
		return nil, errors.New("it is empty: " + wantCapture)
	case bytes.HasPrefix(h, magicNext):
		ng, err := pcapgo.NewNgReader(b, pcapgo.NgReaderOptions{WantMixedLinkType: true, SkipUnknownVersion: true})
		if err != nil {
			return nil, noCapture(err)
		}
		return &capture{read: ng.ZeroCopyReadPacketData, ng: ng}, nil
	}
	p, err := pcapgo.NewReader(b)
	if err != nil {
		return nil, noCapture(err)
	}
	if _, _, err := ethernetOf(p.LinkType(), nil); err != nil {
		return nil, err
	}
	return &capture{read: p.ZeroCopyReadPacketData, link: p.LinkType()}, nil
}

func noCapture(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it is too short for a capture: " + wantCapture)
	}
	return fmt.Errorf("it is no capture: %s (%w)", wantCapture, err)
}

// next returns the next frame, valid until the next call; io.EOF at the end, a cutError at an end
// within a frame.
func (c *capture) next() (*capturedFrame, error) {
	b, ci, err := c.read()
	switch {
	// Of a frame that ends behind its header pcapgo says that the file ends there.
	case errors.Is(err, io.EOF) && ci.CaptureLength > 0, errors.Is(err, io.ErrUnexpectedEOF):
		return nil, cutError{c.count}
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case err != nil:
		return nil, fmt.Errorf("frame %d: the file is damaged: %w", c.count+1, err)
	}
	c.count++
	f := &capturedFrame{number: c.count, at: ci.Timestamp, missing: max(0, ci.Length-ci.CaptureLength)}
	link := c.link
	if c.ng != nil {
		i, err := c.ng.Interface(ci.InterfaceIndex)
		if err != nil {
			return nil, fmt.Errorf("frame %d: the file is damaged: %w", f.number, err)
		}
		link, f.port = i.LinkType, i.Name
		f.copied = c.ng.SectionInfo().Application == traceApplication && strings.HasSuffix(i.Name, " "+api.TraceOut)
	}
	f.data, f.foreign = frameOfLink(link, b)
	return f, nil
}

// frameOfLink returns a captured frame as one of Ethernet. Captures of several interfaces
// (tcpdump -i any) have Linux' pseudo header in place of Ethernet's, those of tunnels have none.
func frameOfLink(link layers.LinkType, b []byte) ([]byte, error) {
	header, skip, err := ethernetOf(link, b)
	switch {
	case err != nil:
		return nil, err
	case header == nil:
		return b, nil
	}
	return append(header, b[skip:]...), nil
}

// ethernetOf returns the Ethernet header for a captured frame, and the number of bytes that it
// stands for; nil if the frame has one.
func ethernetOf(link layers.LinkType, b []byte) (header []byte, skip int, err error) {
	header = make([]byte, rocev2.EthernetLen, rocev2.EthernetLen+len(b))
	source, etherType := header[6:12], header[12:14]
	switch link {
	case layers.LinkTypeEthernet:
		return nil, 0, nil
	case layers.LinkTypeLinuxSLL:
		if skip = 16; len(b) >= skip {
			copy(source, b[6:12])
			copy(etherType, b[14:16])
		}
	case layers.LinkTypeLinuxSLL2:
		if skip = 20; len(b) >= skip {
			copy(source, b[12:18])
			copy(etherType, b[0:2])
		}
	case layers.LinkTypeRaw, layers.LinkTypeIPv4, layers.LinkTypeIPv6:
		binary.BigEndian.PutUint16(etherType, rocev2.EtherTypeIPv4)
		if len(b) > 0 && b[0]>>4 == 6 {
			binary.BigEndian.PutUint16(etherType, rocev2.EtherTypeIPv6)
		}
	default:
		return nil, 0, fmt.Errorf("its link type is %d (%s): want frames of Ethernet, Linux cooked ones (tcpdump -i any) or IP", link, link)
	}
	return header, min(skip, len(b)), nil
}
