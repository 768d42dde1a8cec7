// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/api"
)

var rewrite = flag.Bool("rewrite", false, "write testdata and the screens of docs/TOP.md anew")

var styles = regexp.MustCompile("\x1b\\[[0-9;]*m")

// shown is the screen without styles.
func shown(m *model) string { return styles.ReplaceAllString(strings.Join(m.screen(), "\n"), "") }

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

// scene is a switch with three groups: one flows, one waits for a member, one has failed. n is
// the number of the sample, a second after the one before.
func scene(n uint64) *Sample {
	at := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC).Add(time.Duration(n) * time.Second)
	group := func(last int, acked, next api.PSN) api.Group {
		return api.Group{
			IP: ip(fmt.Sprintf("10.77.254.%d", last)), QPN: 0x10, Epoch: 1, PMTU: 1024, Policy: "evict", State: "running", Source: ip("10.77.0.1"), AckPSN: acked, NextPSN: next, Repair: &api.Repair{},
			Members: []api.Member{
				{IP: ip("10.77.0.1"), QPN: 0x11, Role: "source", Live: true, Port: "p1", MAC: "02:67:6c:01:00:01"},
				{IP: ip("10.77.0.2"), QPN: 0x12, Role: "receiver", Live: true, Port: "p2", MAC: "02:67:6c:01:00:02", AckPSN: next - 1},
				{IP: ip("10.77.0.3"), QPN: 0x13, Role: "receiver", Live: true, Port: "p3", MAC: "02:67:6c:01:00:03", AckPSN: acked, Lag: int(next-acked) - 1},
			},
		}
	}
	flows, stands, failed := group(1, api.PSN(12000*n), api.PSN(12000*n+33)), group(2, 0x80, 0x100), group(3, 0, 1)
	flows.Counters = api.Counters{DataIn: 12000 * n, GoodBytes: 12000 * 1024 * n, Copies: 24000 * n}
	flows.Repair.Copies, flows.WaitsFor, flows.FastPath = 12*n, ip("10.77.0.3"), &api.FastPath{Way: api.WayFast}
	stands.WaitsFor, stands.StallSeconds, stands.Members[2].Diagnosis = ip("10.77.0.3"), float64(4+n), "it has not answered probes since its link went down"
	stands.Members[2].Cost = &api.Cost{NAKs: 3, Repaired: 211, Probes: 9, RTTp50: 21e-5, RTTp99: 9e-4, Waited: 6.2}
	failed.State, failed.Failure = "failed", "10.77.0.2 has answered with NAK 0x62"
	s := &Sample{Time: at, Version: api.Version{Version: "v1.2.3", Started: at.Add(-time.Hour - time.Duration(n)*time.Second), Pid: 7}, Stats: &api.Stats{Uptime: 3600 + float64(n), FramesFree: 16000, Frames: 16384}}
	var before *Sample
	if n > 0 {
		before = scene(n - 1)
	}
	ports := []api.Port{
		{Name: "p1", State: api.PortOpen, Up: true, XDPMode: "native", Driver: "veth", MTU: 1500, RxFrames: 12000 * n, TxFrames: 3000 * n},
		{Name: "p2", State: api.PortOpen, Up: true, XDPMode: "native", Driver: "veth", MTU: 1500, RxFrames: 1500 * n, TxFrames: 12000 * n},
		{Name: "p3", State: api.PortOpen, Up: false, XDPMode: "generic", Driver: "e1000", MTU: 9000, Egress: api.Egress{Dropped: 40 * n, Bytes: 65536}},
	}
	s.Fill([]api.Group{flows, stands, failed}, ports, before)
	return s
}

// screenOf is a model that has had two samples.
func screenOf(width, height int) *model {
	m := newModel(context.Background(), nil, time.Second, "")
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	m.Update(taken{sample: scene(1)})
	m.Update(taken{sample: scene(2)})
	return m
}

