// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package top

import "strings"

// trailLength is the most values that are remembered of a row.
const trailLength = 60

// trails are the last values of rows: of groups and ports their rate, of members their lag.
type trails map[string][]float64

// add notes a sample. Rows that it has not are forgotten.
func (t trails) add(s *Sample) {
	seen := make(map[string]bool)
	put := func(view, key string, value float64) {
		name := view + " " + key
		seen[name] = true
		all := append(t[name], value)
		t[name] = all[max(0, len(all)-trailLength):]
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		put(viewGroups, g.IP.String(), g.BitRate)
		for k := range g.Members {
			m := &g.Members[k]
			put(viewMembers+" "+g.IP.String(), m.IP.String(), float64(m.Lag))
		}
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		put(viewPorts, p.Name, p.RxRate+p.TxRate)
	}
	for name := range t {
		if !seen[name] {
			delete(t, name)
		}
	}
}

// levels are the heights of a sparkline, from nothing on.
var levels = []rune("▁▂▃▄▅▆▇█")

// sparkline draws values in a width, the newest at the right; the largest has the full height.
func sparkline(values []float64, width int) string {
	values = values[max(0, len(values)-width):]
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", width-len(values)))
	for _, v := range values {
		at := 0
		if most > 0 && v > 0 {
			at = max(1, int(v/most*float64(len(levels)-1)+0.5))
		}
		b.WriteRune(levels[at])
	}
	return b.String()
}
