// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/test/apitest"
	"github.com/gleam-rdma/gleam/test/browser"
)

// acted is a switch whose groups move as time passes.
type acted struct {
	*apitest.Backend
	spoil atomic.Pointer[func(ports []api.Port)] // what is wrong with ports; nil: nothing
	began time.Time
	act   func(ms uint64, groups []api.Group) // what else changes of the groups; nil: nothing
}

// BusiestGroups returns the groups of GroupList, of which those that run get 6,000 packets a second.
func (a *acted) BusiestGroups(n int) ([]api.Group, int, error) {
	list, left, err := a.Backend.BusiestGroups(n)
	ms := uint64(time.Since(a.began).Milliseconds())
	for i := range list {
		g := &list[i]
		g.Members = append([]api.Member(nil), g.Members...)
		if g.State != "running" {
			continue
		}
		sent := 6 * ms
		psn := api.PSN(sent & 0xffff00) // no carry below
		g.Counters = api.Counters{DataIn: sent, DataBytes: 1024 * sent, GoodBytes: 1024 * sent, Copies: 4 * sent}
		g.AckPSN, g.NextPSN = psn, psn+33
		for k := range g.Members {
			g.Members[k].AckPSN, g.Members[k].Lag, g.Members[k].Cost = psn+8, 24, &api.Cost{RTTp50: 2e-4, RTTp99: 1e-3}
		}
	}
	if a.act != nil {
		a.act(ms, list)
	}
	return list, left, err
}

// Ports returns the ports with their frames.
func (a *acted) Ports() ([]api.Port, error) {
	list, err := a.Backend.Ports()
	list = append([]api.Port(nil), list...)
	if spoil := a.spoil.Load(); spoil != nil {
		(*spoil)(list)
	}
	for i := range list {
		if p := &list[i]; p.Up {
			p.TxFrames = 6 * uint64(time.Since(a.began).Milliseconds())
			p.TxBytes = 1100 * p.TxFrames
		}
	}
	return list, err
}

// address is that of host or group i.
func address(prefix string, i int) netip.Addr {
	return netip.MustParseAddr(fmt.Sprintf("%s.%d", prefix, i))
}

// groupOf is a group of hosts at ports of their own.
func groupOf(i, hosts int, state string) api.Group {
	g := api.Group{IP: address("10.77.254", i), Epoch: 1, State: state, Policy: "evict", PMTU: 1024}
	for h := 1; h <= hosts; h++ {
		g.Members = append(g.Members, api.Member{IP: address("10.77.0", h), Port: fmt.Sprintf("p%d", h), Role: "receiver", Live: true})
	}
	if state == "running" {
		g.Source, g.Members[0].Role = g.Members[0].IP, "source"
	}
	return g
}

// play serves a switch of five ports.
func play(t *testing.T, act func(ms uint64, groups []api.Group), groups ...api.Group) (url string, a *acted) {
	a = &acted{Backend: &apitest.Backend{GroupList: groups, Totals: &api.Stats{}}, began: time.Now().Add(-time.Hour), act: act}
	for i := 1; i <= 5; i++ {
		a.PortList = append(a.PortList, api.Port{Name: fmt.Sprintf("p%d", i), Up: true, State: api.PortOpen, XDPMode: "native", Driver: "veth", MTU: 1500})
	}
	return serve(t, a, Config{}), a
}

// shown is a function of JavaScript: the picture has a member at a level.
const shown = `(level, ip) => [...document.querySelectorAll("#picture .member." + level)].some(n => n.getAttribute("aria-label").includes(ip))`

