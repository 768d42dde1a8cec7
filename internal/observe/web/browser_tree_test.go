// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/bedtest"
	"github.com/gleam-rdma/gleam/test/browser"
)

// TestBrowserTree shows a group over three switches, from that of its source and from the one in the middle.
func TestBrowserTree(t *testing.T) {
	browser.Require(t)
	f := bedtest.Fabric(t, testbed.FabricConfig{
		Gleamd: programs.Path(t, "gleamd"), Fabric: fabric.Config{Topology: fabric.LeafSpine(2, 1, 2)}, More: "web: {listen: " + pageAddress + "}\n",
	})
	hosts := bedtest.Open(t, fabric.Plain(f.Hosts), testbed.Endpoints{Key: f.Key, Device: soft.Config{Rate: 10_000_000}, Memory: 1 << 16})
	join, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	groups, err := testbed.Join(join, endpoint.MasterConfig{GroupIP: fabric.GroupsIPv4.Addr().Next(), PathMTU: 1024, WindowBase: 0x5000_0000_0000}, hosts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() { sent <- testbed.Repeat(ctx, groups[0], hosts[0].Memory) }()

	b := browser.New(t)
	far, near := f.Hosts[2].IPv4.String(), f.Hosts[1].IPv4.String()
	b.Do("the tree at the source's switch", chromedp.EmulateViewport(1200, 900), chromedp.Navigate("http://"+relay(t, f.Switch("l1").NS)+"/"), browser.Has("#connection", "connected"),
		browser.Has("#picture .neighbour.well", "2 members, well"), browser.Until(shown, "well", near), browser.Until(shown, "well", far), browser.Until(shown, "well", "source "+f.Hosts[0].IPv4.String()))
	b.Do("some history", plotted)
	b.Shot("tree", chromedp.CaptureScreenshot())
	b.Do("the tree at the spine", chromedp.Navigate("http://"+relay(t, f.Switch("s1").NS)+"/"), browser.Has("#connection", "connected"),
		browser.Has("#picture .neighbour.well", "the source is behind it"), browser.Has("#picture .neighbour.well", "2 members, well"))
	stop()
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if said := b.Console(); len(said) > 0 {
		t.Errorf("the console has %q", said)
	}
}
