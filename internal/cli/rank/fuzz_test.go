// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// noDevice is a device without queue pairs, whose regions are only remembered.
type noDevice struct{ endpoint.Device }

type region struct {
	endpoint.MR
	b []byte
}

func (noDevice) RegisterMemory(b []byte, _ uint64, _ endpoint.Access) (endpoint.MR, error) {
	return region{b: b}, nil
}
func (noDevice) MaxPathMTU() int { return 1024 }
func (noDevice) CreateQP(endpoint.QPConfig) (endpoint.QP, error) {
	return nil, errors.New("no queue pairs here")
}
func (region) Close() error { return nil }

// recorder is a helper whose answers are kept.
type recorder struct {
	*helper
	mu      sync.Mutex
	answers []answer
	end     context.CancelFunc
}

func newRecorder(t testing.TB) *recorder {
	r := &recorder{}
	ctx, cancel := context.WithCancel(context.Background())
	r.end = cancel
	r.helper = newHelper(ctx, func(b, rights []byte) error {
		var a answer
		if err := json.Unmarshal(b, &a); err != nil || len(b) > MaxPacket {
			t.Errorf("an answer of %d bytes: %v", len(b), err)
		}
		if len(rights) > 0 && (a.Error != "" || a.Re == 0 && a.G == 0) {
			t.Errorf("a descriptor with %s", b)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.answers = append(r.answers, a)
		return nil
	})
	r.device, r.ip = noDevice{}, netip.MustParseAddr("127.0.0.1")
	return r
}

func (r *recorder) close() {
	r.end()
	r.work.Wait()
	r.leaveAll()
	for _, g := range r.groups {
		g.free()
	}
}

// FuzzRequests has the process say anything: each line is a packet. Each has one answer, but for
// posts, which have none or an error, and memory is never outside of a window.
func FuzzRequests(f *testing.F) {
	f.Add(`{"op":"window","id":1,"g":1,"bytes":4096,"master":true}` + "\n" + `{"op":"make","id":2,"g":1,"ip":"10.77.254.7","members":1,"dead_after_ms":300}`)
	f.Add(`{"op":"window","id":1,"g":2,"bytes":8192}` + "\n" + `{"op":"join","id":2,"g":2,"master":"127.0.0.1:1","timeout_ms":1}` + "\n" + `{"op":"leave","id":3,"g":2}`)
	f.Add(`{"op":"post","id":4,"g":1,"offset":9223372036854775807,"len":1,"imm":4294967295}`)
	f.Add(`{"op":"remove","id":5,"g":1,"member":"10.77.0.3"}` + "\n" + `{"op":"window","g":0}` + "\n{}\nnull\n[]")
	f.Fuzz(func(t *testing.T, text string) {
		r := newRecorder(t)
		defer r.close()
		want := 0
		for _, line := range strings.Split(text, "\n") {
			q, err := decode([]byte(line))
			if err == nil && q.Op == "window" && q.Bytes > 1<<30 {
				continue // address space is not what this is about
			}
			if want++; want > 100 {
				return
			}
			r.handle([]byte(line))
		}
		r.work.Wait()
		if len(r.answers) != want {
			t.Errorf("%d answers to %d requests: %+v", len(r.answers), want, r.answers)
		}
		for _, a := range r.answers {
			if a.Event != "" || len(a.Done)+len(a.Got) > 0 {
				t.Errorf("%+v without a queue pair", a)
			}
		}
	})
}

// A window cannot become smaller below the helper, and requests that make no sense are refused
// with the reason.
func TestRequests(t *testing.T) {
	r := newRecorder(t)
	defer r.close()
	for _, c := range []struct{ request, want string }{
		{`{"op":"window","id":1,"g":1,"bytes":4096,"master":true}`, ""},
		{`{"op":"window","id":2,"g":1,"bytes":4096}`, "g 1 has a window"},
		{`{"op":"window","id":2,"g":65,"bytes":4096}`, "g 65: want 1 to 64"},
		{`{"op":"window","id":2,"g":2,"bytes":0}`, "bytes 0: want 1 to"},
		{`{"op":"post","id":2,"g":3,"len":1}`, "g 3 has no window"},
		{`{"op":"post","id":2,"g":1,"len":1}`, "has no group yet"},
		{`{"op":"post","id":2,"g":1,"offset":-1}`, "want no negative"},
		{`{"op":"join","id":2,"g":1,"master":true}`, "want the master's address"},
		{`{"op":"make","id":2,"g":1,"members":1}`, "want GroupIP"},
		{`{"op":"make","id":2,"g":1,"ip":"10.0.0.1","members":1,"mtu":1500}`, "mtu 1500"},
		{`{"op":"make","id":2,"g":1,"ip":"10.0.0.1","members":1,"what":1}`, "unknown field"},
		{`{"op":"make","id":2,"g":1,"ip":"10.0.0.1","members":1}`, "no queue pairs here"},
		{`{"op":"remove","id":2,"g":1}`, "want the member's address"},
		{`{"op":"leave","id":2,"g":1} 1`, "a packet has one object"},
		{`{"op":"leave","id":2,"g":1,"timeout_ms":-1}`, "timeout_ms -1"},
		{`{"op":"go","id":2,"g":1}`, "want window, make, join"},
		{strings.Repeat(" ", MaxPacket+1), "at most 65536 bytes"},
		{`{"op":"leave","id":2,"g":1}`, ""},
		{`{"op":"leave","id":2,"g":1}`, "g 1 has no window"},
	} {
		r.answers = nil
		r.handle([]byte(c.request))
		r.work.Wait()
		if len(r.answers) != 1 || (r.answers[0].Error == "") != (c.want == "") || !strings.Contains(r.answers[0].Error, c.want) {
			t.Errorf("%s: %+v, want %q", c.request[:min(len(c.request), 80)], r.answers, c.want)
		}
	}
}

func TestSealed(t *testing.T) {
	r := newRecorder(t)
	defer r.close()
	q := request{Op: "window", G: 1, Bytes: 1 << 20}
	g, file, err := newGroup(r.helper, &q)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	defer g.free()
	for _, size := range []int64{0, 2 << 20} {
		if err := unix.Ftruncate(int(file.Fd()), size); !errors.Is(err, unix.EPERM) {
			t.Errorf("truncate to %d: %v", size, err)
		}
	}
}
