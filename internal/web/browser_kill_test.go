// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/gleam-rdma/gleam/test/labtest"
	"github.com/gleam-rdma/gleam/test/livegroup"
)

// TestBrowserSeesADeath kills a receiver under traffic while a browser shows the page: the stall, the
// member with its port, the eviction and that the group goes on are seen as they happen. The member's row
// is found by keyboard.
func TestBrowserSeesADeath(t *testing.T) {
	labtest.Require(t)
	if os.Getenv("GLEAM_WEB") == "" {
		t.Skip("needs chromium; type: make test-web")
	}
	l := livegroup.New(t, livegroup.Config{Hosts: 5, Gleamd: programs.Path(t, "gleamd"), More: "web: {listen: " + pageAddress + "}\n", Rate: 20_000_000, DeadAfter: 4 * time.Second})
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(t.Logf))
	defer cancel()
	do := func(what string, actions ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, actions...); err != nil {
			text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
			t.Fatalf("%s: %v\nthe page has:\n%s", what, err, text)
		}
	}
	shot := func(name string) { // into the directory that GLEAM_SHOTS names
		t.Helper()
		dir := os.Getenv("GLEAM_SHOTS")
		if dir == "" {
			return
		}
		picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644)
		}
		if err != nil {
			t.Errorf("screenshot %s: %v", name, err)
		}
	}
	group, dead := l.Group.String(), l.Star.Hosts[3].IPv4.String()
	do("the page of a group with data", chromedp.EmulateViewport(1000, 830), chromedp.Navigate("http://"+relay(t, l.Star.Switch)+"/"),
		has("#connection", "connected"), has("#groups", group), has("#groups", "running"), has("#members", dead), has("#plots", "packet/s"))

	l.Kill(3)
	do("the stall and its culprit", has("#attention li", "Group "+group+" stalls: its ACK waits for "+dead+" at port "+l.Star.Ports[3]), has("#groups .bad", "stalled"), has("#members .bad", dead))
	shot("page")
	do("the eviction", has("#events li", dead+" at port "+l.Star.Ports[3]+" evicted"))
	do("the group goes on", has("#events li", "resumed"), has("#groups", "running"),
		chromedp.PollFunction[chromedp.Void](`() => !document.querySelector("#attention li") && !document.querySelector("#calm").hidden`, chromedp.WithPollingInterval(100*time.Millisecond), chromedp.WithPollingTimeout(10*time.Second)))
	l.Check()

	const focused = `document.activeElement.closest("table") ? document.activeElement.textContent : document.activeElement.id`
	found := false
	for range 20 {
		do("Tab", chromedp.KeyEvent(kb.Tab))
		at, err := chromedp.Run(ctx, chromedp.Evaluate[string](focused))
		if err != nil {
			t.Fatal(err)
		}
		found = found || at == "events"
	}
	if !found {
		t.Error("Tab does not come to the events")
	}
}
