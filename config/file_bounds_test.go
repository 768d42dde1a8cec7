// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The cost of a file is bounded for any contents. The first took 28 s and 5.5 GB.
func TestHostileFilesAreCheap(t *testing.T) {
	const n = 60_000
	const most, memory = 3 * time.Second, 160 << 20 // bounds of CPU time and memory; 0.3 s and 80 MB at most, 0.4 s emulated
	stairs := func(line string) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString(strings.Repeat(" ", i) + line + "\n")
		}
		return b.String()
	}
	fill := func(s string) string { return strings.Repeat(s, n/len(s)) }
	const deep, many = "lists and mappings inside each other", "keys in all"
	for _, tt := range []struct{ name, file, want string }{
		{"lists", fill("["), "f:1: more than 16 " + deep},
		{"mappings", fill("{"), "f:1: more than 16 " + deep},
		{"both", fill("[{"), "f:1: more than 16 " + deep},
		{"keys in flow", fill("{a: "), "f:1: more than 16 " + deep},
		{"behind quotes", "a: don't\nb: \"'\"\nc: " + fill("["), "f:3: more than 16 " + deep},
		{"lists in a line", fill("- "), "f:1: more than 16 " + deep},
		{"keys in a line", fill("? "), "f:1: more than 16 " + deep},
		{"stairs of keys", stairs("a:"), "f:17: more than 16 " + deep},
		{"stairs of lists", stairs("-"), "f:17: more than 16 " + deep},
		{"lists before a far column", "a:\n" + strings.Repeat(" ", n/2) + "b: 1\n" + strings.Repeat("- ", n/4), "f:3: more than 16 " + deep},
		{"keys", fill("a: 1\n"), "f:4097: more than 4096 " + many},
		{"keys with comments", fill("a: 1 #x\n"), "f:4097: more than 4096 " + many},
		{"few enough keys", strings.Repeat("a: 1\n", 4096), "unknown key"},
		{"merge keys", fill("<<: "), ""},
		{"aliases", "a: &a [1, 2]\nb: &b [*a, *a]\nc: &c [*b, *b]\n" + fill("*c "), ""},
		{"list", fill("- 1\n"), "is a list"},
		{"flow list", "a: [" + fill("1,") + "]", "unknown key"},
		{"documents", fill("---\n"), ""},
		{"ends of documents", fill("...\n"), ""},
		{"directives", fill("%a\n"), ""},
		{"anchors", fill("&a "), ""},
		{"tags", fill("!a "), ""},
		{"blocks", fill("|\n"), ""},
		{"unended string", "a: \"" + fill("x"), ""},
		{"escapes", "a: \"" + fill("\\x41") + "\"", ""},
		{"a number", "limits: {groups: " + fill("9") + "}", ""},
		{"too long", strings.Repeat("#", fileMax+1), "file has 65537 bytes; at most 65536 are read"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := cpuTime(t)
		_, err := Parse("f", []byte(tt.file))
		took := cpuTime(t) - start
		runtime.ReadMemStats(&after)
		if took > most {
			t.Errorf("%s: took %v", tt.name, took)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > memory {
			t.Errorf("%s: took %d MB", tt.name, used>>20)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %.200v, want %s", tt.name, err, tt.want)
		}
	}
}

// cpuTime is what all threads of this process have used, which other programs hardly change.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Depth is counted along a path: siblings do not add to it.
func TestDepthIsPerPlace(t *testing.T) {
	var b strings.Builder
	b.WriteString("ports:\n")
	for i := range 200 {
		fmt.Fprintf(&b, "  - name: p%d\n    queues: [0, 1]\n    ecn:\n      kmin: 1000\n      kmax: 2000\n", i)
	}
	b.WriteString("group_prefixes:\n- 10.77.254.0/24\nenvelope: {insecure: true}\numem: {frames: 65536}\n")
	if _, err := Parse("f", []byte(b.String())); err != nil {
		t.Error(err)
	}
}

// No more than the bound is read of a file, however long it is or claims to be.
func TestFilesAreReadInBounds(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, "long")
	if err := os.WriteFile(long, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(long, 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(long); err == nil || !strings.Contains(err.Error(), "is longer than 65536 bytes") {
		t.Errorf("configuration: %v", err)
	}
	if _, err := Load("/dev/zero"); err == nil || !strings.Contains(err.Error(), "is longer than 65536 bytes") {
		t.Errorf("configuration without end: %v", err)
	}
	if _, err := ReadSecret(long); err == nil || !strings.Contains(err.Error(), "bytes; want at most 4096") {
		t.Errorf("secret: %v", err)
	}
	if _, err := ReadSecret("/dev/zero"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("secret without end: %v", err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSecret(pipe); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("secret from a pipe: %v", err)
	}
}
