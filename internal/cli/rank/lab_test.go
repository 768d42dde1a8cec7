// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/bedtest"
	"github.com/gleam-rdma/gleam/test/labtest"
)

var programs = labtest.Programs{Packages: []string{"../../../cmd/gleamd", "../../../cmd/gleam"}}

func TestMain(m *testing.M) { os.Exit(programs.Run(m)) }

// process is a process with its helper.
type process struct {
	t      *testing.T
	host   lab.Host
	path   *net.UnixAddr
	conn   *net.UnixConn
	helper *lab.Process
	window []byte
	at     string
	gone   answer // the last eviction
}

func start(t *testing.T, b *testbed.Testbed, host int, key string) *process {
	t.Helper()
	p := &process{t: t, host: b.Star.Hosts[host], path: &net.UnixAddr{Net: "unixpacket", Name: fmt.Sprintf("@gleam-rank-%d-%d", os.Getpid(), time.Now().UnixNano())}}
	l, err := net.ListenUnix(p.path.Net, p.path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	there, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	c := exec.Command(programs.Path(t, "gleam"), "rank", "--address", p.host.IPv4.String(), "--key-file", key)
	c.Stdin = there
	if p.helper, err = p.host.NS.Start(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.helper.Stop(5 * time.Second) })
	p.connect()
	return p
}

// connect has the process take the helper for its own.
func (p *process) connect() {
	p.t.Helper()
	var err error
	if p.conn, err = net.DialUnix(p.path.Net, nil, p.path); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = p.conn.Close() })
	p.next()
}

// beside is another process of the host.
func (p *process) beside() *process {
	p.t.Helper()
	q := &process{t: p.t, host: p.host, path: p.path, helper: p.helper}
	q.connect()
	return q
}

func (p *process) ask(text string, args ...any) {
	p.t.Helper()
	if _, err := p.conn.Write(fmt.Appendf(nil, text, args...)); err != nil {
		p.t.Fatal(err)
	}
}

// next returns the next packet, and a descriptor that is with it, or -1.
func (p *process) next() (a answer, fd int) {
	p.t.Helper()
	b, oob := make([]byte, MaxPacket), make([]byte, 64)
	_ = p.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	n, k, _, _, err := p.conn.ReadMsgUnix(b, oob)
	if err != nil {
		p.t.Fatalf("host %s: %v", p.host.Name, err)
	}
	if err := json.Unmarshal(b[:n], &a); err != nil {
		p.t.Fatal(err)
	}
	if a.Event == "evicted" {
		p.gone = a
	}
	messages, _ := unix.ParseSocketControlMessage(oob[:k])
	for _, m := range messages {
		if r, err := unix.ParseUnixRights(&m); err == nil {
			return a, r[0]
		}
	}
	return a, -1
}

// until returns the first packet that is wanted.
func (p *process) until(want func(answer) bool) answer {
	p.t.Helper()
	for {
		a, _ := p.next()
		if want(a) {
			return a
		}
		if a.Error != "" || a.Event == "failed" || a.Event == "evicted" && a.Member == "" {
			p.t.Fatalf("host %s: %+v", p.host.Name, a)
		}
	}
}

const windowBytes = 4 << 20

func (p *process) open(master bool) {
	p.t.Helper()
	p.ask(`{"op":"window","id":1,"g":1,"bytes":%d,"master":%v,"name":"a"}`, windowBytes, master)
	a, fd := p.next()
	if a.Error != "" || fd < 0 {
		p.t.Fatalf("%+v", a)
	}
	defer unix.Close(fd)
	var err error
	if p.window, err = unix.Mmap(fd, 0, windowBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = unix.Munmap(p.window) })
	p.at = a.At
}

func answered(id uint64) func(answer) bool { return func(a answer) bool { return a.Re == id } }

// sender returns a function that posts a part of from's window, each time with other bytes, and waits until the others
// have got them and from its completion.
func sender(t *testing.T) func(from *process, others ...*process) {
	imm := uint64(0)
	return func(from *process, others ...*process) {
		t.Helper()
		imm++
		part := bytes.Repeat([]byte{byte(0x40 + imm)}, 1<<20)
		copy(from.window[1<<20:], part)
		from.ask(`{"op":"post","id":%d,"g":1,"offset":%d,"len":%d,"imm":%d}`, 100+imm, 1<<20, 1<<20, imm)
		for _, p := range others {
			a := p.until(func(a answer) bool { return len(a.Got) > 0 })
			if a.Got[0] != [2]uint64{imm, 1 << 20} || !bytes.Equal(p.window[1<<20:2<<20], part) {
				t.Fatalf("host %s: %+v, or other bytes", p.host.Name, a)
			}
		}
		from.until(func(a answer) bool {
			if len(a.Got) > 0 {
				t.Errorf("the source has got %+v", a)
			}
			return slices.Contains(a.Done, 100+imm)
		})
	}
}

