// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"runtime/debug"
	"testing"
)

// What a program says of itself, by what the linker and the Go tool have recorded.
func TestBuild(t *testing.T) {
	record := func(module string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: module}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	changed := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, tt := range []struct {
		name                  string
		linked                Version
		record                *debug.BuildInfo
		version, commit, text string
	}{
		{"released", Version{Version: "v1.2.3", Commit: "ba9876543210"}, record("v9", revision), "v1.2.3", "ba9876543210", "v1.2.3 (ba9876543210)"},
		{"released without a commit", Version{Version: "v1.2.3"}, nil, "v1.2.3", "unknown", "v1.2.3"},
		{"described by its commit", Version{Version: "0~20260101.1200.gba98765-dirty", Commit: "ba9876543210+dirty"}, nil, "0~20260101.1200.gba98765-dirty", "ba9876543210+dirty", "0~20260101.1200.gba98765-dirty"},
		{"go install", Version{}, record("v1.3.0"), "v1.3.0", "unknown", "v1.3.0"},
		{"go build", Version{}, record("(devel)", revision), "devel", "0123456789ab", "devel (0123456789ab)"},
		{"go build, changed", Version{}, record("", changed, revision), "devel", "0123456789ab+dirty", "devel (0123456789ab+dirty)"},
		{"go build outside of a repository", Version{}, record("", changed), "devel", "unknown", "devel"},
		{"nothing known", Version{}, nil, "devel", "unknown", "devel"},
	} {
		v := tt.linked
		v.complete(tt.record)
		if v.Version != tt.version || v.Commit != tt.commit || v.Text() != tt.text {
			t.Errorf("%s: %q, %q, %q; want %q, %q, %q", tt.name, v.Version, v.Commit, v.Text(), tt.version, tt.commit, tt.text)
		}
	}
}