// press gives the model keys by name; others are texts.
func press(m *model, keys ...string) (last tea.Cmd) {
	codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "tab": tea.KeyTab, "backspace": tea.KeyBackspace, "space": tea.KeySpace, "end": tea.KeyEnd, "home": tea.KeyHome, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp}
	for _, k := range keys {
		msg := tea.KeyPressMsg{}
		if c, ok := codes[k]; ok {
			msg.Code = c
		} else if k == "ctrl+c" {
			msg.Code, msg.Mod = 'c', tea.ModCtrl
		} else {
			msg.Code, msg.Text = []rune(k)[0], k
		}
		_, last = m.Update(msg)
	}
	return last
}

// TestScreens compares the screens of 80 columns with testdata, which docs/TOP.md shows.
func TestScreens(t *testing.T) {
	page, err := os.ReadFile("../../../docs/TOP.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, c := range []struct {
		name string
		keys []string
	}{
		{"wide", nil}, {"groups", nil}, {"members", []string{"down", "enter"}}, {"member", []string{"down", "enter", "down", "down", "enter"}}, {"ports", []string{"tab"}}, {"help", []string{"?"}}, {"filter", []string{"/", "f", "a", "i", "l"}},
	} {
		m := screenOf(80, 18)
		if c.name == "wide" {
			m = screenOf(160, 12)
			for n := range uint64(20) {
				s := scene(3 + n)
				s.Groups[0].BitRate *= float64(n%7) / 6
				s.Ports[0].RxRate /= float64(1 + n%5)
				m.Update(taken{sample: s})
			}
		}
		press(m, c.keys...)
		got := strings.TrimRight(regexp.MustCompile(`(?m)[ ]+$`).ReplaceAllString(shown(m), ""), "\n") + "\n"
		file := filepath.Join("testdata", c.name+".txt")
		if *rewrite {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != got {
			t.Errorf("%s: %v; go test ./internal/cli/top -run Screens -rewrite writes it anew. Now it is:\n%s", file, err, got)
		}
		block := regexp.MustCompile("(?s)(<!-- screen: " + c.name + " -->\n```\n).*?(```\n)")
		text = block.ReplaceAllString(text, "${1}"+got+"${2}")
	}
	if text != string(page) {
		if !*rewrite {
			t.Error("docs/TOP.md has other screens")
		} else if err := os.WriteFile("../../../docs/TOP.md", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// What keys do.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
		want string // a part of the screen
		not  string
	}{
		{"a group", []string{"enter"}, "group 10.77.254.1  running", "-- groups"},
		{"another", []string{"down", "enter"}, "STALLS 6 s", ""},
		{"no further than the last", []string{"end", "down", "enter"}, "group 10.77.254.3  failed", ""},
		{"a member", []string{"down", "enter", "end", "enter"}, "holds         the group's ACK, for 6 s without progress", "MEMBER"},
		{"and back", []string{"down", "enter", "end", "enter", "esc", "esc"}, "-- groups", ""},
		{"costs of a member", []string{"down", "enter", "end", "enter"}, "3 NAKs, 0 RNR NAKs, 211 packets sent again, 9 probes", ""},
		{"ports", []string{"tab"}, "DROP/s", "WAITS FOR"},
		{"ports by name", []string{"p"}, "DROP/s", ""},
		{"and groups", []string{"tab", "tab"}, "WAITS FOR", ""},
		{"sorting", []string{"s", "s"}, "-- groups, by STATE", ""},
		{"sorting turned", []string{"s", "r"}, "by GROUP turned", ""},
		{"filter", []string{"/", "s", "t", "a", "l", "enter"}, "10.77.254.2", "10.77.254.1 "},
		{"filter without a row", []string{"/", "x", "y"}, "none", "10.77.254"},
		{"filter dropped", []string{"/", "x", "esc"}, "10.77.254.3", ""},
		{"filter corrected", []string{"/", "x", "backspace", "enter"}, "10.77.254.3", ""},
		{"q is text in a filter", []string{"/", "q"}, "/q_", ""},
		{"stopped", []string{"space"}, "stopped", ""},
		{"help", []string{"?"}, "wants to be looked at", "10.77.254.1"},
		{"help goes", []string{"?", "x"}, "10.77.254.1", ""},
	} {
		m := screenOf(80, 24)
		press(m, c.keys...)
		if got := shown(m); !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s: want %q, not %q:\n%s", c.name, c.want, c.not, got)
		}
	}
	for _, k := range []string{"q", "ctrl+c"} {
		cmd := press(screenOf(80, 24), k)
		if cmd == nil || cmd() != (tea.QuitMsg{}) {
			t.Errorf("%s does not end it", k)
		}
	}
}

// Rows are in the order of a column: numbers from the highest down.
func TestSort(t *testing.T) {
	for _, c := range []struct {
		column string
		turned bool
		want   string
	}{{"LAG", false, "2 1 3"}, {"LAG", true, "3 1 2"}, {"GROUP", false, "1 2 3"}, {"GROUP", true, "3 2 1"}, {"IN/s", false, "1 2 3"}} {
		m := screenOf(80, 24)
		for i, col := range groupColumns {
			if col.title == c.column {
				m.sorts[viewGroups] = i
			}
		}
		m.turned = c.turned
		var order []string
		for _, r := range m.table().rows {
			order = append(order, r.key[len("10.77.254."):])
		}
		if got := strings.Join(order, " "); got != c.want {
			t.Errorf("by %s, turned %v: %s, want %s", c.column, c.turned, got, c.want)
		}
	}
}

// The rates are those between samples, and none over a restart of gleamd.
func TestRates(t *testing.T) {
	s := scene(2)
	if g := s.Groups[0]; g.Rates == nil || g.Rates.DataIn != 12000 || g.Rates.Repairs != 12 || g.BitRate != 12000*1024*8 || s.Ports[1].TxRate != 12000 || s.Ports[2].DropRate != 40 {
		t.Errorf("%+v, %+v", g.Rates, s.Ports)
	}
	again := scene(2)
	again.Version.Pid++
	groups, ports := []api.Group{s.Groups[0].Group}, []api.Port{s.Ports[0].Port}
	if again.Fill(groups, ports, scene(1)); again.Groups[0].Rates != nil || again.Ports[0].RxRate != 0 {
		t.Errorf("another gleamd: %+v", again.Groups[0].Rates)
	}
}

// A port that is unheard wants to be looked at, and one that its bridge blocks does not.
func TestPortStates(t *testing.T) {
	s := scene(2)
	s.Ports[0].Unheard, s.Ports[1].Up, s.Ports[1].Blocked = "none has arrived", false, true
	want := map[string]string{"p1": "unheard true", "p2": "blocked false", "p3": "down true"}
	for _, r := range portTable(s).rows {
		if got := fmt.Sprintf("%s %v", r.cells[1].text, r.bad); got != want[r.key] {
			t.Errorf("%s: %s, want %s", r.key, got, want[r.key])
		}
	}
}

// An answer that does not come is said, and what was known stays.
func TestNoAnswer(t *testing.T) {
	m := newModel(context.Background(), nil, time.Second, "")
	m.Update(taken{err: errors.New("socket s does not exist")})
	if got := shown(m); !strings.Contains(got, "socket s does not exist") {
		t.Error(got)
	}
	m = screenOf(80, 24)
	m.Update(taken{err: errors.New("gleamd has gone")})
	if got := shown(m); !strings.Contains(got, "no answer: gleamd has gone") || !strings.Contains(got, "10.77.254.1") {
		t.Error(got)
	}
	press(m, "enter")
	gone := scene(3)
	gone.Groups = nil
	m.Update(taken{sample: gone})
	if got := shown(m); !strings.Contains(got, "group 10.77.254.1 is no more") {
		t.Error(got)
	}
}

// A sparkline has the newest values at its right, and nothing is lower than what is not.
func TestSparkline(t *testing.T) {
	for _, c := range []struct {
		values []float64
		width  int
		want   string
	}{{nil, 3, "   "}, {[]float64{0, 0}, 3, " ▁▁"}, {[]float64{0, 1, 1000}, 3, "▁▂█"}, {[]float64{9, 1, 2, 4, 8}, 4, "▂▃▅█"}, {[]float64{5}, 0, ""}} {
		if got := sparkline(c.values, c.width); got != c.want {
			t.Errorf("%v in %d: %q, want %q", c.values, c.width, got, c.want)
		}
	}
	tr := make(trails)
	for n := range uint64(100) {
		tr.add(scene(n))
	}
	if got := tr[viewGroups+" 10.77.254.1"]; len(got) != trailLength || got[0] != 12000*1024*8 {
		t.Errorf("%d values are remembered: %v", len(got), got)
	}
	s := scene(100)
	s.Groups = nil
	if tr.add(s); len(tr) != len(s.Ports) {
		t.Errorf("of rows that have gone values are remembered: %d trails", len(tr))
	}
}

func TestScaled(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 1: "1", 0.5: "0.5", 42: "42", 999: "999", 999.6: "1.0k", 1500: "1.5k", 12000: "12k", 98304000: "98M", 2.5e9: "2.5G", 1e13: "10T"} {
		if got := scaled(n); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}

// Whatever keys, samples and sizes come, the screen fits, and the cursor is on a row that is on
// it.
func TestAnyKeys(t *testing.T) {
	keys := []string{"up", "down", "enter", "esc", "tab", "s", "r", "/", "1", "q!", "end", "home", "pgup", "pgdown", "space", "?", "backspace", "g", "p", "ü"}
	rapid.Check(t, func(t *rapid.T) {
		m := screenOf(80, 24)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0:
				m.Update(tea.WindowSizeMsg{Width: rapid.IntRange(1, 200).Draw(t, "width"), Height: rapid.IntRange(1, 60).Draw(t, "height")})
			case 1:
				s := scene(3)
				s.Groups = s.Groups[:rapid.IntRange(0, 3).Draw(t, "groups")]
				m.Update(taken{sample: s})
			default:
				press(m, rapid.SampledFrom(keys).Draw(t, "key"))
			}
			lines := strings.Split(shown(m), "\n")
			if len(lines) != m.height {
				t.Fatalf("%d lines on a screen of %d", len(lines), m.height)
			}
			for _, l := range lines {
				if utf8.RuneCountInString(l) > m.width {
					t.Fatalf("%d columns on a screen of %d: %q", utf8.RuneCountInString(l), m.width, l)
				}
			}
			if rows := m.table().rows; len(rows) > 0 && rows[m.table().at(m.cursor)].key != m.cursor {
				t.Fatalf("the cursor is on %q, which is no row", m.cursor)
			}
		}
	})
}

