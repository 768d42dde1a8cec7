// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"os"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
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

// Ten groups of a job and that of all ranks have a GroupIP each, and are used at once.
func TestShards(t *testing.T) {
	j := newJob(t, 4, 0, "GLEAM_POLICY=evict")
	j.startAll("shards")
	equal := 0
	for groups := 0; groups < 4; {
		switch l := j.next(time.Minute); l.word {
		case "equal":
			if equal++; l.values[1] != true {
				t.Error(l)
			}
		case "groups":
			if groups++; l.values[1] != true {
				t.Error(l)
			}
		}
	}
	if want := 2 * (6*2 + 4*3); equal != want {
		t.Errorf("%d broadcasts at ranks, want %d", equal, want)
	}
	list, err := j.bed.Gleamd.Client.Groups(t.Context())
	if err != nil || len(list) != 11 {
		t.Errorf("%d groups, want 11: %v", len(list), err)
	}
	if err := os.WriteFile(j.stop(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j.ended(time.Minute)
	if list, err = j.bed.Gleamd.Client.Groups(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%d groups are left: %v", len(list), err)
	}
}

// The last receiver dies, or its link fails; the source goes on alone, and it comes back.
func TestNobodyLeft(t *testing.T) {
	for _, how := range []string{"killed", "cut off"} {
		t.Run(how, func(t *testing.T) {
			j := newJob(t, 2, killRate, "GLEAM_POLICY=evict")
			j.startAll("updates", killBytes, "0")
			w := &watch{job: j}
			w.update(3)
			ns := j.bed.Star.Hosts[1].NS
			if how == "cut off" {
				w.cut = 1
				if err := ns.SetDown(lab.HostInterface); err != nil {
					t.Fatal(err)
				}
				w.until(func(l line) bool { return l.word == "update" && l.rank == 0 && len(w.members) == 1 })
				if err := ns.SetUp(lab.HostInterface); err != nil {
					t.Fatal(err)
				}
			}
			j.kill(1, true)
			w.until(func(l line) bool { return l.word == "update" && l.rank == 0 && len(w.members) == 1 })
			w.update(3)
			w.cut = 0
			j.start(1, "updates", killBytes, "1")
			w.until(func(l line) bool { return l.word == "update" && l.rank == 1 })
		})
	}
}
