// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
)

var programs = labtest.Programs{Packages: []string{"../../cmd/gleam", "../../cmd/gleam-lab", "../../cmd/gleamd"}}

func TestMain(m *testing.M) { os.Exit(programs.Run(m)) }

// options are the defaults, for a test.
func options(t *testing.T) Options {
	o := Default()
	o.Gleamd, o.Timeout, o.FastPath = programs.Path(t, "gleamd"), time.Minute, labtest.FastPath()
	return o
}

// TestRun does the whole demo, small, in its variants.
func TestRun(t *testing.T) {
	labtest.Require(t)
	for name, change := range map[string]func(*Options){
		"write":         func(*Options) {},
		"write-imm":     func(o *Options) { o.Op = "write-imm" },
		"send":          func(o *Options) { o.Op = "send" },
		"loss":          func(o *Options) { o.Members, o.Loss, o.Op = 8, 0.01, "send" },
		"IPv6":          func(o *Options) { o.IPv6 = true },
		"mtu 2048":      func(o *Options) { o.MTU = 2048 },
		"mtu 4096":      func(o *Options) { o.MTU = 4096 },
		"mtu 512, IPv6": func(o *Options) { o.MTU, o.IPv6 = 512, true },
		"tiny messages": func(o *Options) { o.Members, o.MTU, o.MessageSize, o.Size = 2, 256, 100, 20_000 },
		"one byte":      func(o *Options) { o.Size = 1 },
		"a file":        func(o *Options) { o.File = "run_test.go" },
		"rotation":      func(o *Options) { o.Rotate, o.Members = 1, 3 },
		"fast path":     func(o *Options) { o.FastPath, o.Size = true, 4<<20 },
		"fast path, lossy rotation": func(o *Options) {
			o.FastPath, o.Rotate, o.Members, o.Size, o.Loss = true, 1, 3, 4<<20, 0.005
		},
		"fast path, mtu 4096": func(o *Options) { o.FastPath, o.MTU, o.Size = true, 4096, 16<<20 },
		"target messages":     func(o *Options) { o.Targets, o.MessageSize = true, 8192 },
		"target messages, lossy": func(o *Options) {
			o.Targets, o.MessageSize, o.Loss, o.Op, o.IPv6 = true, 8192, 0.01, "write-imm", true
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			o.Size, o.MessageSize = 300_000, 40_000
			if o.FastPath {
				o.Size = 4 << 20 // it begins when some data has come
			}
			change(&o)
			say := labtest.NewOutput("")
			res, err := Run(t.Context(), o, &progress{w: say})
			if err != nil {
				t.Fatalf("%v\n%s", err, say)
			}
			check(t, &o, res)
			nothingLeft(t, os.Getpid())
		})
	}
}

// check checks res against o.
func check(t *testing.T, o *Options, res *Result) {
	t.Helper()
	n := int64(o.Members - 1)
	labtest.CountFast(res.Switch.FastRx)
	slow := "" // why a group never takes the fast path
	if o.Targets {
		slow = "registered with target messages"
	}
	if fast := o.FastPath && slow == ""; o.Size >= 4<<20 && o.File == "" && fast != (res.Switch.FastRx > 0) {
		t.Errorf("fast path %v, and XDP has replicated %d packets", fast, res.Switch.FastRx)
	}
	if o.FastPath && slow != "" && !strings.Contains(res.Switch.FastReason, slow) {
		t.Errorf("the fast path is not taken for %q, want %q", res.Switch.FastReason, slow)
	}
	if o.File == "" && o.Rotate == 0 && res.PayloadBytes != o.Size {
		t.Errorf("%d bytes, want %d", res.PayloadBytes, o.Size)
	}
	if !res.OK || o.Rotate == 0 && (len(res.Receivers) != int(n) || !res.Unicast.OK) {
		t.Errorf("not ok: %+v", res)
	}
	if o.Rotate > 0 {
		if len(res.Turns) != o.Rotate*o.Members {
			t.Errorf("%d turns", len(res.Turns))
		}
		return
	}
	for _, v := range res.Receivers {
		if !v.OK || v.Bytes != res.PayloadBytes || v.SHA256 != res.SHA256 {
			t.Errorf("receiver: %+v", v)
		}
	}
	if want := (res.PayloadBytes + o.MessageSize - 1) / o.MessageSize; int64(res.Messages) != want {
		t.Errorf("%d messages, want %d", res.Messages, want)
	}
	if int64(res.Switch.Copies) < n*(res.PayloadBytes/int64(o.MTU)) || res.Switch.FeedbackIn == 0 || res.Switch.FeedbackOut == 0 {
		t.Errorf("the switch: %+v", res.Switch)
	}
	if o.Loss > 0 || res.PayloadBytes < 100_000 {
		return // retransmissions, or mostly headers
	}
	// Headers are at most 14+40+8+12+16+4+4 bytes a packet; other frames on the link are
	// few. What a slow machine has the sender send again is counted.
	packets := res.PayloadBytes/int64(o.MTU) + int64(res.Messages)
	again := int64(res.SenderRetransmitted)
	if all := res.PayloadBytes + packets*98 + again*int64(o.MTU+98); float64(res.SenderLinkBytes) > 1.1*float64(all) {
		t.Errorf("%d bytes on the sender's link, want at most 1.1 times %d", res.SenderLinkBytes, all)
	}
	if ratio := float64(res.UnicastSenderLinkBytes) / float64(res.PayloadBytes); ratio < 0.96*float64(n) {
		t.Errorf("unicasts take %.2f times the payload, want %d or more", ratio, n)
	}
}

