// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
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
