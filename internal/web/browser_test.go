// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/tools/lab"
	"github.com/gleam-rdma/gleam/internal/tools/testbed"
	"github.com/gleam-rdma/gleam/test/labtest"
)

var programs = labtest.Programs{Packages: []string{"../../cmd/gleamd"}}

func TestMain(m *testing.M) { os.Exit(programs.Run(m)) }

const pageAddress = "127.0.0.1:8477" // in the switch's namespace

// relay returns an address of this namespace whose connections go to the page in ns.
func relay(t *testing.T, ns *lab.Namespace) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() { _ = ns.Relay(l, pageAddress) }()
	return l.Addr().String()
}

// seen is what a browser reports of a page.
type seen struct {
	mu      sync.Mutex
	hosts   []string // hosts of requests
	console []string // messages, and exceptions
}

func (s *seen) note(event any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err == nil && u.Host != "" && !slices.Contains(s.hosts, u.Host) {
			s.hosts = append(s.hosts, u.Host)
		}
	case *runtime.EventExceptionThrown:
		s.console = append(s.console, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		s.console = append(s.console, e.Entry.Text)
	case *runtime.EventConsoleAPICalled:
		s.console = append(s.console, string(e.Type))
	}
}

// has waits for an element that contains a text.
func has(selector, text string) chromedp.Action[chromedp.Void] {
	return chromedp.PollFunction[chromedp.Void](`(s, text) => [...document.querySelectorAll(s)].some(e => e.textContent.includes(text))`,
		chromedp.WithPollingArgs(selector, text), chromedp.WithPollingInterval(100*time.Millisecond), chromedp.WithPollingTimeout(10*time.Second))
}

// TestBrowser shows a switch's page in Chromium: groups, members and events as they come, by
// keyboard as by mouse, at widths from 320 pixels, without a request to anybody else.
func TestBrowser(t *testing.T) {
	labtest.Require(t)
	if os.Getenv("GLEAM_WEB") == "" {
		t.Skip("needs chromium; type: make test-web")
	}
	bed, err := testbed.Build(t.Context(), testbed.Config{
		Dir: t.TempDir(), Gleamd: programs.Path(t, "gleamd"), Star: lab.StarConfig{Hosts: 4}, More: "web: {listen: " + pageAddress + "}\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bed.Close(); err != nil {
			t.Error(err)
		}
	})
	register := func(group netip.Addr, qpn api.QPN) {
		t.Helper()
		r := &api.Register{Group: group, PMTU: 1024}
		for _, h := range bed.Star.Hosts {
			r.Members = append(r.Members, api.RegisterMember{IP: h.IPv4, QPN: qpn})
		}
		if err := bed.Client.Register(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	first, second := netip.MustParseAddr("10.77.254.1"), netip.MustParseAddr("10.77.254.2")
	register(first, 0x11)
	register(second, 0x12)

	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(t.Logf))
	defer cancel()
	var s seen
	address := relay(t, bed.Star.Switch)
	do := func(what string, actions ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, actions...); err != nil {
			text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
			t.Fatalf("%s: %v\nthe page has:\n%s", what, err, text)
		}
	}
	text := func(expression string) string {
		t.Helper()
		v, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression))
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		return v
	}
	shot := func(name string) { // into the directory that GLEAM_SHOTS names
		t.Helper()
		dir := os.Getenv("GLEAM_SHOTS")
		if dir == "" {
			return
		}
		picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(80))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".jpg"), picture, 0o644)
		}
		if err != nil {
			t.Errorf("screenshot %s: %v", name, err)
		}
	}
	do("a browser") // Listen needs one
	if err := chromedp.Listen(ctx, s.note); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	do("the page", chromedp.EmulateViewport(1280, 900), chromedp.Navigate("http://"+address+"/"),
		has("#connection", "connected"), has("#groups", first.String()), has("#groups", second.String()), has("#ports", bed.Star.Ports[3]))

	removed := bed.Star.Hosts[3].IPv4
	if err := bed.Client.RemoveMember(t.Context(), first, removed); err != nil {
		t.Fatal(err)
	}
	do("a member is removed while the page is shown", has("#events li", removed.String()+" removed"))
	if err := bed.Star.Switch.SetDown(bed.Star.Ports[2]); err != nil {
		t.Fatal(err)
	}
	do("a port goes down", has("#attention li", bed.Star.Ports[2]))

	// By keyboard: the link that skips to the groups, and the second group's button.
	const focused = `document.activeElement.textContent`
	do("Tab", chromedp.KeyEvent(kb.Tab))
	if at := text(focused); at != "Skip to groups" {
		t.Errorf("the first Tab comes to %q, want the link that skips to the groups", at)
	}
	do("Enter", chromedp.KeyEvent(kb.Enter))
	for range 10 {
		if do("Tab", chromedp.KeyEvent(kb.Tab)); text(focused) == second.String() {
			break
		}
	}
	if at := text(focused); at != second.String() {
		t.Errorf("Tab does not come to the second group, but to %q", at)
	}
	do("the second group by keyboard", chromedp.KeyEvent(kb.Enter), has("#members-title", second.String()), has("#members", removed.String()))

	do("the page after two samples more", chromedp.Sleep(2*api.StallTime*time.Second+100*time.Millisecond))
	if groups := text(`document.querySelector("#groups").innerText`); strings.Contains(groups, "stalled") {
		t.Errorf("a group without data stalls:\n%s", groups)
	}
	shot("light")
	do("a narrow page", chromedp.EmulateViewport(320, 700))
	if width := text(`String(document.documentElement.scrollWidth)`); width != "320" {
		t.Errorf("at 320 pixels the page is %s wide", width)
	}
	shot("narrow")
	const background = `getComputedStyle(document.body).backgroundColor`
	light := text(background)
	dark := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, dark); err != nil {
		t.Fatal(err)
	}
	do("a dark page", chromedp.EmulateViewport(1280, 900))
	if now := text(background); now == light {
		t.Errorf("the background is %s, light or dark", now)
	}
	shot("dark")

	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hosts) != 1 || s.hosts[0] != address {
		t.Errorf("requests went to %q, want %s alone", s.hosts, address)
	}
	if len(s.console) > 0 {
		t.Errorf("the console has %q", s.console)
	}
}