// nothingLeft checks that a demo of process pid has cleaned up.
func nothingLeft(t *testing.T, pid int) {
	t.Helper()
	for _, p := range []string{
		filepath.Join(runDir, fmt.Sprintf("run-%d", pid)), keptDir(fmt.Sprintf("demo%d", pid)), fmt.Sprintf("/run/netns/demo%d-sw", pid),
	} {
		if _, err := os.Stat(p); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", p, err)
		}
	}
}

// Cancelled in the middle of a transfer, as by Ctrl-C, the demo ends soon, reports that
// it was cancelled, and leaves no state.
func TestCancel(t *testing.T) {
	labtest.Require(t)
	o := Default()
	o.Size, o.Loss, o.Gleamd = 64<<20, 0.2, programs.Path(t, "gleamd") // much longer than the test waits
	labtest.Cancel(t, "registered", func(ctx context.Context, say *labtest.Output) error {
		_, err := Run(ctx, o, &progress{w: say})
		return err
	})
	nothingLeft(t, os.Getpid())
}

// A file that cannot be sent is named before anything is built.
func TestFileErrors(t *testing.T) {
	labtest.Require(t)
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{empty, filepath.Join(dir, "missing"), dir} {
		o := Default()
		o.File = name
		say := labtest.NewOutput("")
		_, err := Run(t.Context(), o, &progress{w: say})
		if err == nil || !strings.Contains(err.Error(), "--file") || !strings.Contains(err.Error(), name) || say.String() != "" {
			t.Errorf("%s: %v, after %q", name, err, say)
		}
	}
	o := Default()
	o.Gleamd = filepath.Join(dir, "no-gleamd")
	if _, err := Run(t.Context(), o, &progress{w: labtest.NewOutput("")}); err == nil || !strings.Contains(err.Error(), o.Gleamd) {
		t.Errorf("no daemon: %v", err)
	}
	nothingLeft(t, os.Getpid())
}

// A receiver that dies during a transfer: under evict and quorum the others get
// everything; under strict the sender gets its error on the first message that the dead
// receiver lacks, and the others have all before.
func TestKillMember(t *testing.T) {
	labtest.Require(t)
	for _, policy := range []string{"evict", "quorum:2", "strict"} {
		t.Run(policy, func(t *testing.T) {
			o := options(t)
			o.Size, o.MessageSize = 2<<20, 20_000
			o.Policy, o.KillMember = policy, "C"
			say := labtest.NewOutput("")
			res, err := Run(t.Context(), o, &progress{w: say})
			if err != nil {
				t.Fatalf("%v\n%s", err, say)
			}
			k := res.Killed
			labtest.CountFast(res.Switch.FastRx)
			if !res.OK || k == nil || k.Member != "h3" || len(res.Receivers) != 2 {
				t.Fatalf("%+v, killed %+v", res, k)
			}
			if failed := k.Error != ""; failed != (policy == "strict") || failed != (k.Completed < 105) {
				t.Errorf("%+v", k)
			}
			if policy == "strict" && !strings.HasPrefix(k.Switch, "10.77.0.3: silent for dead_after") {
				t.Errorf("the switch explains the failure by %q", k.Switch)
			}
			if k.StallMS > 5000 {
				t.Errorf("stalled for %v ms", k.StallMS)
			}
		})
	}
}
