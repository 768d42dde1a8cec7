// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/mcast"
)

// Killed is the result of a transfer in the middle of which a receiver died.
type Killed struct {
	Member    string  `json:"member"`
	Policy    string  `json:"policy"`
	After     int     `json:"after"`     // messages that were complete when it was killed
	Completed int     `json:"completed"` // messages complete in the end
	StallMS   float64 `json:"stall_ms"`  // longest time without a completion after the kill
	Error     string  `json:"error,omitempty"`
	Switch    string  `json:"switch,omitempty"` // why the group failed, in the switch's words
}

// policy parses --policy: strict, evict or quorum:K.
func (o *Options) policy() (p mcast.Policy, quorum int, err error) {
	name, k, counted := strings.Cut(o.Policy, ":")
	switch {
	case name == "strict" && !counted:
		return mcast.Strict, 0, nil
	case name == "evict" && !counted:
		return mcast.Evict, 0, nil
	case name == "quorum" && counted:
		if quorum, err = strconv.Atoi(k); err == nil && quorum >= 1 && quorum < o.Members {
			return mcast.Quorum, quorum, nil
		}
		return 0, 0, fmt.Errorf("--policy %q: want quorum:1 to quorum:%d, the number of receivers", o.Policy, o.Members-1)
	}
	return 0, 0, fmt.Errorf("--policy %q: want strict, evict or quorum:K", o.Policy)
}

// victim parses --kill-member: h3, or C, the third host.
func (o *Options) victim() (int, error) {
	s := o.KillMember
	n, err := strconv.Atoi(strings.TrimPrefix(strings.ToLower(s), "h"))
	if len(s) == 1 && s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z' {
		n, err = int(s[0]|0x20-'a')+1, nil
	}
	if err != nil || n < 2 || n > o.Members {
		return 0, fmt.Errorf("--kill-member %q: want a receiver, B or h2 to h%d", s, o.Members)
	}
	return n - 1, nil
}

// victimKiller ends a host's device when half of the messages are complete, and
// measures the sender's completions from then on.
type victimKiller struct {
	victim *host
	at     int

	mu    sync.Mutex
	done  int
	last  time.Time // the time of the last completion, from the kill on
	stall time.Duration
}

// completed notes one more completion at the sender.
func (k *victimKiller) completed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done++
	now := time.Now()
	switch {
	case k.done == k.at:
		k.victim.Device.Close() // an error does not matter here
		k.last = time.Now()
	case k.done > k.at:
		k.stall = max(k.stall, now.Sub(k.last))
		k.last = now
	}
}

// sendByGroupWithout is the group's transfer during which a receiver is killed. The
// others must have all completed messages: everything under evict and quorum; under
// strict, where the sender gets an error, all messages that completed before.
func (r *run) sendByGroupWithout(ctx context.Context, res *Result) error {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	v, err := r.opts.victim()
	if err != nil {
		return err
	}
	before, err := r.readCounts(ctx)
	if err != nil {
		return err
	}
	k := &victimKiller{victim: r.hosts[v], at: max(1, r.plan.Count()/2)}
	boxes, err := r.inboxes(r.hosts[1:])
	if err != nil {
		return err
	}
	boxes[v-1].killed = true
	bar := r.log.begin("group", r.plan.Len)
	m, err := r.measure(ctx, r.hosts[0], boxes, func() error {
		return r.send(ctx, r.hosts[0], func(n int) { bar.add(n); k.completed() })
	})
	bar.end()
	res.Killed = &Killed{Member: r.hosts[v].Name, Policy: r.opts.Policy, After: k.at, Completed: k.done, StallMS: float64(k.stall.Microseconds()) / 1000}
	policy, _, _ := r.opts.policy()
	var status *endpoint.StatusError
	switch {
	case err == nil && policy == mcast.Strict:
		return fmt.Errorf("policy strict: the sender got all completions although %s was dead", r.hosts[v].Name)
	case err != nil && (policy != mcast.Strict || !errors.As(err, &status) || status.Status != endpoint.RemoteOpErr || int(status.ID) != k.done):
		return r.explain(err)
	case err != nil:
		res.Killed.Error = err.Error()
		res.Killed.StallMS = float64(time.Since(k.last).Microseconds()) / 1000
		if res.Killed.Switch, err = r.failure(ctx); err != nil {
			return err
		}
	}
	after, err := r.readCounts(ctx)
	if err != nil {
		return err
	}
	res.Switch = difference(before, after)
	res.Seconds, res.SenderLinkBytes, res.Messages = m.seconds, m.linkBytes, k.done
	res.SenderRetransmitted = r.hosts[0].group.QP().Stats().Retransmitted
	complete := min(int64(k.done)*r.plan.Message, r.plan.Len)
	for i, h := range r.hosts[1:] {
		if i+1 == v {
			continue
		}
		got := Receiver{Name: h.Name, IP: h.IP.String(), Seconds: m.seconds, SHA256: digest(h.mem)}
		got.Bytes = int64(samePrefix(h.mem, r.data.bytes))
		got.OK = got.Bytes >= complete
		if m.seconds > 0 {
			got.Goodput = float64(got.Bytes) / m.seconds
		}
		res.Receivers = append(res.Receivers, got)
	}
	return nil
}

// failure waits until the switch reports the cause of the group's failure.
func (r *run) failure(ctx context.Context) (string, error) {
	var after uint64
	for {
		es, err := r.client.Events(ctx, after, time.Second)
		if err != nil {
			return "", fmt.Errorf("ask the switch why the group has failed: %w", err)
		}
		for i := range es.Events {
			if e := &es.Events[i]; e.Kind == api.EventFailed && e.Group == r.group {
				return fmt.Sprintf("%s: %s", e.Member, e.Reason), nil
			}
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("the switch does not say why the group has failed: %w", ctx.Err())
		}
		after = es.Last
	}
}

// String describes the rest of the transfer.
func (k *Killed) String() string {
	if k.Error != "" {
		return fmt.Sprintf("ok: %s was killed after %d messages; policy %s: the sender got its error %.0f ms later, on message %d: %s\nthe switch says: %s\nall before have completed, and the other receivers have them",
			k.Member, k.After, k.Policy, k.StallMS, k.Completed, k.Error, k.Switch)
	}
	return fmt.Sprintf("ok: %s was killed after %d messages; policy %s: the other receivers have all %d, longest stall %.0f ms",
		k.Member, k.After, k.Policy, k.Completed, k.StallMS)
}
