// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// TestSiteSearch types words into the search of the documents' site, in Chromium: each is found on
// its page, and nobody but the site's own server is asked for anything.
func TestSiteSearch(t *testing.T) {
	if os.Getenv("GLEAM_WEB") == "" {
		t.Skip("needs chromium and mkdocs; type: make test-web")
	}
	dir := t.TempDir()
	if out, err := exec.Command(root+"/scripts/site/build", dir+"/site").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir + "/site")))
	defer server.Close()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(t.Logf))
	defer cancel()
	do := func(what string, actions ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, actions...); err != nil {
			text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
			t.Fatalf("%s: %v\nthe page has:\n%.2000s", what, err, text)
		}
	}
	var mu sync.Mutex
	var hosts []string
	do("a browser") // Listen needs one
	if err := chromedp.Listen(ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			if u, err := url.Parse(e.Request.URL); err == nil && u.Host != "" {
				mu.Lock()
				defer mu.Unlock()
				hosts = append(hosts, u.Host)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	for word, page := range map[string]string{
		"source_guard": "docs/COUNTERS.html", "IBV_WC_RETRY_EXC_ERR": "docs/TROUBLESHOOTING.html", "cable": "docs/TUTORIAL-BREAK.html",
	} {
		do(word, chromedp.Navigate(server.URL+"/index.html?q="+word), chromedp.PollFunction[chromedp.Void](
			`(page) => [...document.querySelectorAll(".md-search-result__item a")].some(a => a.href.includes(page))`,
			chromedp.WithPollingArgs(page), chromedp.WithPollingInterval(100*time.Millisecond), chromedp.WithPollingTimeout(20*time.Second)))
	}
	mu.Lock()
	defer mu.Unlock()
	for _, h := range hosts {
		if "http://"+h != server.URL {
			t.Errorf("the site asks %s", h)
		}
	}
	if len(hosts) == 0 {
		t.Error("no requests seen")
	}
}
