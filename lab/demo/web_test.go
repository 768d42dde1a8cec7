// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// With --web the address that is printed serves the live page, whose samples show a group with more and
// more data. An interrupt ends the demo well, and nothing is left.
func TestWeb(t *testing.T) {
	labtest.Require(t)
	g := start(t, "Ctrl-C ends it", nil, "demo", "--web=127.0.0.1:0", "--members", "3", "--size", "1MiB", "--gleamd", programs.Path(t, "gleamd"))
	g.until()
	address := regexp.MustCompile(`http://[0-9.:]+/`).FindString(g.say.String())
	client := &http.Client{Timeout: 30 * time.Second}
	get := func(path string) io.ReadCloser {
		t.Helper()
		r, err := client.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != http.StatusOK {
			t.Fatalf("%s%s: %s", address, path, r.Status)
		}
		return r.Body
	}
	page := get("")
	if text, err := io.ReadAll(page); err != nil || !strings.Contains(string(text), "<title>Gleam switch</title>") {
		t.Errorf("%v: %s", err, text)
	}
	_ = page.Close()
	live := get("live")
	defer live.Close()
	lines := bufio.NewReader(live)
	var first uint64
	for flows := false; !flows; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("no more samples: %v\n%s", err, g.say)
		}
		text, ok := strings.CutPrefix(line, "data: ")
		var sample struct{ Groups []api.Group }
		if !ok || json.Unmarshal([]byte(text), &sample) != nil || len(sample.Groups) != 1 || sample.Groups[0].Counters.DataIn == 0 {
			continue
		}
		if n := sample.Groups[0].Counters.DataIn; first == 0 {
			first = n
		} else {
			flows = n > first
		}
	}
	below := g.children()
	if err := g.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := g.code(); code != 0 {
		t.Errorf("exit code %d\n%s", code, g.say)
	}
	gone(t, below)
	if left, _ := filepath.Glob(filepath.Join(runDir, "run-*")); len(left) > 0 {
		for _, dir := range left {
			if _, err := os.Stat(filepath.Join("/proc", strings.TrimPrefix(filepath.Base(dir), "run-"))); err != nil {
				t.Errorf("%s is left", dir)
			}
		}
	}
}

// Keys break what the page shows, and mend it: the switch itself says so each time.
func TestWebKeys(t *testing.T) {
	labtest.Require(t)
	typed, keys, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	g := startTyped(t, typed, "?  these keys", nil, "demo", "--web=127.0.0.1:0", "--members", "3", "--size", "1MiB", "--gleamd", programs.Path(t, "gleamd"))
	_ = typed.Close()
	g.until()
	client := api.Dial(testbed.SocketIn(filepath.Join(runDir, fmt.Sprintf("run-%d", g.Process.Pid))))
	defer client.Close()
	// see waits for a state of the group, and of the port of h3.
	see := func(what string, is func(*api.Group, *api.Port, *api.Stats) bool) {
		t.Helper()
		var last error
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			group, err := client.Group(t.Context(), netip.MustParseAddr("10.77.254.1"))
			if last = err; err != nil {
				continue
			}
			ports, err := client.Ports(t.Context())
			stats, last2 := client.Stats(t.Context())
			if last = errors.Join(err, last2); last == nil && is(group, &ports[2], stats) {
				return
			}
		}
		t.Fatalf("%s: not within 30 s: %v\n%s", what, last, g.say)
	}
	press := func(k string) {
		t.Helper()
		if _, err := keys.WriteString(k); err != nil {
			t.Fatal(err)
		}
	}
	var sent uint64
	flows := func(g *api.Group, p *api.Port, _ *api.Stats) bool {
		before := sent
		sent = g.Counters.DataIn
		return sent > before && before > 0 && g.StallSeconds == 0 && p.Up
	}
	stalls := func(g *api.Group, _ *api.Port, _ *api.Stats) bool { return g.StallSeconds > 0 }
	see("data", flows)
	press("l")
	see("losses that are repaired", func(g *api.Group, _ *api.Port, _ *api.Stats) bool { return g.Repair.Copies > 100 })
	press("ls")
	see("a slow port", func(_ *api.Group, p *api.Port, _ *api.Stats) bool { return p.Rate == slowLink })
	press("s")
	see("a port without a limit", func(_ *api.Group, p *api.Port, _ *api.Stats) bool { return p.Rate == 0 })
	press("p")
	see("a stall by a device that is stopped", stalls)
	press("p")
	see("data again", flows)
	press("u")
	see("a port that is down", func(_ *api.Group, p *api.Port, _ *api.Stats) bool { return !p.Up })
	press("w")
	see("data after all is well", flows)
	var epoch uint64
	see("the switch before its restart", func(_ *api.Group, _ *api.Port, s *api.Stats) bool { epoch = s.Epoch; return true })
	press("r")
	see("another start of gleamd", func(_ *api.Group, _ *api.Port, s *api.Stats) bool { return s.Epoch != epoch })
	sent = 0
	see("data after the restart", flows)
	press("k")
	see("an eviction", func(g *api.Group, _ *api.Port, _ *api.Stats) bool { return len(g.Members) == 2 })
	press("k2kq")
	if code := g.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"k: h3 is dead", "k: h2: it is the last receiver"} {
		if !strings.Contains(g.say.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, g.say)
		}
	}
}

// What has no meaning with --web is refused.
func TestWebFlags(t *testing.T) {
	for args, says := range map[string]string{
		"--web --keep": "not with --keep", "--web --rotate 2": "not with --rotate", "--web=8477": "want an address and a port", "--web=10.0.0.1:80": "want a loopback address",
	} {
		g := start(t, "", nil, append([]string{"demo"}, strings.Fields(args)...)...)
		if code := g.code(); code != 2 || !strings.Contains(g.say.String(), says) {
			t.Errorf("%s: exit code %d, %s", args, code, g.say)
		}
	}
}
