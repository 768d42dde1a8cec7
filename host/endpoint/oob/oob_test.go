// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// plain is for what does not depend on keys.
var plain = must(NewIdentity(envelope.Auth{Insecure: true}))

// keyed proves that it has the key that every byte of which is b.
func keyed(b byte) *Identity {
	return must(NewIdentity(envelope.Auth{Keys: envelope.Keys{1: bytes.Repeat([]byte{b}, envelope.MinKeyLen)}, Send: 1}))
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// anywhere takes members from this machine, whatever their address.
func anywhere(id *Identity) Admission { return Admission{Identity: id, OtherNetwork: true} }

func info(i int) ConnInfo {
	return ConnInfo{
		IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), QPN: 0x1000, SQPSN: 0xFFFFFF, RQPSN: 7,
		Window: &Window{VA: 1<<63 + 5, Len: 1 << 40, RKey: 0xDEADBEEF}, App: json.RawMessage(fmt.Sprintf(`{"host":%d}`, i)),
	}
}

var group = Group{IP: netip.MustParseAddr("10.0.9.9"), QPN: 0x4711, PathMTU: 1024, Members: 3, Window: &Window{VA: 1 << 62, Len: 4096, RKey: 1}}

func TestExchange(t *testing.T) {
	for name, id := range map[string]*Identity{"plain": plain, "keyed": keyed('k')} {
		t.Run(name, func(t *testing.T) { exchange(t, id) })
	}
}

