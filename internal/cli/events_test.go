// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// TestSince reads times to go back, and times.
func TestSince(t *testing.T) {
	zone := time.FixedZone("", 2*3600)
	now := time.Date(2026, 5, 6, 7, 8, 9, 10, zone)
	for text, want := range map[string]time.Time{
		"10m":                       now.Add(-10 * time.Minute),
		"0s":                        now,
		"2026-05-06T07:08:09Z":      time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC),
		"2026-05-06T07:08:09.5Z":    time.Date(2026, 5, 6, 7, 8, 9, 5e8, time.UTC),
		"2026-05-06T07:08:09+02:00": time.Date(2026, 5, 6, 7, 8, 9, 0, zone),
		"2026-05-06T07:08:09":       time.Date(2026, 5, 6, 7, 8, 9, 0, zone),
		"2026-05-05 07:08":          time.Date(2026, 5, 5, 7, 8, 0, 0, zone),
		"2026-05-05":                time.Date(2026, 5, 5, 0, 0, 0, 0, zone),
		"06:07":                     time.Date(2026, 5, 6, 6, 7, 0, 0, zone),
		"06:07:08":                  time.Date(2026, 5, 6, 6, 7, 8, 0, zone),
	} {
		if got, err := parseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	var usage usageError
	if err := parseFilter(&api.EventFilter{Kinds: []string{api.EventPort, "stale"}}, "", "", now); !errors.As(err, &usage) || !strings.Contains(err.Error(), `kind "stale"`) {
		t.Errorf("an unknown kind: %v", err)
	}
	for _, text := range []string{"-10m", "yesterday", "10", "25:00", "2026-13-01"} {
		if got, err := parseSince(text, now); err == nil {
			t.Errorf("%s is taken for %v", text, got)
		}
	}
}
