// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/bedtest"
	"github.com/gleam-rdma/gleam/test/browser"
	"github.com/gleam-rdma/gleam/test/labtest"
)

var programs = labtest.Programs{Packages: []string{"../../../cmd/gleamd"}}

func TestMain(m *testing.M) { os.Exit(programs.Run(m)) }

const pageAddress = "127.0.0.1:8477" // the page's address in the switch's namespace

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

// TestBrowser shows a switch's page in Chromium: groups, members and events as they come, by
// keyboard as by mouse, at widths from 320 pixels, without a request to anybody else.
func TestBrowser(t *testing.T) {
	browser.Require(t)
	bed := bedtest.Star(t, testbed.Config{Gleamd: programs.Path(t, "gleamd"), Star: lab.StarConfig{Hosts: 4}, More: "web: {listen: " + pageAddress + "}\n"})
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

	b, address := browser.New(t), relay(t, bed.Star.Switch)
	b.Do("the page", chromedp.EmulateViewport(1280, 900), chromedp.Navigate("http://"+address+"/"),
		browser.Has("#connection", "connected"), browser.Has("#groups", first.String()), browser.Has("#groups", second.String()), browser.Has("#ports", bed.Star.Ports[3]))

	removed := bed.Star.Hosts[3].IPv4
	if err := bed.Client.RemoveMember(t.Context(), first, removed); err != nil {
		t.Fatal(err)
	}
	b.Do("a member is removed while the page is shown", browser.Has("#events li", removed.String()+" removed"))
	if err := bed.Star.Switch.SetDown(bed.Star.Ports[2]); err != nil {
		t.Fatal(err)
	}
	b.Do("a port goes down", browser.Has("#attention li", bed.Star.Ports[2]), browser.Has("#picture .port.bad", bed.Star.Ports[2]), browser.Has("#picture .member.bad", bed.Star.Hosts[2].IPv4.String()))

	// By keyboard: the link that skips to the groups, and the second group's button.
	const focused = `document.activeElement.textContent`
	b.Do("Tab", chromedp.KeyEvent(kb.Tab))
	if at := b.Text(focused); at != "Skip to groups" {
		t.Errorf("the first Tab comes to %q, want the link that skips to the groups", at)
	}
	b.Do("Enter", chromedp.KeyEvent(kb.Enter))
	for range 10 {
		if b.Do("Tab", chromedp.KeyEvent(kb.Tab)); b.Text(focused) == second.String() {
			break
		}
	}
	if at := b.Text(focused); at != second.String() {
		t.Errorf("Tab does not come to the second group, but to %q", at)
	}
	b.Do("the second group by keyboard", chromedp.KeyEvent(kb.Enter), browser.Has("#members-title", second.String()), browser.Has("#members", removed.String()))

	b.Do("the page after two samples more", chromedp.Sleep(2*api.StallTime*time.Second+100*time.Millisecond))
	if groups := b.Text(`document.querySelector("#groups").innerText`); strings.Contains(groups, "stalled") {
		t.Errorf("a group without data stalls:\n%s", groups)
	}
	b.Shot("light", chromedp.FullScreenshot(100))
	b.Do("a narrow page", chromedp.EmulateViewport(320, 700))
	if width := b.Text(`String(document.documentElement.scrollWidth)`); width != "320" {
		t.Errorf("at 320 pixels the page is %s wide", width)
	}
	b.Shot("narrow", chromedp.FullScreenshot(100))
	const background = `getComputedStyle(document.body).backgroundColor`
	light := b.Text(background)
	dark := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}
	if _, err := chromedp.Call(b.Context, emulation.SetEmulatedMedia, dark); err != nil {
		t.Fatal(err)
	}
	b.Do("a dark page", chromedp.EmulateViewport(1280, 900))
	if now := b.Text(background); now == light {
		t.Errorf("the background is %s, light or dark", now)
	}
	b.Shot("dark", chromedp.FullScreenshot(100))

	if hosts := b.Hosts(); len(hosts) != 1 || hosts[0] != address {
		t.Errorf("requests went to %q, want %s alone", hosts, address)
	}
	if said := b.Console(); len(said) > 0 {
		t.Errorf("the console has %q", said)
	}
}