// Four processes make a group. Each of them may post, and its bytes are in the windows of the others. A process
// that ends leaves at once, one that is killed with its helper is evicted, and comes back.
func TestGroup(t *testing.T) {
	bed := bedtest.Star(t, testbed.Config{Gleamd: programs.Path(t, "gleamd"), Star: lab.StarConfig{Hosts: 4}})
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(hex.EncodeToString(bed.Key)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var all []*process
	for i := range 4 {
		all = append(all, start(t, bed, i, key))
		all[i].open(i == 0)
	}
	m := all[0]
	m.ask(`{"op":"make","id":2,"g":1,"ip":"10.77.254.9","members":3,"dead_after_ms":300}`)
	for _, p := range all[1:] {
		p.ask(`{"op":"join","id":2,"g":1,"master":%q}`, m.at)
	}
	qpn := make(map[*process]rocev2.QPN)
	for _, p := range all {
		qpn[p] = p.until(answered(2)).QPN
	}
	sent := sender(t)
	sent(m, all[1:]...)
	sent(all[2], m, all[1], all[3])

	begin := time.Now()
	_ = all[1].conn.Close() // as the kernel does at the end of a process
	m.until(func(a answer) bool { return a.Event == "member left" && a.Member == "10.77.0.2" })
	t.Logf("a process that ends is out after %v", time.Since(begin))
	<-all[1].helper.Done()
	sent(m, all[2:]...)

	if err := all[3].helper.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	sent(m, all[2])
	if m.gone.Member != "10.77.0.4" || m.gone.QPN != qpn[all[3]] {
		t.Errorf("%+v, want the queue pair 0x%x", m.gone, uint32(qpn[all[3]]))
	}
	back := start(t, bed, 3, key)
	back.open(false)
	back.ask(`{"op":"join","id":2,"g":1,"master":%q}`, m.at)
	if a := back.until(answered(2)); a.QPN == 0 || a.QPN == qpn[all[3]] {
		t.Errorf("%+v of a process that has come back", a)
	}
	m.ask(`{"op":"remove","id":6,"g":1,"member":"10.77.0.4","qpn":%d}`, qpn[all[3]]) // too late
	if a := m.until(answered(6)); !strings.Contains(a.Error, "is not a member") {
		t.Errorf("%+v", a)
	}
	sent(m, all[2], back)
	m.ask(`{"op":"remove","id":7,"g":1,"member":"10.77.0.3","qpn":%d}`, qpn[all[2]])
	m.until(answered(7))
	all[2].until(func(a answer) bool { return a.Event == "ended" })
	sent(m, back)
	m.ask(`{"op":"leave","id":8,"g":1}`)
	m.until(answered(8))
	back.until(func(a answer) bool { return a.Event == "ended" })
}

// Two hosts have two processes each, which share a queue pair and a window. A post of each is in all windows; a process that
// ends takes nothing from the other one of its host, the master's included, and with the last one the host leaves.
func TestShared(t *testing.T) {
	bed := bedtest.Star(t, testbed.Config{Gleamd: programs.Path(t, "gleamd"), Star: lab.StarConfig{Hosts: 3}})
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(hex.EncodeToString(bed.Key)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var all []*process
	for i := range 3 {
		all = append(all, start(t, bed, i, key))
		if i < 2 {
			all = append(all, all[2*i].beside())
		}
	}
	m, early := all[0], all[1]
	for i, p := range []*process{early, m, all[2], all[3], all[4]} {
		p.open(i == 1)
	}
	for _, p := range all[1:] { // the process beside the master joins too, and is no member of its own
		p.ask(`{"op":"join","id":2,"g":1,"master":%q}`, m.at)
	}
	m.ask(`{"op":"make","id":2,"g":1,"ip":"10.77.254.9","members":2,"dead_after_ms":300}`)
	for _, p := range all {
		p.until(answered(2))
	}
	sent := sender(t)
	sent(m, all[1:]...)
	sent(early, m, all[2], all[3], all[4])
	sent(all[3], m, early, all[2], all[4])
	sent(all[4], all[:4]...)

	_ = all[2].conn.Close()
	_ = m.conn.Close()
	sent(early, all[3], all[4])
	late := all[3].beside() // comes back
	late.open(false)
	late.ask(`{"op":"join","id":2,"g":1,"master":"10.77.0.1:1"}`)
	late.until(answered(2))
	sent(all[4], early, all[3], late)
	_ = late.conn.Close()
	_ = all[3].conn.Close()
	early.until(func(a answer) bool { return a.Event == "member left" && a.Member == "10.77.0.2" })
	<-all[3].helper.Done()
	_ = early.conn.Close()
	all[4].until(func(a answer) bool { return a.Event == "ended" })
	<-m.helper.Done()
}

// A standard input that is no such socket is refused in words.
func TestStandardInput(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[1])
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{file, os.NewFile(uintptr(fds[0]), "no listener")} {
		if _, err := socket(f); err == nil {
			t.Errorf("%s is taken for a listener", f.Name())
		}
		_ = f.Close()
	}
}

// A process that comes while the last one ends is served.
func TestComesLate(t *testing.T) {
	h := newHelper(t.Context())
	at := &net.UnixAddr{Net: "unixpacket", Name: fmt.Sprintf("@gleam-rank-%d-late", os.Getpid())}
	l, err := net.ListenUnix(at.Net, at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h.clients = 1 // a process that connected before the last one ended the listener
	_ = l.SetDeadline(time.Unix(1, 0))
	done := make(chan error, 1)
	go func() { done <- h.listen(l) }()
	c, err := net.DialUnix(at.Net, nil, at)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	h.clients = 1 // the other one ends
	h.mu.Unlock()
	_ = c.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
