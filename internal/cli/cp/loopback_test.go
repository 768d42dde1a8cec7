// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
)

func loopback() Local {
	l := DefaultLocal()
	l.Host.Auth = envelope.Auth{Keys: envelope.Keys{1: bytes.Repeat([]byte{5}, 32)}, Send: 1}
	return l
}

// receiving starts a receiver at loopback, and returns its address and its messages.
func receiving(t *testing.T, dir string) (addr string, said func() string) {
	t.Helper()
	var mu sync.Mutex
	var text strings.Builder
	at := make(chan string, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	o := &ReceiveOptions{Local: loopback(), Dir: dir, Address: "127.0.0.1:0", Say: func(s string) {
		mu.Lock()
		defer mu.Unlock()
		text.WriteString(s + "\n")
		if _, rest, ok := strings.Cut(s, "waiting for senders at "); ok {
			a, _, _ := strings.Cut(rest, ",")
			at <- a
		}
	}}
	go func() {
		defer close(ended)
		if err := Receive(ctx, o); err != context.Canceled {
			t.Errorf("receive: %v", err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return <-at, func() string { mu.Lock(); defer mu.Unlock(); return text.String() }
}

// Without a group files go by TCP; what differs at the receiver is replaced, and what is a
// part of the file is used.
func TestTCP(t *testing.T) {
	src, dir := tree(t, minChunk), t.TempDir()
	addr, _ := receiving(t, dir)
	o := DefaultSendOptions()
	o.Local, o.Files, o.Hosts, o.Chunk = loopback(), []string{src}, []string{addr}, minChunk
	long := filepath.Join("tree", "sizes", "f")
	b, err := os.ReadFile(filepath.Join(src, "sizes", "f"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "tree", "sizes"), 0o755); err != nil {
		t.Fatal(err)
	}
	b[minChunk] ^= 1 // the second chunk is wrong
	for name, data := range map[string][]byte{partName(long): b[:3*minChunk+5], filepath.Join("tree", "sizes", "e"): make([]byte, minChunk+1)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Send(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	same(t, src, filepath.Join(dir, "tree"))
	if want := r.Bytes - 2*minChunk; r.TCP != want || r.Group != 0 {
		t.Errorf("%d bytes by TCP, want %d", r.TCP, want)
	}
}

// What leads out of the directory is refused, and the receiver goes on.
func TestHostileSender(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "dir")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(outside, "secret"), 10, 0o600)
	for name, to := range map[string]string{"link": "..", "file": "../secret", partName("own"): "../secret"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	addr, said := receiving(t, dir)
	l := loopback()
	id, err := l.identity()
	if err != nil {
		t.Fatal(err)
	}
	good := hello{Chunk: minChunk, Window: 2, Key: make([]byte, keySize)}
	list := func(paths ...string) []byte {
		var b bytes.Buffer
		for _, p := range paths {
			_ = json.NewEncoder(&b).Encode(&entry{Path: []byte(p), Mode: 0o644, Size: 3})
		}
		return b.Bytes()
	}
	type frames []frame
	begin := func(paths ...string) frames {
		h, _ := json.Marshal(&good)
		return frames{{frameHello, h}, {frameEntries, list(paths...)}, {frameListed, nil}, {frameRight, make([]byte, (len(paths)+7)/8)}}
	}
	huge, _ := json.Marshal(&hello{Chunk: maxChunk, Window: maxWindow, Key: good.Key})
	for name, c := range map[string]struct {
		send frames
		want string
	}{
		"a path above":           {begin("../evil"), "leads out"},
		"an absolute path":       {begin("/tmp/evil"), "leads out"},
		"through a link":         {append(begin("link/evil"), frame{frameChunk, sealed(0)}), "escapes"},
		"a part's name":          {begin(partName("own")), "unfinished"},
		"two of a name":          {begin("a", "a"), "twice"},
		"a chunk of none":        {append(begin("b"), frame{frameChunk, sealed(1)}), "chunk 1 of 1"},
		"right without hashes":   {append(begin("c")[:3], frame{frameRight, []byte{1}}), "has not"},
		"a set of other length":  {append(begin("d")[:3], frame{frameRight, make([]byte, 2)}), "set of 2"},
		"much memory":            {frames{{frameHello, huge}}, "window"},
		"no hello":               {frames{{frameFinish, nil}}, "makes no sense"},
		"a group of no address":  {append(begin("e"), frame{frameJoin, []byte{1}}), "cannot be joined"},
		"frames of the receiver": {append(begin("f"), frame{frameWhole, nil}), "makes no sense"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		conn, err := id.Dial(ctx, addr, use)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		before := len(said())
		w := newWire(conn)
		for _, f := range c.send {
			_ = w.send(f.kind, f.data) // fails once the receiver has closed the connection
		}
		for err = nil; err == nil; {
			_, _, err = w.receive()
		}
		w.close()
		cancel()
		if !strings.Contains(err.Error(), c.want) && !strings.Contains(said()[before:], c.want) {
			t.Errorf("%s: %v\n%s", name, err, said()[before:])
		}
	}
	// A file that is a link becomes a file, and what it leads to stays.
	src := filepath.Join(t.TempDir(), "file")
	fill(t, src, 3*minChunk, 0o644)
	o := DefaultSendOptions()
	o.Local, o.Files, o.Hosts, o.Chunk = l, []string{src}, []string{addr}, minChunk
	if _, err := Send(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	same(t, src, filepath.Join(dir, "file"))
	if b, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || len(b) != 10 {
		t.Errorf("the file outside: %d bytes, %v", len(b), err)
	}
	// A link that has the name of an unfinished file is left alone.
	fill(t, filepath.Join(filepath.Dir(src), "own"), 3*minChunk, 0o644)
	o.Files = []string{filepath.Join(filepath.Dir(src), "own")}
	if _, err := Send(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	same(t, o.Files[0], filepath.Join(dir, "own"))
	if b, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || len(b) != 10 {
		t.Errorf("the file outside: %d bytes, %v", len(b), err)
	}
	if list, _ := os.ReadDir(outside); len(list) != 2 {
		t.Errorf("outside are %v", list)
	}
}

// sealed is a chunk of three bytes under the key of TestHostileSender.
func sealed(n int) []byte {
	msg := make([]byte, chunkHead+3)
	newSeal(make([]byte, keySize)).close(msg, n)
	return msg
}

// A chunk that was changed on its way is not written.
func TestForgedChunk(t *testing.T) {
	dir := t.TempDir()
	addr, said := receiving(t, dir)
	l := loopback()
	id, err := l.identity()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := id.Dial(t.Context(), addr, use)
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(conn)
	defer w.close()
	h, _ := json.Marshal(&hello{Chunk: minChunk, Window: 2, Key: make([]byte, keySize)})
	e, _ := json.Marshal(&entry{Path: []byte("a"), Mode: 0o644, Size: 3})
	bad := sealed(0)
	bad[len(bad)-1] ^= 1
	for _, f := range []frame{{frameHello, h}, {frameEntries, e}, {frameListed, nil}, {frameRight, []byte{0}}, {frameChunk, bad}, {frameFinish, nil}} {
		if err := w.send(f.kind, f.data); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []byte{frameHad, frameMissing, frameMissing} {
		for kind := byte(frameDone); kind == frameDone; {
			var data []byte
			if kind, data, err = w.receive(); err != nil || kind != want && kind != frameDone || kind == frameMissing && data[0] != 1 {
				t.Fatalf("frame %d %v, %v, want %d", kind, data, err, want)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err == nil || !strings.Contains(said(), "wrong") {
		t.Errorf("%v\n%s", err, said())
	}
}

// A receiver that violates the protocol fails alone: the other one gets the files.
func TestHostileReceiver(t *testing.T) {
	src := filepath.Join(t.TempDir(), "file")
	fill(t, src, 3*minChunk, 0o644)
	l := loopback()
	id, err := l.identity()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		send []frame
		want string
	}{
		"hashes of other chunks": {[]frame{{frameHave, appendHave(3, make([]byte, 32))}}, "hashes of 1 chunks from 3"},
		"half a hash":            {[]frame{{frameHave, make([]byte, 20)}}, "hashes of 20"},
		"a set of other length":  {[]frame{{frameHad, nil}, {frameMissing, make([]byte, 9)}}, "set of 9"},
		"more than all chunks":   {[]frame{{frameHad, nil}, {frameMissing, []byte{0xff}}}, "set of 1"},
		"a chunk":                {[]frame{{frameChunk, make([]byte, 99)}}, "makes no sense"},
		"a report of nonsense":   {[]frame{{frameDone, []byte{1}}}, "report of 1"},
		"never the right bytes":  {[]frame{{frameHad, nil}, {frameMissing, []byte{7}}, {frameMissing, []byte{7}}, {frameMissing, []byte{7}}, {frameMissing, []byte{7}}}, "3 times over"},
		"a text for terminals":   {[]frame{{frameFailed, []byte("\x1b]0;evil\a")}}, "]0;evil"},
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(ended)
			for {
				conn, err := id.Accept(ctx, ln, use)
				if err != nil {
					return
				}
				w := newWire(conn)
				for _, f := range c.send {
					_ = w.send(f.kind, f.data)
				}
				for err == nil {
					_, _, err = w.receive()
				}
				w.close()
			}
		}()
		dir := t.TempDir()
		addr, _ := receiving(t, dir)
		o := DefaultSendOptions()
		o.Local, o.Files, o.Hosts, o.Chunk = l, []string{src}, []string{ln.Addr().String(), addr}, minChunk
		r, err := Send(t.Context(), &o)
		if err == nil || !strings.Contains(r.Hosts[0].Error, c.want) || strings.ContainsRune(r.Hosts[0].Error, '\x1b') || !r.Hosts[1].Whole {
			t.Errorf("%s: %v, %+v", name, err, r.Hosts)
		}
		same(t, src, filepath.Join(dir, "file"))
		cancel()
		<-ended
		_ = ln.Close()
	}
}

// A host that is not there fails alone, with what to do.
func TestAbsentHost(t *testing.T) {
	src := filepath.Join(t.TempDir(), "file")
	fill(t, src, 10, 0o644)
	dir := t.TempDir()
	addr, _ := receiving(t, dir)
	o := DefaultSendOptions()
	o.Local, o.Files, o.Hosts, o.Timeout = loopback(), []string{src}, []string{"127.0.0.1:1", addr}, 200*time.Millisecond
	r, err := Send(t.Context(), &o)
	if err == nil || !strings.Contains(err.Error(), "1 of 2 hosts") || !strings.Contains(r.Hosts[0].Error, "is the other side started? (`gleam cp --receive DIR`") {
		t.Errorf("%v, %+v", err, r.Hosts)
	}
	same(t, src, filepath.Join(dir, "file"))
}

// A receiver that has another key is started: the sender is told of keys alone.
func TestOtherKey(t *testing.T) {
	src := filepath.Join(t.TempDir(), "file")
	fill(t, src, 10, 0o644)
	addr, _ := receiving(t, t.TempDir())
	o := DefaultSendOptions()
	o.Local, o.Files, o.Hosts = loopback(), []string{src}, []string{addr}
	o.Host.Auth = envelope.Auth{Keys: envelope.Keys{7: bytes.Repeat([]byte{5}, 32)}, Send: 7}
	r, err := Send(t.Context(), &o)
	if err == nil {
		t.Fatal("the receiver took a key that it does not have")
	}
	if got := r.Hosts[0].Error; !strings.Contains(got, "key 7 is not configured there: give all hosts of a group the same (the key of this host is that of --key-file") || strings.Contains(got, "--receive") {
		t.Error(got)
	}
}
