// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/confine/privilege"
	"github.com/gleam-rdma/gleam/lab"
)

// Users and groups of the tests below. Group 1 is daemon's on every Linux.
const (
	operators = 1
	stranger  = 61300
)

// dialAs connects as a user and a group, in a thread that ends with that.
func dialAs(t *testing.T, socket string, uid, gid int) net.Conn {
	t.Helper()
	type result struct {
		c   net.Conn
		err error
	}
	ch := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		const same = ^uintptr(0)
		for _, set := range [][4]uintptr{{syscall.SYS_SETGROUPS, 0, 0, 0}, {syscall.SYS_SETRESGID, same, uintptr(gid), same}, {syscall.SYS_SETRESUID, same, uintptr(uid), same}} {
			if _, _, errno := syscall.RawSyscall(set[0], set[1], set[2], set[3]); errno != 0 {
				ch <- result{nil, errno}
				return
			}
		}
		c, err := net.Dial("unix", socket)
		ch <- result{c, err}
	}()
	r := <-ch
	if r.err != nil {
		t.Fatalf("connect as uid %d, gid %d: %v", uid, gid, r.err)
	}
	t.Cleanup(func() { r.c.Close() })
	return r.c
}

// ask sends a request over c and returns the answer's status and text.
func ask(c net.Conn, method, path, body string) (int, string, error) {
	c.SetDeadline(time.Now().Add(testTimeout))
	req, err := http.NewRequest(method, "http://gleamd"+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	hc := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return c, nil }, DisableKeepAlives: true}}
	resp, err := hc.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// open makes p's socket one that everybody may connect to, and that operators change
