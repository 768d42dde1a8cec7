// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"testing"
	"time"
)

// Each kind of broadcast has the bytes of its source at all ranks, with both policies.
func TestKinds(t *testing.T) {
	for _, policy := range []string{"evict", "strict"} {
		t.Run(policy, func(t *testing.T) {
			j := newJob(t, 4, 0, "GLEAM_POLICY="+policy, "GLEAM_TENSORS=16")
			j.startAll("kinds")
			count := 0
			for _, l := range j.ended(2 * time.Minute) {
				switch l.word {
				case "equal":
					count++
					if l.values[1] != true {
						t.Error(l)
					}
				default:
					t.Log(l)
				}
			}
			want := 12
			if policy == "strict" {
				want += 2
			}
			if count != 4*want {
				t.Errorf("%d kinds, want %d", count, 4*want)
			}
		})
	}
}
