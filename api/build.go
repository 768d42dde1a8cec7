// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// release is set by the linker in released builds:
// -ldflags "-X github.com/gleam-rdma/gleam/api.release=v1.2.3".
var release string

// Build describes the running program; started is when it began.
func Build(started time.Time) Version {
	return Version{Version: buildVersion(), Go: runtime.Version(), Started: started, Pid: os.Getpid()}
}

// buildVersion returns the release, or else the Go tool's record: the module's version,
// or the commit it was built from.
func buildVersion() string {
	if release != "" {
		return release
	}
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := bi.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	rev, dirty := "", ""
	for _, s := range bi.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			rev = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if rev == "" {
		return "devel"
	}
	return "devel-" + rev + dirty
}
