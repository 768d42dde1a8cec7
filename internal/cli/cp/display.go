// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/gleam-rdma/gleam/internal/cli/terminal"
)

// redrawEvery is how often progress is shown where it cannot be drawn over.
const redrawEvery = 10 * time.Second

// display shows messages, and a line for each receiver: at a terminal in place, else
// once in redrawEvery.
type display struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	lines    []string // the lines on the screen, below the messages
	last     time.Time
	moved    map[string]movement // movements by host
}

// movement is a receiver's last progress.
type movement struct {
	bytes int64
	at    time.Time
}

// stillAfter is the time without progress from which on it is shown.
const stillAfter = 5 * time.Second

func newDisplay(w io.Writer) *display {
	d := &display{w: terminal.Raw(w), last: time.Now(), moved: make(map[string]movement)}
	f, _ := terminal.Drawable(w)
	d.terminal = f != nil
	return d
}

// say prints a message above the receivers' lines.
func (d *display) say(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.erase()
	fmt.Fprintln(d.w, terminal.Clean(text))
	d.draw()
}

func (d *display) erase() {
	if d.terminal && len(d.lines) > 0 {
		fmt.Fprintf(d.w, "\x1b[%dA\x1b[J", len(d.lines))
	}
}

func (d *display) draw() {
	if d.terminal {
		for _, l := range d.lines {
			fmt.Fprintln(d.w, l)
		}
	}
}

// show shows how far receivers are.
func (d *display) show(list []Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.erase()
	d.lines = d.lines[:0]
	for _, x := range list {
		d.lines = append(d.lines, terminal.Clean(x.line()+d.still(&x, time.Now())))
	}
	d.draw()
	if !d.terminal && time.Since(d.last) >= redrawEvery {
		d.last = time.Now()
		fmt.Fprintln(d.w, strings.Join(d.lines, "; "))
	}
}

// still says for how long a receiver that is not done has got nothing, if that is long.
func (d *display) still(x *Status, now time.Time) string {
	m, ok := d.moved[x.Host]
	if !ok || m.bytes != x.Bytes {
		m = movement{x.Bytes, now}
		d.moved[x.Host] = m
	}
	if n := now.Sub(m.at); n >= stillAfter && !x.Whole && x.Error == "" {
		return fmt.Sprintf(", no progress for %d s", int(n.Seconds()))
	}
	return ""
}

// end leaves the last lines to what is printed next.
func (d *display) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.erase()
	d.lines = nil
}

func (x *Status) line() string {
	percent := 100.0
	if x.Total > 0 {
		percent = 100 * float64(x.Bytes) / float64(x.Total)
	}
	return fmt.Sprintf("%s %5.1f%% %s", x.Host, percent, x.state())
}

func (x *Status) state() string {
	switch {
	case x.Whole:
		return "done"
	case x.Error != "":
		return x.Error
	case x.By != "":
		return "by " + x.By
	}
	return "waiting"
}

// table prints the outcome for people.
func (r *Result) table(w io.Writer) error {
	fmt.Fprintf(w, "%d files and directories, %d bytes, in %.2f s: %d bytes sent to the group, %d by TCP\n", r.Files, r.Bytes, r.Seconds, r.Group, r.TCP)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, x := range r.Hosts {
		fmt.Fprintf(t, "%s\t%s\n", x.Host, x.state())
	}
	return t.Flush()
}
