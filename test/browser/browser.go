// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package browser is a headless Chromium for tests of pages.
package browser

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// Browser has one page. It ends with its test.
type Browser struct {
	Context context.Context // the context of chromedp's functions

	t       *testing.T
	mu      sync.Mutex
	hosts   []string
	console []string
}

// Require skips a test unless a part runs that has Chromium.
func Require(t *testing.T) {
	t.Helper()
	labtest.Part(t, "web", "screens")
	labtest.Needs(t, "chromium")
}

// New starts a browser with a profile of its own.
func New(t *testing.T) *Browser {
	t.Helper()
	Require(t)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(t.Logf))
	t.Cleanup(cancel)
	b := &Browser{Context: ctx, t: t}
	b.Do("a browser") // Listen needs one
	if err := chromedp.Listen(ctx, b.note); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	return b
}

// note takes what the browser reports of its page.
func (b *Browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err == nil && u.Host != "" && !slices.Contains(b.hosts, u.Host) {
			b.hosts = append(b.hosts, u.Host)
		}
	case *runtime.EventExceptionThrown:
		b.console = append(b.console, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.console = append(b.console, e.Entry.Text)
	case *runtime.EventConsoleAPICalled:
		b.console = append(b.console, string(e.Type))
	}
}

// Hosts are those that the page has sent requests to, with their ports.
func (b *Browser) Hosts() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.hosts)
}

// Console has the page's messages and exceptions.
func (b *Browser) Console() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.console)
}

// Do runs actions. The test ends with the page's text if one fails.
func (b *Browser) Do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.Context, actions...); err != nil {
		text, _ := chromedp.Run(b.Context, chromedp.Evaluate[string]("document.body.innerText"))
		b.t.Fatalf("%s: %v\nthe page has:\n%.4000s", what, err, text)
	}
}

// Text is the value of a JavaScript expression, a string.
func (b *Browser) Text(expression string) string {
	b.t.Helper()
	v, err := chromedp.Run(b.Context, chromedp.Evaluate[string](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// Has waits for an element with a text in it.
func Has(selector, text string) chromedp.Action[chromedp.Void] {
	return Until(`(s, text) => [...document.querySelectorAll(s)].some(e => e.textContent.includes(text))`, selector, text)
}

// Until waits until a JavaScript function of args is true.
func Until(function string, args ...any) chromedp.Action[chromedp.Void] {
	return chromedp.PollFunction[chromedp.Void](function, chromedp.WithPollingArgs(args...),
		chromedp.WithPollingInterval(100*time.Millisecond), chromedp.WithPollingTimeout(20*time.Second))
}

// Shot writes a picture of the page, a PNG, into the directory that GLEAM_SHOTS names; none without
// that. how is chromedp.CaptureScreenshot, or chromedp.FullScreenshot of quality 100.
func (b *Browser) Shot(name string, how chromedp.Action[[]byte]) {
	b.t.Helper()
	dir := os.Getenv("GLEAM_SHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(b.Context, how)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644)
	}
	if err != nil {
		b.t.Errorf("screenshot %s: %v", name, err)
	}
}