// groups by.
func openSocket(t *testing.T, p *process) {
	t.Helper()
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("api: {"), []byte(`api: {mode: "0666", group: daemon, `), 1)
	// A directory that strangers may enter.
	dir, err := os.MkdirTemp("", "gleamd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "run", "s.sock")
	text = regexp.MustCompile(`socket: [^}]*}`).ReplaceAll(text, []byte("socket: "+socket+"}"))
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(p.file, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(testTimeout); err != nil {
		t.Fatal(err)
	}
	p.client = api.Dial(socket)
	t.Cleanup(p.client.Close)
	p.socket = socket
	p.restart(t)
}

// Who may change, who may only read, as the kernel says who connects.
func TestRolesByPeerCredentials(t *testing.T) {
	p := startProcess(t)
	openSocket(t, p)
	group := lab.StarGroupsIPv4.Addr().Next()
	body := fmt.Sprintf(`{"group":"%s","members":[{"ip":"%s","qpn":17},{"ip":"%s","qpn":18}]}`, group, p.star.Hosts[0].IPv4, p.star.Hosts[1].IPv4)
	port := "/v1/ports/" + p.star.Ports[0]
	for _, tt := range []struct {
		name               string
		uid, gid           int
		method, path, body string
		status             int
		says               string
	}{
		{"a stranger reads", stranger, stranger, "GET", "/v1/ports", "", 200, p.star.Ports[0]},
		{"a stranger registers", stranger, stranger, "POST", "/v1/groups", body, 403, "uid 61300 may not change here; changes are for root, uid "},
		{"a stranger sets a port", stranger, stranger, "PATCH", port, `{"rate":0}`, 403, "members of group daemon"},
		{"an operator registers", stranger, operators, "POST", "/v1/groups", body, 204, ""},
		{"a stranger deletes", stranger, stranger, "DELETE", "/v1/groups/" + group.String(), "", 403, "usermod -aG daemon USER"},
		{"an operator sets a port", stranger, operators, "PATCH", port, `{"rate":0}`, 204, ""},
		{"gleamd's user deletes", privilege.FirstNameless, privilege.FirstNameless, "DELETE", "/v1/groups/" + group.String(), "", 204, ""},
		{"root sets a port", 0, 0, "PATCH", port, `{"rate":0}`, 204, ""},
	} {
		status, text, err := ask(dialAs(t, p.socket, tt.uid, tt.gid), tt.method, tt.path, tt.body)
		if err != nil || status != tt.status || !strings.Contains(text, tt.says) {
			t.Errorf("%s: %d %s %v, want %d %s", tt.name, status, text, err, tt.status, tt.says)
		}
	}
	for _, want := range []string{
		`audit	{"by": "uid 61300, pid %d", "action": "register group: strict, members`, `audit	{"by": "uid 0 (root), pid %d", "action": "set port`,
		`audit	{"by": "uid 61300, pid %d", "action": "POST \"/v1/groups\"", "result": "refused: this user may not change"`,
	} {
		want = fmt.Sprintf(want, os.Getpid())
		if !p.logs(func(log string) bool { return strings.Contains(log, want) }) {
			t.Errorf("the log lacks %q:\n%s", want, p.Output())
		}
	}
}

// memory reads a figure in MB from a process's status.
func memory(t *testing.T, pid int, key string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(key + `:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatalf("no %s in %s", key, status)
	}
	kb, _ := strconv.Atoi(string(m[1]))
	return kb >> 10
}

// 300 bodies of 1 MiB that never end, 300 questions for events that wait and 300
// connections that say nothing, by a stranger, by an operator and by root: gleamd stays
// small, and root is answered, except while root itself has used up its share. It took
// 361 MB before.
func TestManyClientsAreBounded(t *testing.T) {
	p := startProcess(t)
	openSocket(t, p)
	before := memory(t, p.PID(), "VmRSS")
	head := fmt.Sprintf("POST /v1/groups HTTP/1.1\r\nHost: gleamd\r\nContent-Length: %d\r\n\r\n", 1<<20)
	bulk := head + `{"group":"` + strings.Repeat("1", 1<<20-100)
	for _, who := range []struct {
		name     string
		uid, gid int
	}{{"stranger", stranger, stranger}, {"operator", stranger + 1, operators}, {"root", 0, 0}} {
		for what, text := range map[string]string{"bodies": bulk, "polls": "GET /v1/events?wait=1m HTTP/1.1\r\nHost: gleamd\r\n\r\n", "silence": ""} {
			conns := make([]net.Conn, 300)
			for i := range conns {
				conns[i] = dialAs(t, p.socket, who.uid, who.gid)
				conns[i].SetWriteDeadline(time.Now().Add(5 * time.Millisecond)) // what is not read does not go
				io.WriteString(conns[i], text)
			}
			refused := 0
			for end := time.Now().Add(10 * time.Second); refused < 150 && time.Now().Before(end); {
				for i, c := range conns {
					if c == nil {
						continue
					}
					c.SetReadDeadline(time.Now().Add(time.Millisecond))
					answer := make([]byte, 100)
					n, err := c.Read(answer)
					if strings.HasPrefix(string(answer[:n]), "HTTP/1.1 503") || strings.HasPrefix(string(answer[:n]), "HTTP/1.1 403") || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
						refused++
						c.Close()
						conns[i] = nil
					}
				}
			}
			if refused < 150 {
				t.Errorf("%s, %s: %d of %d connections are refused", who.name, what, refused, len(conns))
			}
			if who.uid != 0 {
				start := time.Now()
				if _, err := p.client.Ports(t.Context()); err != nil || time.Since(start) > 10*time.Second {
					t.Errorf("%s, %s: root is answered after %v: %v", who.name, what, time.Since(start), err)
				}
			}
			for _, c := range conns {
				if c != nil {
					c.Close()
				}
			}
		}
	}
	peak := memory(t, p.PID(), "VmHWM")
	t.Logf("%d MB before, %d MB at most", before, peak)
	if peak-before > 64 {
		t.Errorf("gleamd went from %d to %d MB", before, peak)
	}
	if _, err := p.client.Ports(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
