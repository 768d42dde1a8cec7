// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/gleam-rdma/gleam/test/browser"
)

// TestSiteSearch types words into the search of the documents' site, in Chromium: each is found on
// its page, and nobody but the site's own server is asked for anything.
func TestSiteSearch(t *testing.T) {
	browser.Require(t)
	dir := t.TempDir()
	if out, err := exec.Command(root+"/scripts/site/build", dir+"/site").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir + "/site")))
	defer server.Close()
	b := browser.New(t)
	for word, page := range map[string]string{
		"source_guard": "docs/COUNTERS.html", "IBV_WC_RETRY_EXC_ERR": "docs/TROUBLESHOOTING.html", "cable": "docs/TUTORIAL-BREAK.html",
	} {
		b.Do(word, chromedp.Navigate(server.URL+"/index.html?q="+word),
			browser.Until(`(page) => [...document.querySelectorAll(".md-search-result__item a")].some(a => a.href.includes(page))`, page))
	}
	hosts := b.Hosts()
	for _, h := range hosts {
		if "http://"+h != server.URL {
			t.Errorf("the site asks %s", h)
		}
	}
	if len(hosts) == 0 {
		t.Error("no requests seen")
	}
}
