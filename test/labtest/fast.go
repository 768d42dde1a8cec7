// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
)

// FastPathEnv is the environment variable that turns the fast path on in the switches of the
// tests, at hosts that take redirected frames: auto, or require.
const FastPathEnv = "GLEAM_FAST_PATH"

// FastPath returns whether the tests' switches have the fast path.
func FastPath() bool { return os.Getenv(FastPathEnv) != "" }

// WithFastPath returns a configuration with the fast path as the tests are to have it, unless it
// says that itself. A switch whose groups it may not require has auto.
func WithFastPath(text string, mayRequire bool) string {
	switch mode := os.Getenv(FastPathEnv); {
	case mode == "" || strings.Contains(text, "fast_path:"):
		return text
	case mode == "require" && !mayRequire:
		return text + "\nfast_path: auto\n"
	default:
		return text + "\nfast_path: " + mode + "\n"
	}
}

// byXDP counts the packets that XDP has replicated in the switches of the tests.
var byXDP atomic.Uint64

// CountFast notes that XDP has replicated that many packets in a switch that ends.
func CountFast(packets uint64) { byXDP.Add(packets) }

// checkFast returns the exit code of a package's tests: those that have the fast path fail if
// nothing took it, unless only some of them were run.
func checkFast(code int) int {
	if !FastPath() {
		return code
	}
	n := byXDP.Load()
	fmt.Printf("%s is %s: XDP has replicated %d packets\n", FastPathEnv, os.Getenv(FastPathEnv), n)
	if some := flag.Lookup("test.run").Value.String() != ""; code == 0 && n == 0 && !some {
		return 1
	}
	return code
}
