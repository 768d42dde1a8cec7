// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// stream is an answer of any length: JSON objects, one a line, which emit sends; more says that
// the next one follows at once. An error before the first line becomes the answer.
type stream func(ctx context.Context, emit func(v any, more bool) error) error

// serve sends the lines of s. It returns an error if none was sent.
func (s stream) serve(w http.ResponseWriter, r *http.Request, end context.Context) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(end, cancel)()                     // so that the daemon can stop
	http.NewResponseController(w).SetReadDeadline(time.Time{}) // of the connection, whose end is noticed by reading
	var out *lines
	err := s(ctx, func(v any, more bool) error {
		if out == nil {
			out = newLines(w)
		}
		if err := out.write(v); err != nil || more {
			return err
		}
		return out.flush()
	})
	if out != nil {
		return nil // the stream ends here; its last line says why
	}
	return err
}

// maxLine bounds one line of a stream that a client reads.
const maxLine = 1 << 20

// callStream posts body and passes the lines of the answer to each.
func callStream[T any](ctx context.Context, c *Client, path string, body any, each func(l *T, more bool) error) error {
	b, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gleamd"+path, bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return c.explain(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, c.maxAnswer))
		return c.refusal(http.MethodPost, path, resp.Status, b)
	}
	in := bufio.NewReaderSize(resp.Body, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil {
			return c.explain(err)
		}
		l := new(T)
		if err := json.Unmarshal(line, l); err != nil {
			return fmt.Errorf("%s: a line of the answer to POST %s is not understood; are gleam and gleamd of the same version? %w", c.where, path, err)
		}
		if err := each(l, in.Buffered() > 0); err != nil {
			return err
		}
	}
}
