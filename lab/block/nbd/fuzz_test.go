// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package nbd

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"
)

const testSize = 1 << 16

// checked is a device in memory that reports ranges outside of it.
type checked struct {
	t  *testing.T
	mu sync.Mutex
	b  [testSize]byte
}

func (d *checked) in(off, n int64) []byte {
	if off < 0 || n < 0 || off > testSize || n > testSize-off {
		d.t.Errorf("%d bytes at %d are outside of the device", n, off)
		return nil
	}
	return d.b[off : off+n]
}

func (d *checked) Size() int64 { return testSize }

func (d *checked) Read(p []byte, off int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	copy(p, d.in(off, int64(len(p))))
	return nil
}

func (d *checked) Write(p []byte, off int64, _ bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	copy(d.in(off, int64(len(p))), p)
	return nil
}

func (d *checked) Trim(off, n int64, _ bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.in(off, n))
	return nil
}

func (d *checked) WriteZeroes(off, n int64, fua, _ bool) error { return d.Trim(off, n, fua) }
func (d *checked) Flush() error                                { return nil }

// client is a connection from which a client's bytes come, and then its end.
type client struct {
	net.Conn // nil: nothing else is called
	from     *bytes.Reader
	to       bytes.Buffer
}

func (c *client) Read(p []byte) (int, error)       { return c.from.Read(p) }
func (c *client) Write(p []byte) (int, error)      { return c.to.Write(p) }
func (c *client) Close() error                     { return nil }
func (c *client) SetDeadline(time.Time) error      { return nil }
func (c *client) SetWriteDeadline(time.Time) error { return nil }

// talk has the server serve what a client sends, and returns its answers.
func talk(t *testing.T, sent []byte) ([]byte, error) {
	c := &client{from: bytes.NewReader(sent)}
	err := serve(c, &checked{t: t}, replyTime, func() bool { return true })
	return c.to.Bytes(), err
}

// option is an option of the handshake.
func option(b []byte, kind uint32, data ...byte) []byte {
	b = be.AppendUint64(b, magicOption)
	b = be.AppendUint32(b, kind)
	b = be.AppendUint32(b, uint32(len(data)))
	return append(b, data...)
}

// exported is the handshake of a client that asks for the device by its name.
func exported() []byte { return option(be.AppendUint32(nil, fixedNew|noZeroes), optExport) }

func (q *request) append(b, data []byte) []byte {
	b = be.AppendUint32(b, magicRequest)
	b = be.AppendUint16(b, q.Flags)
	b = be.AppendUint16(b, q.Kind)
	b = be.AppendUint64(b, q.Cookie)
	b = be.AppendUint64(b, q.Off)
	b = be.AppendUint32(b, q.Len)
	return append(b, data...)
}

// Requests that cannot be done get the error that the protocol names, and the ones after them are served.
func TestErrors(t *testing.T) {
	cases := []struct {
		request
		want uint32
	}{
		{request{Kind: cmdRead, Len: 512}, 0},
		{request{Kind: cmdRead, Off: testSize - 1, Len: 2}, errInvalid},
		{request{Kind: cmdRead, Off: 1<<64 - 1, Len: 2}, errInvalid},
		{request{Kind: cmdRead, Len: MaxPayload + 1}, errOverflow},
		{request{Kind: cmdWrite, Off: testSize - 4, Len: 4, Flags: flagFUA}, 0},
		{request{Kind: cmdWrite, Off: testSize - 4, Len: 5}, errNoSpace},
		{request{Kind: cmdWrite, Len: 4, Flags: flagNoHole}, errInvalid},
		{request{Kind: cmdTrim, Off: testSize, Len: 1}, errInvalid},
		{request{Kind: cmdTrim, Len: testSize}, 0},
		{request{Kind: cmdWriteZeroes, Len: 1<<32 - 1}, errNoSpace},
		{request{Kind: cmdWriteZeroes, Len: 8, Flags: flagNoHole | flagFUA}, 0},
		{request{Kind: cmdFlush}, 0},
		{request{Kind: cmdFlush, Len: 1}, errInvalid},
		{request{Kind: 9}, errInvalid},
	}
	sent := exported()
	for i := range cases {
		q := &cases[i].request
		q.Cookie = uint64(i)
		var data []byte
		if q.Kind == cmdWrite {
			data = make([]byte, q.Len)
		}
		sent = q.append(sent, data)
	}
	got, err := talk(t, sent)
	if err != nil {
		t.Fatal(err)
	}
	got = got[18+10:] // the greeting, and the device
	for n := range cases {
		if len(got) < 16 {
			t.Fatalf("%d answers, want %d", n, len(cases))
		}
		c := &cases[be.Uint64(got[8:])]
		code := be.Uint32(got[4:])
		if code != c.want {
			t.Errorf("%+v: error %d, want %d", c.request, code, c.want)
		}
		if got = got[16:]; code == 0 && c.Kind == cmdRead {
			got = got[c.Len:]
		}
	}
	if len(got) != 0 {
		t.Errorf("%d bytes behind the answers", len(got))
	}
}

// Nothing that a client sends makes the server panic, or reach outside of the device.
func FuzzServe(f *testing.F) {
	var q request
	f.Add(q.append(exported(), nil))
	q = request{Kind: cmdWrite, Off: 512, Len: 3}
	f.Add(q.append(option(option(be.AppendUint32(nil, fixedNew), optList), optGo, 0, 0, 0, 0, 0, 1, 0, infoBlock), []byte("abc")))
	q = request{Kind: cmdTrim, Off: 1 << 63, Len: 1 << 31, Flags: flagFUA}
	f.Add(q.append(exported(), nil))
	f.Add(option(option(be.AppendUint32(nil, fixedNew), 1<<31), optAbort))
	f.Fuzz(func(t *testing.T, sent []byte) {
		_, _ = talk(t, sent) // how it ends is the client's matter
	})
}
