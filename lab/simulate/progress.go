// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/internal/cli/terminal"
	"github.com/gleam-rdma/gleam/lab/sim"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// progress writes a line about a run each second, on a terminal over the one before.
type progress struct {
	w        io.Writer
	terminal bool
	every    time.Duration
	began    time.Time
	next     time.Time
	width    int // the width of the last line
}

func newProgress(w io.Writer, silent bool) *progress {
	p := &progress{w: w, every: 10 * time.Second, began: time.Now()}
	if f, _ := terminal.Drawable(w); f != nil {
		p.w, p.terminal, p.every = f, true, 500*time.Millisecond
	}
	if silent {
		p.w = io.Discard
	}
	p.next = p.began.Add(p.every)
	return p
}

// due reports whether it is time for the next line.
func (p *progress) due() bool { return time.Now().After(p.next) }

func (p *progress) line(name string, now topology.Time, r *sim.Result, flows int64, underWay float64) {
	p.next = time.Now().Add(p.every)
	wall := time.Since(p.began).Seconds()
	eta := "?"
	if done := float64(r.Completed) + underWay; done > 0 && done < float64(flows) {
		eta = time.Duration(wall * (float64(flows) - done) / done * float64(time.Second)).Round(time.Second).String()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	text := fmt.Sprintf("%s: %.3f ms simulated, %d of %d flows, %.2f M events/s, ETA %s, %d MB", name, now.Seconds()*1e3, r.Completed, flows, float64(r.Events)/wall/1e6, eta, m.Sys>>20)
	if p.terminal {
		text = terminal.Clean(text)
		fmt.Fprintf(p.w, "\r%s%s", text, strings.Repeat(" ", max(0, p.width-len(text))))
		p.width = len(text)
		return
	}
	fmt.Fprintln(p.w, text)
}

// end removes the line from a terminal.
func (p *progress) end() {
	if p.terminal && p.width > 0 {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.width))
	}
	p.width = 0
}
