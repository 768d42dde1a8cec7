// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"math"
	"regexp"
	"strconv"
	"testing"
)

// luminance is that of a colour as WCAG 2 defines it.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(colour, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	part := func(shift int, weight float64) float64 {
		c := float64(n>>shift&0xff) / 255
		if c <= 0.03928 {
			return weight * c / 12.92
		}
		return weight * math.Pow((c+0.055)/1.055, 2.4)
	}
	return part(16, 0.2126) + part(8, 0.7152) + part(0, 0.0722)
}

// Text of every colour has a contrast of 4.5 and more to what it stands on, light and dark (WCAG 2, AA).
func TestContrast(t *testing.T) {
	css, err := page.ReadFile("page/page.css")
	if err != nil {
		t.Fatal(err)
	}
	schemes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllSubmatch(css, -1)
	if len(schemes) != 2 {
		t.Fatalf("%d schemes, want light and dark", len(schemes))
	}
	for i, s := range schemes {
		colours := make(map[string]string)
		for _, c := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6})`).FindAllSubmatch(s[1], -1) {
			colours[string(c[1])] = string(c[2])
		}
		check := func(text string, backs ...string) {
			t.Helper()
			for _, back := range backs {
				a, b := luminance(t, colours[text]), luminance(t, colours[back])
				if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < 4.5 {
					t.Errorf("scheme %d: %s on %s has a contrast of %.1f", i, text, back, ratio)
				}
			}
		}
		for _, text := range []string{"text", "soft", "accent", "well", "loss", "lag", "slow", "bad", "idle", "good"} {
			check(text, "card", "back")
		}
		check("text", "bad-back", "slow-back")
		check("bad", "bad-back")
		for _, text := range []string{"loss", "lag", "slow"} {
			check(text, "slow-back")
		}
	}
}
