// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package story tells what an operator goes through: a receiver becomes slow, another one dies, the
// link of a third one flaps. Each time everything that shows a switch names the same culprit.
package story

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
	"github.com/gleam-rdma/gleam/test/livegroup"
	"github.com/gleam-rdma/gleam/test/terminal"
)

var programs = labtest.Programs{Packages: []string{"../../cmd/gleamd", "../../cmd/gleam"}}

func TestMain(m *testing.M) { os.Exit(programs.Run(m)) }

const metricsAddress = "127.0.0.1:9477" // the address in the switch's namespace

// story is a lab whose operator looks at it.
type story struct {
	*livegroup.Lab
	t     *testing.T
	gleam string
	page  *http.Client
}

// culprit is a receiver and its port.
type culprit struct{ member, port string }

func (s *story) host(i int) culprit {
	return culprit{s.Star.Hosts[i].IPv4.String(), s.Star.Ports[i]}
}

// run runs gleam.
func (s *story) run(args ...string) string {
	s.t.Helper()
	out, _ := s.Gleam(s.gleam, args...) // gleam doctor's exit code is about findings
	return out
}

// metrics are the lines of the metrics with a name.
func (s *story) metrics(name string) (lines []string) {
	s.t.Helper()
	r, err := s.page.Get("http://" + metricsAddress + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, name+"{") {
			lines = append(lines, line)
		}
	}
	return lines
}

// view is one of the ways to look at a switch.
type view struct {
	name string
	ask  func() string // what is shown
	// culprit finds the member and its port in a line that accuses one: the subexpressions.
	culprit  *regexp.Regexp
	portless bool // the view shows the port elsewhere
	only     bool // true: it shows the port, and not the member
}

// accuse waits until all views accuse c, and fails if one of them accuses another one then.
func (s *story) accuse(what string, c culprit, views ...view) {
	s.t.Helper()
	var wrong []string
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		wrong = wrong[:0]
		for _, v := range views {
			text := v.ask()
			found := v.culprit.FindAllStringSubmatch(text, -1)
			if !v.names(found, c) {
				wrong = append(wrong, fmt.Sprintf("%s: want %v, it accuses %q:\n%s", v.name, c, found, text))
			}
		}
		if len(wrong) == 0 {
			return
		}
	}
	s.t.Fatalf("%s:\n%s", what, strings.Join(wrong, "\n"))
}

// until waits for a condition.
func (s *story) until(what string, holds func() bool) {
	s.t.Helper()
	for end := time.Now().Add(15 * time.Second); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%s: not within 15 s", what)
		}
	}
}

// names reports whether what was found is c, and nobody else.
func (v *view) names(found [][]string, c culprit) bool {
	return len(found) > 0 && !slices.ContainsFunc(found, func(m []string) bool {
		return !v.only && m[1] != c.member || !v.portless && m[len(m)-1] != c.port
	})
}

// ip and port are subexpressions.
const (
	ip   = `(10\.77\.0\.\d+)`
	port = `(p\d+)`
)

func re(text string) *regexp.Regexp { return regexp.MustCompile("(?m)" + text) }

// event is a view of the last event of a kind.
func (s *story) event(kind string) view {
	return view{name: "gleam events", culprit: re(kind + `\s+10\.77\.254\.1\s+` + ip + `\s+` + port + `\s`), ask: func() string {
		list := slices.DeleteFunc(strings.Split(s.run("events"), "\n"), func(line string) bool { return !strings.Contains(line, " "+kind+" ") })
		return strings.Join(list[max(0, len(list)-1):], "\n")
	}}
}

// now are the views of a group that is delayed now.
func (s *story) now(metric, showRow string) []view {
	g := s.Group.String()
	return []view{
		{name: "metrics", culprit: re(`member="` + ip + `",port="` + port + `"\} 1`), ask: func() string { return strings.Join(s.metrics(metric), "") }},
		{name: "gleam top", portless: true, culprit: re(`^\* ` + ip + `\s+receiver`), ask: func() string { return s.run("top", "--once", "-d", "100ms", g) }},
		{name: "gleam top's groups", portless: true, culprit: re(`^\* 10\.77\.254\.1 .*\s` + ip + `\s+(?:slow|fast)`), ask: func() string { return s.run("top", "--once", "-d", "100ms") }},
		{name: "gleam explain ack", culprit: re(`^waits for ` + ip + ` at port ` + port), ask: func() string { return s.run("explain", "ack", g) }},
		{name: "gleam group show", culprit: re(`^` + showRow + `\s+` + ip + ` at port ` + port), ask: func() string { return s.run("group", "show", g) }},
	}
}

// doctor is what gleam doctor finds.
func (s *story) doctor(text string) view {
	return view{name: "gleam doctor", culprit: re(`member ` + ip + ` at port ` + port + `: ` + text), ask: func() string {
		return regexp.MustCompile(`\n {5,}`).ReplaceAllString(s.run("doctor", "--no-packets"), " ") // unwrapped
	}}
}

