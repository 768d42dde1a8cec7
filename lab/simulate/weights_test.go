// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestWeightsStudy simulates the smallest points with small shards: who gets everything, and groups by their formula.
func TestWeightsStudy(t *testing.T) {
	text, errs, code := command(t.Context(), t, "weights", "--trainers", "8", "--shard", "1MB", "--no-progress", "-o", "json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var s weightsStudy
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Points) != 3*4+3*5+5 || len(s.Full) != 9 {
		t.Fatalf("%d points, %d full ones", len(s.Points), len(s.Full))
	}
	for _, x := range s.Points {
		want := x.Receivers
		if x.Case == "dead" {
			want--
		}
		breaks := x.Case == "dead" && (x.Way == "ring" || x.Way == "tree") // those behind the dead one have not all
		if x.Whole > want || (x.Whole == want) == breaks {
			t.Errorf("%+v: want %d receivers with all, fewer: %v", x, want, breaks)
		}
		if over := x.Time / x.Formula; x.Case == "clean" && (over < 0.95 || x.grouped() && over > 1.05) {
			t.Errorf("%+v: %.2f of its formula", x, over)
		}
	}
	var out strings.Builder
	if err := s.writeText(&out); err != nil || strings.Count(out.String(), "| shard-groups |") != 5 {
		t.Errorf("%s: %v", out.String(), err)
	}
}
