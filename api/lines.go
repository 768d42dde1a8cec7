// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"time"
)

// Lines is the media type of a list of which each line is the JSON of one element. A
// client asks for it by the header Accept.
const Lines = "application/x-ndjson"

// lineTimeout is the longest time for which a client may not read what is written to it.
const lineTimeout = 15 * time.Second

// wantsLines tells whether the client accepts lines, and by name.
func wantsLines(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept") {
		for a := range strings.SplitSeq(header, ",") {
			if t, _, err := mime.ParseMediaType(a); err == nil && t == Lines {
				return true
			}
		}
	}
	return false
}

// lines writes values as lines of JSON. A client that reads nothing for lineTimeout is
// given up.
type lines struct {
	w   http.ResponseWriter
	buf *bufio.Writer
}

func newLines(w http.ResponseWriter) *lines {
	w.Header().Set("Content-Type", Lines)
	l := &lines{w: w}
	l.buf = bufio.NewWriterSize(deadlineWriter{w}, 64<<10)
	return l
}

// write writes a line.
func (l *lines) write(v any) error {
	var line bytes.Buffer // complete, so that an error leaves no half a line
	if err := json.NewEncoder(&line).Encode(v); err != nil {
		return err
	}
	_, err := l.buf.Write(line.Bytes())
	return err
}

// flush sends what is written.
func (l *lines) flush() error {
	if err := l.buf.Flush(); err != nil {
		return err
	}
	return http.NewResponseController(l.w).Flush()
}

// deadlineWriter gives each write its own time.
type deadlineWriter struct{ http.ResponseWriter }

func (w deadlineWriter) Write(b []byte) (int, error) {
	// A recorder of a test has no deadlines.
	http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(lineTimeout))
	return w.ResponseWriter.Write(b)
}

// writeLines writes the elements of a list, a line each. The status is out with the first
// lines, so an element that cannot be encoded ends the answer.
func writeLines(w http.ResponseWriter, list any) {
	out := newLines(w)
	for _, v := range reflect.ValueOf(list).Seq2() {
		if out.write(v.Interface()) != nil {
			return
		}
	}
	out.flush()
}