// TestStory is one after the other: all is well; a receiver is slow, and is so no more; another one
// dies, and is evicted; the link of a third one goes down, and comes back.
func TestStory(t *testing.T) {
	labtest.Require(t)
	l := livegroup.New(t, livegroup.Config{Hosts: 5, Gleamd: programs.Path(t, "gleamd"), More: "metrics: {listen: " + metricsAddress + "}\n", Rate: 20_000_000})
	s := &story{Lab: l, t: t, gleam: programs.Path(t, "gleam")}
	s.page = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: func(_ context.Context, network, address string) (c net.Conn, err error) {
		return c, l.Star.Switch.Do(func() error { c, err = net.Dial(network, address); return err })
	}}}
	begin := time.Now()
	chapter := func(what string) { t.Logf("%5.1f s  %s", time.Since(begin).Seconds(), what) }

	chapter("a receiver is slow")
	slow := s.host(2)
	l.Slow(2, 100*time.Millisecond)
	s.accuse("a receiver is slow", slow, append(s.now("gleam_group_slowed_by", "slowed by"), s.event("slow"), s.doctor("it costs the group time: not ready"))...)
	l.Check()

	chapter("it is fast again")
	l.Slow(2, 0)
	s.accuse("it is fast again", slow, s.event("resumed"))
	s.until("the metrics have no slow receiver any more", func() bool { return len(s.metrics("gleam_group_slowed_by")) == 0 })

	chapter("a receiver dies")
	dead := s.host(3)
	l.Kill(3)
	s.accuse("a receiver is silent", dead, append(s.now("gleam_group_waits_for", "waits for"), s.event("stalled"), s.doctor("[0-9]+ packets are outstanding"))...)
	s.screens()
	chapter("it is evicted")
	s.accuse("a receiver is dead", dead,
		s.event("evicted"), s.doctor("it was removed"),
		view{name: "gleam group show", culprit: re(`^` + ip + `\s+0x\w+\s+` + port + `\s+0x\w+\s+evicted`), ask: func() string { return s.run("group", "show", l.Group.String()) }},
		view{name: "gleam explain ack", culprit: re(ip + ` at port ` + port + ` was evicted`), ask: func() string { return s.run("explain", "ack", l.Group.String()) }},
		view{name: "gleam top", culprit: re(ip + ` at port ` + port + ` was evicted`), ask: func() string { return s.run("top", "--once", "-d", "100ms", l.Group.String()) }})
	s.until("the metrics count the eviction", func() bool {
		return slices.Contains(s.metrics("gleam_events_total"), `gleam_events_total{kind="evicted"} 1`+"\n")
	})
	s.accuse("the group goes on", dead, s.event("resumed"))
	l.Check()

	chapter("a link goes down")
	cut := s.host(1)
	if err := l.Star.Switch.SetDown(cut.port); err != nil {
		t.Fatal(err)
	}
	s.accuse("a link is down", cut, append(s.now("gleam_group_waits_for", "waits for"), s.event("stalled"), s.doctor("[0-9]+ packets are outstanding"))...)
	if err := l.Star.Switch.SetUp(cut.port); err != nil {
		t.Fatal(err)
	}
	chapter("it is up again")
	s.accuse("a link has flapped", cut, s.event("resumed"),
		view{name: "gleam events", culprit: re(` port .* ` + port + ` .* up; members there: ` + regexp.QuoteMeta(cut.member) + `$`), only: true, ask: func() string { return s.run("events") }},
		view{name: "gleam doctor", only: true, culprit: re(`port ` + port + `: it went down`), ask: s.doctor("").ask},
		view{name: "gleam top", only: true, culprit: re(`^\* ` + port + `\s+up\s+1\s`), ask: func() string { return s.run("top", "--once", "-d", "100ms") }},
		view{name: "metrics", only: true, culprit: re(`gleam_port_down_total\{port="` + port + `"\} 1`), ask: func() string { return strings.Join(s.metrics("gleam_port_down_total"), "") }})
	l.Check()
	chapter("the end")
}

// seen is what gleam shows in a terminal of 80 columns. Lines that the terminal breaks are whole.
func (s *story) seen(args ...string) string {
	s.t.Helper()
	x := terminal.New(s.t, 60, "", append([]string{s.gleam, "--socket", s.Socket()}, args...)...)
	if args[0] == "top" { // it shows rates, which need a second sample, and goes on
		x.Tmux("resize-window", "-x", "80", "-y", "24")
		s.until("the rates of members", func() bool {
			return re(`receiver +yes +0x\w+ +\d`).MatchString(x.See("gleam top", "STALLS"))
		})
	} else {
		x.See(args[0], "ended 0")
	}
	text, _, _ := strings.Cut(x.Tmux("capture-pane", "-p", "-J"), "ended 0")
	lines := strings.Split(strings.TrimRight(text, " \n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// page is the document that has the screens.
const page = "../../docs/WEB.md"

// screens writes what commands show now into the page, if GLEAM_SHOTS is set: make screens.
func (s *story) screens() {
	s.t.Helper()
	if os.Getenv("GLEAM_SHOTS") == "" {
		return
	}
	text, err := os.ReadFile(page)
	if err != nil {
		s.t.Fatal(err)
	}
	g := s.Group.String()
	for _, command := range []string{"explain ack " + g, "top " + g, "group show " + g, "group tree " + g} {
		block := regexp.MustCompile("(?s)(<!-- screen: " + regexp.QuoteMeta(command) + " -->\n```\n).*?(```\n)")
		if !block.Match(text) {
			s.t.Errorf("%s has no screen of %s", page, command)
		}
		shown := "$ gleam " + command + "\n" + s.seen(strings.Fields(command)...) + "\n"
		text = block.ReplaceAll(text, []byte("${1}"+strings.ReplaceAll(shown, "$", "$$")+"${2}"))
	}
	if err := os.WriteFile(page, text, 0o644); err != nil {
		s.t.Fatal(err)
	}
}