// Text of hosts and switches controls no terminal.
func TestTextOfOthers(t *testing.T) {
	const controls = "\x1b]0;evil\a\x1b[2J\u009b2J\u202e\n"
	m := screenOf(200, 40)
	s := scene(3)
	s.Version.Version += controls
	for i := range s.Groups {
		g := &s.Groups[i]
		g.Failure, g.MTUText, g.IsolationText, g.Policy = "f"+controls, "m"+controls, "i"+controls, g.Policy+controls
		for j := range g.Members {
			x := &g.Members[j]
			x.Port, x.MAC, x.Switch, x.Pending, x.Diagnosis, x.Slow = x.Port+controls, x.MAC+controls, "s"+controls, "p"+controls, "d"+controls, "w"+controls
		}
	}
	for i := range s.Ports {
		s.Ports[i].Name, s.Ports[i].Driver, s.Ports[i].XDPMode = s.Ports[i].Name+controls, "d"+controls, "x"+controls
	}
	m.Update(taken{sample: s})
	m.Update(taken{err: errors.New("no" + controls)})
	seen := 0
	for _, key := range []string{"", "tab", "tab", "down", "enter", "down", "enter"} {
		if key != "" {
			press(m, key)
		}
		for _, l := range m.screen() {
			l = styles.ReplaceAllString(l, "")
			if strings.ContainsFunc(l, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("a line is %q", l)
			}
			seen += strings.Count(l, "evil")
		}
	}
	if seen < 10 {
		t.Errorf("the texts are shown %d times", seen)
	}
}
