// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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

// recorder is a process whose answers are kept.
type recorder struct {
	*client
	mu      sync.Mutex
	answers []answer
	end     context.CancelFunc
}

// newRecorder is a process with a helper of its own.
func newRecorder(t testing.TB) *recorder {
	ctx, cancel := context.WithCancel(context.Background())
	h := newHelper(ctx)
	h.device, h.ip = noDevice{}, netip.MustParseAddr("127.0.0.1")
	r := record(t, h)
	r.end = cancel
	return r
}

// record is one more process of a helper.
func record(t testing.TB, h *helper) *recorder {
	r := &recorder{}
	r.client = newClient(h, func(b, rights []byte) error {
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
	return r
}

func (r *recorder) close() {
	r.end()
	r.h.work.Wait()
	r.leaveAll()
}

// FuzzRequests has the process say anything: each line is a packet. Each has one answer, but for
// posts, which have none or an error, and memory is never outside of a window.
func FuzzRequests(f *testing.F) {
	f.Add(`{"op":"window","id":1,"g":1,"bytes":4096,"master":true}` + "\n" + `{"op":"make","id":2,"g":1,"ip":"10.77.254.7","members":1,"dead_after_ms":300}`)
	f.Add(`{"op":"window","id":1,"g":2,"bytes":8192}` + "\n" + `{"op":"join","id":2,"g":2,"master":"127.0.0.1:1","timeout_ms":1}` + "\n" + `{"op":"leave","id":3,"g":2}`)
	f.Add(`{"op":"post","id":4,"g":1,"offset":9223372036854775807,"len":1,"imm":4294967295}`)
	f.Add(`{"op":"window","id":1,"g":1,"bytes":4096,"name":"a"}` + "\n" + `{"op":"window","id":2,"g":2,"bytes":4096,"name":"a","alone":true}`)
	f.Add(`{"op":"remove","id":5,"g":1,"member":"10.77.0.3","qpn":75}` + "\n" + `{"op":"window","g":0}` + "\n{}\nnull\n[]")
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
		r.h.work.Wait()
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
		{`{"op":"post","id":2,"g":1,"len":1}`, "there is no group yet"},
		{`{"op":"post","id":2,"g":1,"offset":-1}`, "want no negative"},
		{`{"op":"join","id":2,"g":1,"master":true}`, "want the master's address"},
		{`{"op":"make","id":2,"g":1,"members":1}`, "want GroupIP"},
		{`{"op":"make","id":2,"g":1,"ip":"10.0.0.1","members":1,"mtu":1500}`, "mtu 1500"},
		{`{"op":"make","id":2,"g":1,"ip":"10.0.0.1","members":1,"what":1}`, "unknown field"},
		{`{"op":"make","id":2,"g":1,"ip":"10.0.0.1","members":1}`, "no queue pairs here"},
		{`{"op":"remove","id":2,"g":1,"qpn":75}`, "want the member's address"},
		{`{"op":"remove","id":2,"g":1,"member":"10.77.0.3"}`, "the number of its queue pair"},
		{`{"op":"leave","id":2,"g":1} 1`, "a packet has one object"},
		{`{"op":"leave","id":2,"g":1,"timeout_ms":-1}`, "timeout_ms -1"},
		{`{"op":"go","id":2,"g":1}`, "want window, make, join"},
		{strings.Repeat(" ", MaxPacket+1), "at most 65536 bytes"},
		{`{"op":"leave","id":2,"g":1}`, ""},
		{`{"op":"leave","id":2,"g":1}`, "g 1 has no window"},
	} {
		r.answers = nil
		r.handle([]byte(c.request))
		r.h.work.Wait()
		if len(r.answers) != 1 || (r.answers[0].Error == "") != (c.want == "") || !strings.Contains(r.answers[0].Error, c.want) {
			t.Errorf("%s: %+v, want %q", c.request[:min(len(c.request), 80)], r.answers, c.want)
		}
	}
}

// Processes share a window by its name, if it is as long and neither is to have it alone; one that comes while
// the other is out of the group gets a new one when that has ended.
func TestShare(t *testing.T) {
	a := newRecorder(t)
	defer a.close()
	a.h.endsAfter = 50 * time.Millisecond
	b := record(t, a.h)
	open := func(r *recorder, g int, rest, want string) {
		t.Helper()
		r.mu.Lock()
		r.answers = nil
		r.mu.Unlock()
		r.handle(fmt.Appendf(nil, `{"op":"window","id":1,"g":%d,%s}`, g, rest))
		if len(r.answers) != 1 || (r.answers[0].Error == "") != (want == "") || !strings.Contains(r.answers[0].Error, want) {
			t.Errorf("%s: %+v, want %q", rest, r.answers, want)
		}
	}
	same := func(ga, gb int) bool { return a.group(ga) == b.group(gb) }
	open(a, 1, `"bytes":4096,"name":"x"`, "")
	open(b, 7, `"bytes":8192,"name":"x"`, "another process of this address has one of 4096")
	open(b, 7, `"bytes":4096,"name":"x","alone":true`, "an address for each rank")
	open(b, 7, `"bytes":4096,"name":"x"`, "")
	open(b, 8, `"bytes":4096,"name":"x"`, "g 7 has the window of this name")
	open(a, 2, `"bytes":4096,"name":"y","alone":true`, "")
	open(b, 2, `"bytes":4096,"name":"y"`, "an address for each rank")
	open(a, 3, `"bytes":4096`, "")
	open(b, 3, `"bytes":4096`, "")
	if !same(1, 7) || same(3, 3) {
		t.Error("windows are shared otherwise than named")
	}
	_ = b.leave(7)
	a.group(1).fail()
	open(b, 9, `"bytes":4096,"name":"x"`, "has to end first")
	go func() {
		time.Sleep(10 * time.Millisecond)
		_ = a.leave(1)
	}()
	open(b, 9, `"bytes":4096,"name":"x"`, "")
	if b.group(9).over() {
		t.Error("a new window is over")
	}
	b.leaveAll()
}

// A process that is stopped, and so takes no packet, holds up no other one of its window.
func TestStoppedProcess(t *testing.T) {
	a := newRecorder(t)
	defer a.close()
	goes := make(chan struct{})
	stopped := newClient(a.h, func([]byte, []byte) error { <-goes; return nil })
	for i, c := range []*client{a.client, stopped} {
		if _, err := a.h.open(c, &request{Op: "window", G: 1 + i, Bytes: 4096, Name: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	g := a.h.groups["x"]
	for i := range 1000 {
		g.tell(answer{Got: [][2]uint64{{uint64(i), 1}}}, nil)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		a.mu.Lock()
		got := slices.Clone(a.answers)
		a.mu.Unlock()
		if len(got) == 1000 {
			for i, x := range got {
				if x.G != 1 || x.Got[0][0] != uint64(i) {
					t.Fatalf("packet %d is %+v", i, x)
				}
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d packets of 1000 have come", len(got))
		}
	}
	close(goes)
	_ = a.h.leave(stopped, g)
	_ = a.h.leave(a.client, g)
}

func TestSealed(t *testing.T) {
	r := newRecorder(t)
	defer r.close()
	q := request{Op: "window", G: 1, Bytes: 1 << 20}
	g, err := newGroup(r.h, &q, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer g.free()
	for _, size := range []int64{0, 2 << 20} {
		if err := unix.Ftruncate(int(g.file.Fd()), size); !errors.Is(err, unix.EPERM) {
			t.Errorf("truncate to %d: %v", size, err)
		}
	}
}
