// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/internal/cli/port"
)

// TestSwitchForgets: a switch without state starts again in the middle of a test. The test begins anew, with
// the same receivers, and comes to its end.
func TestSwitchForgets(t *testing.T) {
	n := newNet4(t)
	var starts, again atomic.Int32
	restarted := make(chan struct{})
	o := &SendOptions{Params: Defaults(WriteBW), OnAgain: func(err error) {
		again.Add(1)
		if !errors.Is(err, errAgain) {
			t.Error(err)
		}
	}}
	o.GroupIP, o.Size, o.Duration, o.Verify = groupAddr, 4096, 2*time.Second, true
	o.onStart = func() {
		if starts.Add(1) > 1 {
			return
		}
		time.AfterFunc(500*time.Millisecond, func() {
			defer close(restarted)
			n.stop()
			n.start(t)
		})
	}
	listeners, err := n.sendWith(deadline(t), t, o, 2, Local{Backend: port.Soft, QPTimeout: 14, Timeout: 10 * time.Second})
	<-restarted
	if err != nil {
		t.Errorf("sender: %v", err)
	}
	for i, e := range listeners {
		if e != nil {
			t.Errorf("receiver %d: %v", i+1, e)
		}
	}
	if starts.Load() != 2 || again.Load() != 1 {
		t.Errorf("%d runs, the test began anew %d times", starts.Load(), again.Load())
	}
}

// TestSwitchGone: a switch ends in the middle of a test, and none comes. The sender says that it is the switch
// that does not answer.
func TestSwitchGone(t *testing.T) {
	n := newNet4(t)
	o := &SendOptions{Params: Defaults(WriteBW)}
	o.GroupIP, o.Duration = groupAddr, time.Minute
	o.onStart = func() { n.stop() }
	_, err := n.sendWith(deadline(t), t, o, 2, Local{Backend: port.Soft, QPTimeout: 20, Timeout: 1500 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "programs answer, but the switch does not") || strings.Contains(err.Error(), "group show") {
		t.Errorf("sender: %v", err)
	}
}

// TestAnewIsSaidOnce: a receiver that hears why the test begins anew says so, and that it does, once.
func TestAnewIsSaidOnce(t *testing.T) {
	here, there := net.Pipe()
	sender, receiver := newControl(here, "receiver", func(error) {}), newControl(there, "sender", func(error) {})
	defer sender.close()
	defer receiver.close()
	go sender.fail(fmt.Errorf("the switch has started again: %w", errAgain))
	_, err := receiver.receive(deadline(t), typeReady)
	if !errors.Is(err, errAgain) || strings.Count(err.Error(), errAgain.Error()) != 1 || !strings.Contains(err.Error(), "the switch has started again") {
		t.Errorf("%v", err)
	}
}
