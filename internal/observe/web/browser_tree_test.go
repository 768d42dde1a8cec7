// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/browser"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// TestBrowserTree shows a group over three switches, from that of its source and from the one in the middle.
func TestBrowserTree(t *testing.T) {
	labtest.Require(t)
	browser.Require(t)
	f, err := testbed.BuildFabric(t.Context(), testbed.FabricConfig{
		Dir: t.TempDir(), Gleamd: programs.Path(t, "gleamd"), Fabric: fabric.Config{Topology: fabric.LeafSpine(2, 1, 2)}, More: "web: {listen: " + pageAddress + "}\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	group := fabric.GroupsIPv4.Addr().Next()
	var all []session.Participant
	var first endpoint.MR
	for i, h := range f.Hosts {
		var dev *soft.Device
		if err := h.NS.Do(func() (err error) {
			dev, err = soft.Open(soft.Config{Interface: fabric.HostInterface, Seed: uint64(i), Rate: 10_000_000})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dev.Close() })
		mr, err := dev.RegisterMemory(make([]byte, 1<<16), 0x1000_0000, endpoint.LocalWrite|endpoint.RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = mr
		}
		all = append(all, session.Participant{Name: h.Name, Do: h.NS.Do, Local: endpoint.Local{
			Device: dev, Memory: mr,
			QPConfig:   endpoint.QPConfig{LocalIP: h.IPv4, SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN(), MaxSend: 16, MaxRecv: 16, Timeout: 14, RetryCount: 7, RNRRetry: 7},
			HostConfig: endpoint.HostConfig{Auth: envelope.Auth{Keys: envelope.Keys{testbed.KeyID: f.Key}, Send: testbed.KeyID}},
		}})
	}
	join, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	groups, err := session.Join(join, netip.AddrPortFrom(f.Hosts[0].IPv4, 7000), endpoint.MasterConfig{GroupIP: group, PathMTU: 1024, WindowBase: 0x5000_0000_0000}, all)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() {
		qp, w := groups[0].QP(), groups[0].Info().Window
		var wc [1]endpoint.Completion
		for ctx.Err() == nil {
			_, err := qp.PostSend(endpoint.SendWR{Op: endpoint.Write, Local: endpoint.Segment{MR: first, Len: first.Len()}, RemoteAddr: w.Base, RKey: w.RKey})
			if err == nil {
				_, err = qp.Poll(context.Background(), wc[:])
			}
			if err == nil {
				err = wc[0].Err()
			}
			if err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
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
