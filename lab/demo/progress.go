// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/gleam-rdma/gleam/internal/cli/terminal"
)

// progress shows the demo's progress to people: a bar on a terminal, lines elsewhere.
type progress struct {
	w        io.Writer
	terminal bool
}

func isTerminal(w io.Writer) bool {
	f, _ := terminal.Drawable(w)
	return f != nil
}

func (p *progress) printf(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

// meter shows the progress of one transfer. add may be called from any
// goroutine.
type meter struct {
	p     *progress
	name  string
	total int64
	start time.Time
	bar   *progressbar.ProgressBar // nil if not on a terminal

	mu   sync.Mutex
	done int64
	next int64 // tenths in the next line
}

func (p *progress) begin(name string, total int64) *meter {
	m := &meter{p: p, name: name, total: total, start: time.Now(), next: 2}
	if p.terminal {
		m.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(terminal.Raw(p.w)), progressbar.OptionSetDescription(terminal.Clean(name)),
			progressbar.OptionShowBytes(true), progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond))
	}
	return m
}

func (m *meter) add(bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += int64(bytes)
	if m.bar != nil {
		_ = m.bar.Add(bytes) // a bar that cannot be drawn is no reason to fail
		return
	}
	if tenths := m.done * 10 / m.total; tenths >= m.next {
		m.p.printf("%s: %d%% of %s, %.1f s", m.name, tenths*10, sizeString(m.total), time.Since(m.start).Seconds())
		m.next = tenths/2*2 + 2
	}
}

func (m *meter) end() {
	if m.bar != nil {
		_ = m.bar.Exit()
		fmt.Fprintln(m.p.w)
	}
}
