// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// capture reads a file of captured frames in the classic format of libpcap, as tcpdump
// writes it.
type capture struct {
	r       *bufio.Reader
	order   binary.ByteOrder
	unit    time.Duration // of the fractions of seconds
	frame   []byte
	lengths [4]uint32 // seconds, fraction, bytes captured, bytes of the frame
}

const (
	magicMicro    = 0xA1B2C3D4
	magicNano     = 0xA1B23C4D
	magicNext     = 0x0A0D0D0A // of pcapng
	linkEthernet  = 1
	maxFrameBytes = 1 << 18 // tcpdump's largest snap length
)

func openCapture(r io.Reader) (*capture, error) {
	c := &capture{r: bufio.NewReader(r)}
	var h [24]byte
	if _, err := io.ReadFull(c.r, h[:]); err != nil {
		return nil, errors.New("it is too short for a capture: want a file of tcpdump -w")
	}
	for _, c.order = range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch c.order.Uint32(h[:]) {
		case magicMicro:
			c.unit = time.Microsecond
		case magicNano:
			c.unit = time.Nanosecond
		case magicNext:
			return nil, errors.New("it is a pcapng file: convert it by editcap -F pcap")
		default:
			continue
		}
		if link := c.order.Uint32(h[20:]); link != linkEthernet {
			return nil, fmt.Errorf("its link type is %d: want frames of Ethernet, %d, which tcpdump -i INTERFACE captures", link, linkEthernet)
		}
		return c, nil
	}
	return nil, errors.New("it is no capture: want a file of tcpdump -w")
}

// next returns the next frame, valid until the next call, and its time; io.EOF at the end.
func (c *capture) next() (frame []byte, at time.Time, err error) {
	if err := binary.Read(c.r, c.order, &c.lengths); errors.Is(err, io.EOF) {
		return nil, at, io.EOF
	} else if err != nil {
		return nil, at, errors.New("it ends within a frame's header")
	}
	n := c.lengths[2]
	if n > maxFrameBytes {
		return nil, at, fmt.Errorf("a frame has %d bytes: the file is damaged", n)
	}
	if int(n) > cap(c.frame) {
		c.frame = make([]byte, n)
	}
	c.frame = c.frame[:n]
	if _, err := io.ReadFull(c.r, c.frame); err != nil {
		return nil, at, errors.New("it ends within a frame")
	}
	return c.frame, time.Unix(int64(c.lengths[0]), int64(time.Duration(c.lengths[1])*c.unit)).UTC(), nil
}
