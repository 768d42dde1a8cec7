// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// allowed are the functions of libc that the machines use: of memory and text alone.
var allowed = []string{
	"__errno_location", "__stack_chk_fail", "calloc", "explicit_bzero", "free", "inet_ntop", "inet_pton", "malloc", "memcmp", "memcpy", "memmove", "memset",
	"realloc", "snprintf", "strcmp", "strcpy", "strlen", "strnlen", "vsnprintf", "__snprintf_chk", "__vsnprintf_chk", "_GLOBAL_OFFSET_TABLE_", "__tls_get_addr",
}

// TestMachinesArePure: no sockets, clocks, threads or randomness in the machines.
func TestMachinesArePure(t *testing.T) {
	labtest.Needs(t, "gcc")
	for name := range pure {
		object := t.TempDir() + "/o"
		if out, err := exec.Command("gcc", "-std=gnu11", "-O2", "-fPIC", "-c", "-o", object, "../src/"+name).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		out, err := exec.Command("nm", "-u", object).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			symbol := strings.TrimPrefix(strings.TrimSpace(line), "U ")
			if !strings.HasPrefix(symbol, "gl_") && !slices.Contains(allowed, symbol) {
				t.Errorf("%s uses %s", name, symbol)
			}
		}
	}
}
