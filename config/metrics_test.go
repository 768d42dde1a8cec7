// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

// Metrics are off by default, and have the limits of the live page and their own.
func TestMetrics(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "",
		`listen: "127.0.0.1:9477"`:               "",
		`socket: true`:                           "",
		`groups: 0`:                              "",
		`groups: 1000`:                           "",
		`groups: 1001`:                           "metrics.groups",
		`groups: -1`:                             "metrics.groups",
		`socket: 7`:                              "metrics.socket",
		`listen: "10.0.0.1:9477"`:                `f:4: metrics.listen: "10.0.0.1:9477": is not a loopback address`,
		`socket: true, names: [a]`:               "has no effect without listen",
		`listen: "127.0.0.1:9477", ca: /nowhere`: "metrics.ca",
	} {
		c, err := Parse("f", []byte(minimal+"metrics: {"+text+"}\n"))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("metrics: {%s}: %v, want %q", text, err, want)
		}
		if on := strings.Contains(text, "listen") || strings.Contains(text, "socket"); err == nil && c.Metrics.On() != on {
			t.Errorf("metrics: {%s}: on %v", text, !on)
		}
	}
}