// TestBrowserScenes shows what the picture says of members that lose packets, stall, and are behind another
// switch; that remarks are folded; and that all of it fits 320 pixels, light and dark.
func TestBrowserScenes(t *testing.T) {
	browser.Require(t)
	b := browser.New(t)
	looks := func(name string) {
		t.Helper()
		for _, dark := range []bool{false, true} {
			scheme := map[bool]string{false: "light", true: "dark"}[dark]
			media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
			if _, err := chromedp.Call(b.Context, emulation.SetEmulatedMedia, media); err != nil {
				t.Fatal(err)
			}
			width := map[bool]int64{false: 1200, true: 320}[dark]
			b.Do("a page of another width", chromedp.EmulateViewport(width, 1000), browser.Until(`w => document.querySelector("#picture").getBoundingClientRect().right <= w`, width))
			if got := b.Text(`String(document.documentElement.scrollWidth)`); got != fmt.Sprint(width) {
				t.Errorf("%s: at %d pixels the page is %s wide", name, width, got)
			}
			b.Shot("scene-"+name+"-"+scheme, chromedp.CaptureScreenshot())
		}
		b.Do("wide again", chromedp.EmulateViewport(1200, 1000))
	}
	bad := address("10.77.0", 3)

	url, _ := play(t, func(ms uint64, groups []api.Group) { groups[0].Members[2].Cost.Repaired = ms / 2 }, groupOf(1, 5, "running"))
	b.Do("losses to one member", chromedp.EmulateViewport(1200, 1000), chromedp.Navigate(url+"/"), browser.Until(shown, "loss", bad.String()), browser.Has("#picture .edge text", "49.2 Mbit/s"),
		browser.Until(shown, "well", "10.77.0.2"), browser.Has("#calm", "No group stalls"), browser.Has("#plots figcaption", "Mbit/s"))
	b.Do("its panel by keyboard", chromedp.Focus(`#picture .nodes [data-key="member 10.77.0.2"]`), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter),
		browser.Has("#panel-title", bad.String()), browser.Has("#panel-facts", "Packets sent again"), browser.Has("#panel-plots figcaption", "500 packets/s"), browser.Has("#panel-command", "--member "+bad.String()))
	looks("loss")
	b.Do("15 minutes", chromedp.Click("#ranges button:last-child"), browser.Has("#plots .axes", "−15 min"), chromedp.Click("#ranges button:first-child"))
	b.Do("a page that is loaded again has the history", browser.Until(`() => document.querySelector("#plots .curves path").getAttribute("d").split("L").length > 3`), chromedp.Reload(),
		browser.Until(`() => document.querySelector("#plots .curves path") && document.querySelector("#plots .curves path").getAttribute("d").split("L").length > 3`))

	stalls := groupOf(1, 5, "running")
	stalls.WaitsFor, stalls.StallSeconds = bad, 4
	url, a := play(t, nil, stalls)
	a.spoil.Store(new(func(ports []api.Port) { ports[3].Up = false }))
	b.Do("a member that is stopped, and a port that is down", chromedp.Navigate(url+"/"), browser.Has("#attention", "waits for "+bad.String()), browser.Until(shown, "bad", bad.String()),
		browser.Has("#picture .port.bad", "p4"), browser.Until(shown, "bad", "10.77.0.4"))
	looks("stall")

	url, a = play(t, nil, groupOf(1, 3, "running"))
	const why = "its interface has received 70 packets since gleamd attached to it, and the XDP program saw none of them"
	a.spoil.Store(new(func(ports []api.Port) { ports[2].Unheard, ports[4].Up, ports[4].Blocked = why, false, true }))
	b.Do("a port that is unheard, and one that its bridge blocks", chromedp.Navigate(url+"/"), browser.Has("#picture .port.bad", "p3"), browser.Until(shown, "bad", bad.String()+" at port p3: port unheard"),
		browser.Has("#attention", "Port p3 is unheard: "+why), browser.Has("#picture .port.idle.blocked", "p5"), browser.Has("#ports tr.bad", "unheard"), browser.Has("#ports tr.idle", "blocked"),
		browser.Until(`() => document.querySelectorAll("#attention > li").length === 1`))
	looks("ports")
	b.Do("the panel of the unheard one", chromedp.Focus(`#picture .nodes [data-key="port p3"]`), chromedp.KeyEvent(kb.Enter), browser.Has("#panel-state.bad", "unheard"), browser.Has("#panel-texts", why))
	b.Do("the panel of the blocked one", chromedp.Focus(`#picture .nodes [data-key="port p5"]`), chromedp.KeyEvent(kb.Enter), browser.Has("#panel-state.idle", "blocked"), browser.Has("#panel-texts", "spanning tree"))

	tree := groupOf(1, 4, "running")
	tree.Tree = &api.Tree{Switch: "0000000000000001"}
	for i, id := range []string{"0000000000000005", "0000000000000006"} {
		tree.Tree.Legs = append(tree.Tree.Legs, api.TreeLeg{Switch: id, Port: fmt.Sprintf("p%d", 3+i), State: "up", Members: 1, Live: 1 - i})
		tree.Members[2+i].Switch = id
	}
	url, _ = play(t, nil, tree)
	b.Do("members behind other switches", chromedp.Navigate(url+"/"), browser.Has("#picture .neighbour.well", "switch 5"), browser.Has("#picture .neighbour.bad", "1 dead"), browser.Until(shown, "well", "10.77.0.3"))
	looks("tree")

	groups := []api.Group{groupOf(1, 5, "running")}
	for i := 2; i <= 51; i++ {
		g := groupOf(i, 4, "idle")
		for k := range g.Members {
			g.Members[k].Diagnosis = "has not shown yet that it expects PSN 0x000000"
		}
		groups = append(groups, g)
	}
	url, _ = play(t, nil, groups...)
	b.Do("idle groups are no remark", chromedp.Navigate(url+"/"), browser.Until(shown, "well", bad.String()), browser.Has("#calm", "No group stalls"), browser.Has("#idle-groups", "Show 50 idle groups"),
		browser.Until(`() => !document.querySelector("#attention li") && document.querySelectorAll("#groups tbody tr").length === 1`))
	looks("idle")
	b.Do("they are shown", chromedp.Click("#idle-groups"), browser.Until(`() => document.querySelectorAll("#groups tbody tr").length === 51`))

	groups = slices.Clone(groups) // the ones before are still served
	for i := range groups {
		groups[i] = groupOf(i+1, 5, "running")
		groups[i].WaitsFor, groups[i].StallSeconds = bad, 2
	}
	url, _ = play(t, nil, groups...)
	b.Do("many remarks are one", chromedp.Navigate(url+"/"), browser.Has("#attention summary", "51 groups stall"), browser.Until(`() => document.querySelectorAll("#attention > li").length === 1`), browser.Has("#picture", "51 groups"),
		chromedp.Click("#attention summary"), browser.Has("#attention details[open] li", "Group 10.77.254.1 stalls"))
	looks("many")

	url, _ = play(t, nil)
	b.Do("a switch without groups", chromedp.Navigate(url+"/"), browser.Has("#groups-note", "No group is registered"), browser.Has("#picture .port", "p1"))
	alone := groupOf(1, 0, "idle")
	url, _ = play(t, nil, alone)
	b.Do("a group without members", chromedp.Navigate(url+"/"), browser.Has("#picture .port", "p1"), browser.Has("#members-title", alone.IP.String()))

	if hosts := b.Hosts(); len(hosts) != 8 || !strings.HasPrefix(strings.Join(hosts, " "), "127.0.0.1:") {
		t.Errorf("requests went to %q, want the eight switches alone", hosts)
	}
	if said := b.Console(); len(said) > 0 {
		t.Errorf("the console has %q", said)
	}
}
