// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// script is a connection whose other side says what is written down.
type script struct {
	io.Reader
	wrote bytes.Buffer
}

func (s *script) Write(b []byte) (int, error)      { return s.wrote.Write(b) }
func (s *script) Close() error                     { return nil }
func (s *script) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 1} }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 2} }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// FuzzParse: a message that is accepted is a whole one, and is accepted again
// after it was written.
func FuzzParse(f *testing.F) {
	f.Add([]byte(strings.TrimSpace(hello)))
	f.Add([]byte(`{"v":2,"type":"group","group":{"ip":"10.0.9.9","qpn":18193,"path_mtu":1024,"members":3,"window":{"va":1,"len":2,"rkey":3}}}`))
	f.Add([]byte(`{"v":1,"type":"error","error":"x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parse(b)
		if err != nil {
			return
		}
		if m.Type == typeHello && m.Member.Check() != nil || m.Type == typeGroup && m.Group.Check() != nil {
			t.Errorf("accepted %q", b)
		}
		if again, err := json.Marshal(m); err != nil {
			t.Errorf("accepted %q, cannot be written: %v", b, err)
		} else if _, err := parse(again); err != nil {
			t.Errorf("accepted %q, not its own %q: %v", b, again, err)
		}
	})
}

// FuzzExchange has the other side, authenticated, say anything: a master takes
// who speaks for its own address, a member a whole group, and both end.
func FuzzExchange(f *testing.F) {
	f.Add([]byte(hello))
	f.Add([]byte(`{"v":2,"type":"group","group":{"ip":"10.0.9.9","qpn":18193,"path_mtu":1024,"members":3}}` + "\n" + `{"v":2,"type":"registered"}` + "\n"))
	f.Add([]byte("\x16\x03\x01\x00\x05hello"))
	f.Fuzz(func(t *testing.T, b []byte) {
		ctx := context.Background()
		if p, err := Handshake(ctx, &script{Reader: bytes.NewReader(b)}, Admission{Identity: plain}); err == nil {
			if p.Info.Check() != nil || p.Info.IP != info(1).IP {
				t.Errorf("taken: %+v", p.Info)
			}
			_ = p.AwaitReady(ctx)
		}
		m := NewMember(&script{Reader: bytes.NewReader(b)})
		if g, err := m.Offer(ctx, info(1)); err == nil {
			if g.Check() != nil || !g.IP.Is4() {
				t.Errorf("taken: %+v", g)
			}
			_ = m.Ready(ctx)
		}
	})
}

// FuzzHandshake has the other side, which does not have the key, say anything:
// neither side lets it in, and it is told no message.
func FuzzHandshake(f *testing.F) {
	id := keyed('k')
	first := &script{Reader: strings.NewReader("")}
	_, _ = id.client(context.Background(), first, Exchange) // ends at the answer
	f.Add(first.wrote.Bytes())
	answer := &script{Reader: bytes.NewReader(first.wrote.Bytes())}
	_, _ = id.server(context.Background(), answer, Exchange, func() error { return nil })
	f.Add(answer.wrote.Bytes())
	f.Add([]byte(hello))
	f.Add([]byte("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc"))
	f.Fuzz(func(t *testing.T, b []byte) {
		ctx := context.Background()
		s := &script{Reader: bytes.NewReader(b)}
		if _, err := id.server(ctx, s, Exchange, func() error { return errors.New("settled") }); err == nil || strings.Contains(err.Error(), "settled") {
			t.Errorf("a listening side has let it in: %v", err)
		}
		if w := s.wrote.Bytes(); bytes.Contains(w, []byte(`"qpn"`)) || len(w) > 1<<14 {
			t.Errorf("it was told %d bytes: %.200q", len(w), w)
		}
		if _, err := id.client(ctx, &script{Reader: bytes.NewReader(b)}, Exchange); err == nil {
			t.Error("a connecting side has let it in")
		}
	})
}
