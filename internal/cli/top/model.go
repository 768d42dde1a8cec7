// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"slices"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// taken is a sample that has come, or the reason why none has.
type taken struct {
	sample *Sample
	err    error
}

// due means that it is time for a sample.
type due struct{}

// model is what the screen shows, and what keys change of it.
type model struct {
	ctx      context.Context
	source   source
	interval time.Duration

	sample *Sample
	trails trails
	err    error // the error of the last attempt
	paused bool
	help   bool

	view   string // viewGroups, viewMembers, viewMember or viewPorts
	group  string // the group of viewMembers and viewMember
	member string
	cursor string // key of the row
	top    int    // first row on the screen

	sorts   map[string]int // column by view; -1: as the switch has it
	turned  bool
	filter  string
	editing bool // keys go into filter

	width, height int
}

func newModel(ctx context.Context, c source, interval time.Duration, group string) *model {
	m := &model{ctx: ctx, source: c, interval: interval, trails: make(trails), view: viewGroups, width: 80, height: 24, sorts: map[string]int{viewGroups: -1, viewMembers: -1, viewPorts: -1}}
	if group != "" {
		m.view, m.group = viewMembers, group
	}
	return m
}

// Init takes the first sample.
func (m *model) Init() tea.Cmd { return m.ask() }

// ask takes a sample beside the screen.
func (m *model) ask() tea.Cmd {
	before := m.sample
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, 10*time.Second)
		defer cancel()
		s, err := take(ctx, m.source, before)
		return taken{s, err}
	}
}

// Update is the answer to a key, a sample or a change of size.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, 20), max(msg.Height, 6)
	case taken:
		if m.err = msg.err; msg.err == nil {
			m.sample = msg.sample
			m.trails.add(m.sample)
		}
		m.follow()
		return m, tea.Tick(m.interval, func(time.Time) tea.Msg { return due{} })
	case due:
		if m.paused {
			return m, tea.Tick(m.interval, func(time.Time) tea.Msg { return due{} })
		}
		return m, m.ask()
	case tea.KeyPressMsg:
		return m, m.key(msg)
	}
	m.follow()
	return m, nil
}

// key is the effect of a key.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	if m.editing {
		m.edit(k)
		m.follow()
		return nil
	}
	if m.help {
		m.help = false
		return nil
	}
	switch name {
	case "q":
		return tea.Quit
	case "?", "h":
		m.help = true
	case "space", " ":
		m.paused = !m.paused
	case "tab":
		if m.view == viewPorts {
			m.open(viewGroups)
		} else {
			m.open(viewPorts)
		}
	case "g":
		m.open(viewGroups)
	case "p":
		m.open(viewPorts)
	case "enter", "right", "l":
		m.enter()
	case "esc", "left", "backspace":
		m.leave()
	case "s":
		if columns := m.table().columns; len(columns) > 0 {
			m.sorts[m.view] = (m.sorts[m.view]+2)%(len(columns)+1) - 1
			m.turned = false
		}
	case "r":
		m.turned = !m.turned
	case "/":
		m.editing, m.filter = true, ""
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-m.page())
	case "pgdown":
		m.move(m.page())
	case "home":
		m.move(-1 << 20)
	case "end":
		m.move(1 << 20)
	}
	m.follow()
	return nil
}

// edit changes the filter.
func (m *model) edit(k tea.KeyPressMsg) {
	switch k.String() {
	case "enter":
		m.editing = false
	case "esc":
		m.editing, m.filter = false, ""
	case "backspace":
		if r := []rune(m.filter); len(r) > 0 {
			m.filter = string(r[:len(r)-1])
		}
	default:
		for _, r := range k.Text {
			if unicode.IsPrint(r) && len(m.filter) < 64 {
				m.filter += string(r)
			}
		}
	}
}

// open shows a view from its beginning.
func (m *model) open(view string) {
	m.view, m.cursor, m.top, m.filter, m.turned = view, "", 0, "", false
}

// enter shows what is in the row of the cursor.
func (m *model) enter() {
	if m.cursor == "" {
		return
	}
	switch m.view {
	case viewGroups:
		m.group = m.cursor
		m.open(viewMembers)
	case viewMembers:
		m.member = m.cursor
		m.open(viewMember)
	}
}

// leave goes back, or drops the filter.
func (m *model) leave() {
	switch {
	case m.filter != "":
		m.filter = ""
	case m.view == viewMember:
		m.open(viewMembers)
		m.cursor = m.member
	case m.view == viewMembers:
		m.open(viewGroups)
		m.cursor = m.group
	}
}

// table is that of the view, filtered and sorted.
func (m *model) table() *table {
	if m.sample == nil {
		return &table{}
	}
	var t *table
	switch m.view {
	case viewGroups:
		t = groupTable(m.sample)
	case viewMembers:
		t = memberTable(m.sample, m.group)
	case viewPorts:
		t = portTable(m.sample)
	default:
		return &table{}
	}
	t.filter(m.filter)
	t.sort(m.sorts[m.view], m.turned)
	return t
}

// move moves the cursor by rows.
func (m *model) move(by int) {
	t := m.table()
	if len(t.rows) == 0 {
		return
	}
	at := t.at(m.cursor) + by
	m.cursor = t.rows[min(max(at, 0), len(t.rows)-1)].key
}

// at is the number of the row of a key; 0 if there is none.
func (t *table) at(key string) int {
	return max(0, slices.IndexFunc(t.rows, func(r row) bool { return r.key == key }))
}

// follow keeps the cursor on a row, and the row on the screen.
func (m *model) follow() {
	t := m.table()
	if len(t.rows) == 0 {
		m.top = 0
		return
	}
	at := t.at(m.cursor)
	m.cursor = t.rows[at].key
	page := m.page()
	m.top = max(min(m.top, at, len(t.rows)-page), at-page+1, 0)
}

// page is the number of rows that the screen has room for.
func (m *model) page() int { return max(1, m.height-len(m.head())-2) }
