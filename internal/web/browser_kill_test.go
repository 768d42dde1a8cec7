// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/gleam-rdma/gleam/test/browser"
	"github.com/gleam-rdma/gleam/test/labtest"
	"github.com/gleam-rdma/gleam/test/livegroup"
)

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
		browser.Has("#connection", "connected"), browser.Has("#groups", group), browser.Has("#groups", "running"), browser.Has("#members", dead), browser.Has("#plots", "packet/s"))

	l.Kill(3)
	b.Do("the stall and its culprit", browser.Has("#attention li", "Group "+group+" stalls: its ACK waits for "+dead+" at port "+l.Star.Ports[3]), browser.Has("#groups .bad", "stalled"), browser.Has("#members .bad", dead))
	b.Shot("page", chromedp.CaptureScreenshot())
	b.Do("the eviction", browser.Has("#events li", dead+" at port "+l.Star.Ports[3]+" evicted"))
	b.Do("the group goes on", browser.Has("#events li", "resumed"), browser.Has("#groups", "running"),
		browser.Until(`() => !document.querySelector("#attention li") && !document.querySelector("#calm").hidden`))
	l.Check()

	const focused = `document.activeElement.closest("table") ? document.activeElement.textContent : document.activeElement.id`
	found := false
	for range 20 {
		b.Do("Tab", chromedp.KeyEvent(kb.Tab))
		found = found || b.Text(focused) == "events"
	}
	if !found {
		t.Error("Tab does not come to the events")
	}
}
