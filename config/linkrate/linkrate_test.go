// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package linkrate

import (
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]Rate{
		"none": None, "100mbit": 1e8, "100Mbit": 1e8, "2.5gbit": 25e8, "10kbit": Min, "1000gbit": Max, "12345bit": 12345, ".5mbit": 5e5,
	} {
		if got, err := Parse(s); got != want || err != nil {
			t.Errorf("%q: %d, %v; want %d", s, got, err, want)
		}
	}
	const form = `want bits a second such as 100mbit or 2.5gbit, or none`
	const bounds = `want 10kbit to 1000gbit, or none`
	for s, want := range map[string]string{
		"": form, "100": form, "100mbps": form, "mbit": form, "-1mbit": form, "0x10mbit": form, "infmbit": form, "nanmbit": form,
		"1e3mbit": form, "1 mbit": form, "1.2.3mbit": form, "1_0mbit": form, "None": form,
		"0mbit": bounds, "0.1bit": bounds, "9999bit": bounds, "1001gbit": bounds, "99999999999999999999999999gbit": bounds,
	} {
		if got, err := Parse(s); err == nil || err.Error() != want {
			t.Errorf("%q: %d, %v; want: %s", s, got, err, want)
		}
	}
}

func TestStringIsParsed(t *testing.T) {
	for r, want := range map[Rate]string{None: "none", 1e8: "100mbit", 25e8: "2.5gbit", 12345: "12.345kbit", 1234567: "1234.567kbit", 12345678: "12345.678kbit"} {
		if got := r.String(); got != want {
			t.Errorf("%d: %s, want %s", int64(r), got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		r := Rate(rapid.Int64Range(int64(Min), int64(Max)).Draw(t, "rate"))
		if got, err := Parse(r.String()); got != r || err != nil {
			t.Fatalf("%d is written %s, read %d, %v", int64(r), r, int64(got), err)
		}
	})
}

func TestValidate(t *testing.T) {
	for r, ok := range map[Rate]bool{None: true, Min: true, Max: true, -1: false, Min - 1: false, Max + 1: false} {
		if err := r.Validate(); (err == nil) != ok {
			t.Errorf("%d: %v", int64(r), err)
		}
	}
}
