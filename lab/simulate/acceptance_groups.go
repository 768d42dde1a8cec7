// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import "math"

// groupsRows are those of many groups: each client writes twice to three replicas of its own. On average
// the link of a host carries as many writes as there are, times three, for each host.
func (all results) groupsRows() []acceptance {
	const groups, hosts, writes, replicas, bytes = 100_000, 1024, 2, 3, 8192
	link := ms(paperPath.Transfer(bytes) * groups * writes * replicas / hosts)
	memory := math.NaN()
	for _, r := range all {
		if r.Study == "groups" && r.Vars["groups"] == "100000" {
			memory = float64(r.RSS) / groups / 1024
		}
	}
	return []acceptance{
		{"200,000 writes of 8 KiB to 3 replicas by 100,000 groups", "-", all.jct("groups", "groups", "100000"), link, link, 2 * link, "ms", 0},
		{"memory of each of these groups, with its queue pairs", "-", memory, 0, 0, 100, "KiB", 0},
	}
}
