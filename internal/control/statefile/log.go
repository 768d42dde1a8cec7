// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"maps"
	"slices"
)

// disk is the folder of the state file.
type disk interface {
	read() ([]byte, error)     // the state file; fs.ErrNotExist if there is none
	create() (diskFile, error) // a new file, which is not the state file before replace
	discard()                  // removes the created file
	replace() error            // makes the created file the state file, durably
	setAside() (string, error) // renames the state file, and returns its new name
	close() error
}

type diskFile interface {
	write([]byte) error
	sync() error // makes durable what was written
	close() error
}

// The file is written anew when its log is longer than its checkpoint and this. Each change
// then costs no more than twice its own bytes on average, however large the state is.
const minLog = 1 << 20

// checkpointPayload is the length at which a frame of a checkpoint ends.
const checkpointPayload = 64 << 10

// log writes batches into the state file. After an error the file on the disk is
// as it was after an earlier commit, and the next commit makes a new one: what was written
// before a failed write or sync is not known, and what is behind it could not be read.
type log struct {
	disk  disk
	draw  func() uint64 // ids of files
	table table         // the table with all commits, also those that failed
	size  int           // the size of the encoding of table, about

	file   diskFile // nil: the next commit makes a new file
	header header
	end    int64 // the end of the file; all before it is durable
	limit  int64 // the file is written anew when it would become longer

	buf, payload []byte // reused
	syncs        int    // counts files and folders that were made durable
	written      int64  // counts bytes
}

// commit makes b durable. What it removes that is not there takes no write.
func (l *log) commit(b *batch) error {
	edits := slices.DeleteFunc(b.edits, l.table.removesNothing)
	l.size += l.table.apply(&batch{edits: edits})
	switch {
	case l.file == nil:
		return l.checkpoint()
	case len(edits) == 0:
		return nil
	}
	l.payload = l.payload[:0]
	for _, e := range edits {
		l.payload = appendEdit(l.payload, e)
	}
	if l.end+frameLen+int64(len(l.payload)) > l.limit {
		err := l.checkpoint()
		if err == nil || l.file == nil {
			return err
		}
		l.limit += minLog // the disk has no room for two files: the one that is there goes on
	}
	l.buf = l.header.appendFrame(l.buf[:0], l.payload, l.end, l.end)
	if err := l.write(l.file, l.buf); err != nil {
		l.abandon()
		return err
	}
	l.end += int64(len(l.buf))
	return nil
}

// write writes b at the end of f, and makes it durable.
func (l *log) write(f diskFile, b []byte) error {
	l.written += int64(len(b))
	if err := f.write(b); err != nil {
		return err
	}
	l.syncs++
	return f.sync()
}

// abandon closes the file, which remains what it is on the disk.
func (l *log) abandon() {
	if l.file != nil {
		l.file.close()
		l.file = nil
	}
}

// checkpoint writes the table into a new file, which then takes the place of the old one.
// If it fails before that, the old one goes on.
func (l *log) checkpoint() error {
	h := header{version: version, id: l.draw()}
	b := l.encode(&h)
	f, err := l.disk.create()
	if err != nil {
		return err
	}
	if err := l.write(f, b); err != nil {
		f.close()
		l.disk.discard()
		return err
	}
	l.abandon()
	l.syncs++
	if err := l.disk.replace(); err != nil {
		f.close()
		return err
	}
	l.file, l.header, l.end, l.limit = f, h, h.checkpoint, 2*h.checkpoint+minLog
	return nil
}

// encode returns a file that holds the table, and sets the end of the checkpoint in h.
func (l *log) encode(h *header) []byte {
	b := make([]byte, headerLen, headerLen+l.size+l.size/8)
	l.buf = l.buf[:0]
	frame := func() {
		b = h.appendFrame(b, l.buf, int64(len(b)), headerLen)
		l.buf = l.buf[:0]
	}
	for _, name := range slices.Sorted(maps.Keys(l.table)) {
		if len(l.buf) >= checkpointPayload {
			frame()
		}
		l.buf = append(appendString(append(l.buf, editResets), name), l.table[name]...)
	}
	if len(l.buf) > 0 {
		frame()
	}
	h.checkpoint = int64(len(b))
	h.append(b[:0])
	return b
}
