// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/gleam-rdma/gleam/test/browser"
	"github.com/gleam-rdma/gleam/test/labtest"
	"github.com/gleam-rdma/gleam/test/livegroup"
)

// plotted waits until plots have the last seconds.
var plotted = browser.Until(`() => document.querySelector("#plots .curves path").getAttribute("d").split("L").length > 12`)

// TestBrowserSeesADeath kills a receiver under traffic while a browser shows the page: the stall, the
// member with its port, the eviction and that the group goes on are seen as they happen. The member's row
// is found by keyboard.
func TestBrowserSeesADeath(t *testing.T) {
	labtest.Require(t)
	browser.Require(t)
	l := livegroup.New(t, livegroup.Config{Hosts: 5, Gleamd: programs.Path(t, "gleamd"), More: "web: {listen: " + pageAddress + "}\n", Rate: 20_000_000, DeadAfter: 4 * time.Second})
	b := browser.New(t)
	group, dead := l.Group.String(), l.Star.Hosts[3].IPv4.String()
	b.Do("the page of a group with data", chromedp.EmulateViewport(1000, 830), chromedp.Navigate("http://"+relay(t, l.Star.Switch)+"/"),
		browser.Has("#connection", "connected"), browser.Has("#groups", group), browser.Has("#groups", "running"), browser.Has("#members", dead), browser.Has("#plots", "packets/s"), browser.Has("#picture .member.well", dead), browser.Has("#plots .legend", "Mbit/s"))
	b.Do("some history", plotted)
	b.Shot("well", chromedp.CaptureScreenshot())

	l.Kill(3)
	b.Do("the stall and its culprit", browser.Has("#attention li", "Group "+group+" stalls: its ACK waits for "+dead+" at port "+l.Star.Ports[3]), browser.Has("#groups .bad", "stalled"), browser.Has("#members .bad", dead), browser.Has("#picture .member.bad", "stalls"))
	b.Do("the culprit's panel, by the remark's button", chromedp.Click("#attention li button"), browser.Has("#panel-title", dead), browser.Has("#panel-window-text", "packets under way"), browser.Has("#panel-texts", "What ends it"),
		browser.Until(`() => document.activeElement.id === "panel-title"`))
	b.Shot("page", chromedp.CaptureScreenshot())
	dark := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}
	if _, err := chromedp.Call(b.Context, emulation.SetEmulatedMedia, dark); err != nil {
		t.Fatal(err)
	}
	b.Do("a phone", chromedp.EmulateViewport(360, 720), browser.Until(`() => document.querySelector("#picture").getBoundingClientRect().right <= 360`))
	b.Shot("phone", chromedp.CaptureScreenshot())
	b.Do("Escape closes it", chromedp.KeyEvent(kb.Escape), browser.Until(`() => document.querySelector("#panel").hidden && document.activeElement.dataset.key.startsWith("member ")`))
	b.Do("the eviction", browser.Has("#events li", dead+" at port "+l.Star.Ports[3]+" evicted"))
	b.Do("the group goes on", browser.Has("#events li", "resumed"), browser.Has("#groups", "running"),
		browser.Until(`() => !document.querySelector("#attention li") && !document.querySelector("#calm").hidden`))
	l.Check()

	const focused = `document.activeElement.closest("table") ? document.activeElement.textContent : document.activeElement.id`
	found := false
	for range 60 {
		b.Do("Tab", chromedp.KeyEvent(kb.Tab))
		found = found || b.Text(focused) == "events"
	}
	if !found {
		t.Error("Tab does not come to the events")
	}
}
