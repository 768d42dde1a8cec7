// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The file is a header, frames that hold everything as it was when the file was made (the
// checkpoint), and a frame for each later batch of changes (the log). Numbers are big-endian.
//
//	header                                  frame
//	 0  magic "gleamst\n"                    0  magic "gfrm"
//	 8  version (2), zero (2)                4  length of the payload (4)
//	12  checksum of the header (4)           8  offset of the frame in the file (8)
//	16  id of the file (8)                  16  offset below which all was durable (8)
//	24  end of the checkpoint (8)           24  checksum of the payload (4)
//	                                        28  checksum of bytes 0 to 27 (4)
//	                                        32  payload: edits
//
// Checksums are CRC32C. Those of frames begin with the id, which is drawn for each file, so
// that no frame of an older file on the same blocks of the disk is taken for one of this
// file. The header has this form in all versions.
const (
	fileMagic  = "gleamst\n"
	frameMagic = "gfrm"
	version    = 5 // the version of release 0.1.0
	headerLen  = 32
	frameLen   = 32 // the length without payload
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrVersion means that a gleamd of another version has written the file.
var ErrVersion = errors.New("written by another version")

// header is that of a file.
type header struct {
	version    uint16
	id         uint64
	checkpoint int64 // where it ends
}

func (h *header) append(b []byte) []byte {
	at := len(b)
	b = append(b, fileMagic...)
	b = binary.BigEndian.AppendUint16(b, h.version)
	b = append(b, 0, 0, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, h.id)
	b = binary.BigEndian.AppendUint64(b, uint64(h.checkpoint))
	binary.BigEndian.PutUint32(b[at+12:], crc32.Checksum(b[at:], castagnoli))
	return b
}

func parseHeader(b []byte) (h header, err error) {
	if len(b) < headerLen {
		return h, errors.New("it is shorter than the header of a state file")
	}
	h.version = binary.BigEndian.Uint16(b[8:])
	h.id = binary.BigEndian.Uint64(b[16:])
	h.checkpoint = int64(binary.BigEndian.Uint64(b[24:]))
	if !bytes.Equal(h.append(nil), b[:headerLen]) {
		return h, errors.New("the header is not that of a state file")
	}
	if h.version != version {
		return h, ErrVersion
	}
	if h.checkpoint < headerLen {
		return h, fmt.Errorf("a checkpoint that ends at byte %d", h.checkpoint)
	}
	return h, nil
}

func (h *header) sum(b []byte) uint32 {
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], h.id)
	return crc32.Update(crc32.Checksum(id[:], castagnoli), castagnoli, b)
}

// appendFrame appends the frame of payload that begins at offset at of the file.
func (h *header) appendFrame(b, payload []byte, at, durable int64) []byte {
	start := len(b)
	b = append(b, frameMagic...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.BigEndian.AppendUint64(b, uint64(at))
	b = binary.BigEndian.AppendUint64(b, uint64(durable))
	b = binary.BigEndian.AppendUint32(b, h.sum(payload))
	b = binary.BigEndian.AppendUint32(b, h.sum(b[start:]))
	return append(b, payload...)
}

// frame is a frame that was read.
type frame struct {
	durable int64
	payload []byte
	end     int64 // its end in the file
}

// frameAt reads the frame at offset at of file b. It reports whether there is one, whole and
// with the right checksums.
func (h *header) frameAt(b []byte, at int64) (f frame, ok bool) {
	rest := b[at:]
	if len(rest) < frameLen {
		return f, false
	}
	length := int64(binary.BigEndian.Uint32(rest[4:]))
	if binary.BigEndian.Uint64(rest[8:]) != uint64(at) || h.sum(rest[:28]) != binary.BigEndian.Uint32(rest[28:]) || length > int64(len(rest))-frameLen {
		return f, false
	}
	f = frame{durable: int64(binary.BigEndian.Uint64(rest[16:])), payload: rest[frameLen : frameLen+length], end: at + frameLen + length}
	return f, h.sum(f.payload) == binary.BigEndian.Uint32(rest[24:])
}

// readFile reads the state that file b holds, as of its last complete batch. torn is the
// number of bytes behind that one: a batch whose writing was interrupted. Anything else
// that is not as it was written is an error, and there is no state.
func readFile(b []byte) (t table, h header, torn int64, err error) {
	if h, err = parseHeader(b); err != nil {
		return nil, h, 0, err
	}
	t = make(table)
	at := int64(headerLen)
	for f, ok := h.frameAt(b, at); ok; f, ok = h.frameAt(b, at) {
		edits, err := parseEdits(f.payload)
		if err != nil {
			return nil, h, 0, fmt.Errorf("byte %d: %w", at, err)
		}
		t.apply(edits)
		at = f.end
	}
	if at < h.checkpoint || h.durableFrom(b, at) > at {
		return nil, h, 0, fmt.Errorf("byte %d: it was written completely and has changed since", at)
	}
	return t, h, int64(len(b)) - at, nil
}

// durableFrom returns the largest offset below which all was durable, by the frames that are
// behind offset at.
func (h *header) durableFrom(b []byte, at int64) (durable int64) {
	for {
		next := bytes.Index(b[at:], []byte(frameMagic))
		if next < 0 {
			return durable
		}
		start := at + int64(next)
		at = start + 1
		if f, ok := h.frameAt(b, start); ok {
			durable, at = max(durable, f.durable), f.end
		}
	}
}