func exchange(t *testing.T, id *Identity) {
	ln := listen(t)
	ctx := within(t, 10*time.Second)
	results := make(chan error, 2)
	for i := 1; i <= 2; i++ {
		go func() {
			results <- func() error {
				c, err := id.Dial(ctx, ln.Addr().String(), Exchange)
				if err != nil {
					return err
				}
				m := NewMember(c)
				defer m.Close()
				g, err := m.Offer(ctx, info(i))
				if err != nil {
					return err
				}
				if g.IP != group.IP || g.QPN != group.QPN || *g.Window != *group.Window || g.Members != 3 {
					return fmt.Errorf("got %+v", g)
				}
				return m.Ready(ctx)
			}()
		}()
	}
	peers, err := Collect(ctx, ln, 2, anywhere(id))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range peers {
		i := int(p.Info.IP.As4()[3])
		want, _ := json.Marshal(info(i))
		if got, _ := json.Marshal(p.Info); string(got) != string(want) {
			t.Errorf("collected %s, sent %s", got, want)
		}
		if err := p.Describe(ctx, group); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range peers {
		if err := p.AwaitReady(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range peers {
		if err := p.Registered(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for range peers {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	// The listener is usable again: Collect has interrupted its Accept.
	late := make(chan error, 1)
	go func() { c, err := id.Dial(ctx, ln.Addr().String(), Exchange); late <- errors.Join(err, c.Close()) }()
	c, err := id.Accept(ctx, ln, Exchange)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := <-late; err != nil {
		t.Error(err)
	}
}

const hello = `{"v":2,"type":"hello","member":{"ip":"10.0.0.1","qpn":4096,"sq_psn":1,"rq_psn":2}}` + "\n"

// badHellos is what no member says, and what the master says to it.
var badHellos = map[string]struct{ send, want string }{
	"garbage":       {"GET / HTTP/1.1\r\n", "not JSON of this exchange"},
	"binary":        {"\x00\x01\xff\n", "not JSON of this exchange"},
	"empty line":    {"\n", "not JSON of this exchange"},
	"no version":    {`{"type":"hello"}` + "\n", "without a version"},
	"other version": {`{"v":9,"kind":"hi"}` + "\n", "version 9 of the exchange, this is version 2: use the same release on all hosts"},
	"other type":    {`{"v":2,"type":"ready"}` + "\n", `"ready" where "hello" was due`},
	"no member":     {`{"v":2,"type":"hello"}` + "\n", "a hello without a member"},
	"oversized":     {`{"v":2,"x":"` + strings.Repeat("x", 2*MaxLine), "more than 65536 bytes"},
	"oversized app": {`{"v":2,"type":"hello","member":{"ip":"10.0.0.1","qpn":4096,"app":"` + strings.Repeat("x", MaxApp) + `"}}` + "\n", "the limit is 32768"},
	"bad address":   {strings.Replace(hello, "10.0.0.1", "10.0.0.256", 1), "malformed message"},
	"multicast":     {strings.Replace(hello, "10.0.0.1", "224.0.0.1", 1), "no host's address"},
	"bad QPN":       {strings.Replace(hello, "4096", "1", 1), "QPN 0x1 is not a reliable connected queue pair's"},
	"negative QPN":  {strings.Replace(hello, "4096", "-1", 1), "malformed message"},
	"bad PSN":       {strings.Replace(hello, `"sq_psn":1`, `"sq_psn":16777216`, 1), "PSNs have 24 bits"},
	"bad window":    {strings.Replace(hello, `"rq_psn":2`, `"rq_psn":2,"window":{"va":18446744073709551615,"len":2,"rkey":1}`, 1), "passes the end of the address space"},
	"cut off":       {hello[:20], "closed the connection within a message"},
	"nothing":       {"", `closed the connection instead of sending "hello"`},
	"error":         {`{"v":2,"type":"error","error":"no \u001b[31m memory"}` + "\n", "gave up: no  [31m memory"},
}

func TestGreetRefuses(t *testing.T) {
	for name, c := range badHellos {
		t.Run(name, func(t *testing.T) {
			ln := listen(t)
			ctx := within(t, 10*time.Second)
			answer := make(chan string, 1)
			go func() {
				conn, err := plain.Dial(ctx, ln.Addr().String(), Exchange)
				if err != nil {
					answer <- err.Error()
					return
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, c.send) // it may be refused half-way
				_ = conn.(*net.TCPConn).CloseWrite()
				_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
				b, _ := io.ReadAll(conn) // a reset loses the text: not our matter here
				answer <- string(b)
			}()
			conn, err := plain.Accept(ctx, ln, Exchange)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Handshake(ctx, conn, anywhere(plain))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "member 127.0.0.1:") {
				t.Errorf("error %q, want the member's address and %q", err, c.want)
			}
			if a := <-answer; a != "" && !strings.HasPrefix(a, `{"v":2,"type":"error","error":"`) {
				t.Errorf("the peer was told %q", a)
			}
		})
	}
}

// TestCollectSurvivesBadPeers has one bad peer of each kind, a silent one and a
// duplicate besides two good members.
func TestCollectSurvivesBadPeers(t *testing.T) {
	ln := listen(t)
	ctx := within(t, 20*time.Second)
	dial := func() net.Conn {
		c, err := plain.Dial(ctx, ln.Addr().String(), Exchange)
		if err != nil {
			t.Error(err)
			return nil
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	dial() // says nothing, all the time
	for _, c := range badHellos {
		conn := dial()
		go func() { _, _ = io.WriteString(conn, c.send); _ = conn.(*net.TCPConn).CloseWrite() }()
	}
	refused := make(chan error, 1)
	go func() {
		first := NewMember(dial())
		go func() { _, _ = first.Offer(ctx, info(1)) }()
		// The duplicate comes when the first has been seen: here, at once is
		// as good, whichever of the two is taken.
		_, err := NewMember(dial()).Offer(ctx, info(1))
		refused <- err
	}()
	got := make(chan []*Peer, 1)
	go func() {
		peers, err := Collect(ctx, ln, 2, anywhere(plain))
		if err != nil {
			t.Error(err)
		}
		got <- peers
	}()
	second := NewMember(dial())
	go func() { _, _ = second.Offer(ctx, info(2)) }()
	peers := <-got
	if len(peers) != 2 || peers[0].Info.IP == peers[1].Info.IP {
		t.Fatalf("collected %v", peers)
	}
	for _, p := range peers {
		p.Fail(errors.New("this was a test"))
	}
	if err := <-refused; err == nil {
		t.Error("a duplicate member was not refused")
	}
}

func TestCollectSaysWhoIsMissing(t *testing.T) {
	ln := listen(t)
	ctx := within(t, 300*time.Millisecond)
	m, err := plain.Dial(ctx, ln.Addr().String(), Exchange)
	if err != nil {
		t.Fatal(err)
	}
	bad, err := plain.Dial(ctx, ln.Addr().String(), Exchange)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(bad, `{"v":9}`+"\n")
	told := make(chan error, 1)
	go func() { _, err := NewMember(m).Offer(within(t, 5*time.Second), info(4)); told <- err }()
	_, err = Collect(ctx, ln, 3, anywhere(plain))
	for _, want := range []string{"1 of 3 members have connected to 127.0.0.1:", "connected: 10.0.0.4", "refused: member 127.0.0.1:", "version 9"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v hides its cause", err)
	}
	var remote *RemoteError
	if err := <-told; !errors.As(err, &remote) || !strings.Contains(remote.Text, "1 of 3") {
		t.Errorf("the waiting member got %v", err)
	}
}

func TestSlowPeerIsBounded(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	ctx := within(t, 50*time.Millisecond)
	if _, err := Handshake(ctx, a, anywhere(plain)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent peer gave %v", err)
	}
	c, d := net.Pipe() // nobody reads d
	defer d.Close()
	m := NewMember(c)
	if _, err := m.Offer(within(t, 50*time.Millisecond), info(1)); err == nil {
		t.Error("a peer that does not read was waited for")
	}
	m.Close()
}

func TestDialNobodyListens(t *testing.T) {
	ln := listen(t)
	addr := ln.Addr().String()
	ln.Close()
	_, err := plain.Dial(within(t, 100*time.Millisecond), addr, Exchange)
	if err == nil || !strings.Contains(err.Error(), "refused") || !strings.Contains(err.Error(), "is the other side started?") {
		t.Errorf("got %v", err)
	}
	if _, err := Call(within(t, 100*time.Millisecond), []string{addr}, anywhere(plain)); err == nil || !strings.Contains(err.Error(), addr) {
		t.Errorf("call: %v", err)
	}
	if _, err := plain.Dial(within(t, 5*time.Second), "not an address", Exchange); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a bad address: %v", err)
	}
}

func TestWindowHidesRKey(t *testing.T) {
	i := info(1)
	g := Group{Window: i.Window, TargetKey: i.Window.RKey}
	for _, s := range []string{fmt.Sprintf("%v %+v %#v", *i.Window, *i.Window, *i.Window), fmt.Sprint(i.Window), fmt.Sprintf("%v %+v %#v", g, g, &g)} {
		if strings.Contains(strings.ToLower(s), "deadbeef") || strings.Contains(s, "3735928559") {
			t.Errorf("R_Key in %q", s)
		}
	}
}
