// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// release and commit are set by the linker: -ldflags "-X github.com/gleam-rdma/gleam/api.release=v1.2.3".
// Without, the Go tool's record is used.
var release, commit string

// Build describes the running program; started is when it began.
func Build(started time.Time) Version {
	v := Version{Version: release, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Started: started, Pid: os.Getpid()}
	bi, _ := debug.ReadBuildInfo()
	v.complete(bi)
	return v
}

// Text is the version with its commit, unless that is part of it.
func (v *Version) Text() string {
	if hash, _, _ := strings.Cut(v.Commit, "+"); v.Commit == "" || v.Commit == unknownBuild || len(hash) >= 7 && strings.Contains(v.Version, hash[:7]) {
		return v.Version
	}
	return v.Version + " (" + v.Commit + ")"
}

// unknownBuild stands for a version or commit that nothing tells.
const unknownBuild = "unknown"

// complete fills what the linker has not set by the Go tool's record, which may be nil: the
// module's version, or devel, and the commit it was built from.
func (v *Version) complete(bi *debug.BuildInfo) {
	if bi == nil {
		bi = &debug.BuildInfo{}
	}
	if v.Version == "" {
		v.Version = "devel"
		if m := bi.Main.Version; m != "" && m != "(devel)" {
			v.Version = m
		}
	}
	if v.Commit != "" {
		return
	}
	dirty := ""
	for _, s := range bi.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			v.Commit = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if v.Commit == "" {
		v.Commit, dirty = unknownBuild, ""
	}
	v.Commit += dirty
}
