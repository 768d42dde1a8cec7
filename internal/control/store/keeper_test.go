// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
)

// TestStartedEvent: the event of the start says what is known of the time before.
func TestStartedEvent(t *testing.T) {
	groups := &statefile.State{}
	groups.Groups = map[netip.Addr]*statefile.Group{netip.MustParseAddr("10.77.254.1"): nil, netip.MustParseAddr("10.77.254.2"): nil}
	for want, k := range map[string]*Keeper{
		"gleamd 1.2: the configuration has no key state, so groups end with gleamd": nil,
		"gleamd 1.2: there was no state file":                                       {found: &statefile.Found{New: true, State: &statefile.State{}}},
		"gleamd 1.2: the state file has groups of before: 2":                        {found: &statefile.Found{State: groups}},
		"gleamd 1.2: the state file was damaged, so groups of before are lost; it is f.damaged now": {
			found: &statefile.Found{Damaged: errors.New("bad"), DamagedFile: "f.damaged", State: &statefile.State{}}},
	} {
		if e := k.StartedEvent(api.Version{Version: "1.2", Commit: "unknown"}); e.Kind != api.EventStarted || e.Reason != want {
			t.Errorf("%+v, want %s", e, want)
		}
	}
}

// keeperAt opens a state file, and returns what was said of it: false for a notice, true for a warning.
func keeperAt(t *testing.T, path string) (k *Keeper, said []bool) {
	t.Helper()
	k, err := OpenKeeper(path, 0, time.Millisecond, func(warn bool, _ string, _ ...any) { said = append(said, warn) })
	if err != nil {
		t.Fatal(err)
	}
	return k, said
}

// The epochs of groups without a record grow, also over restarts and where the clock has gone back. A file
// that is not as it was written is told of.
func TestKeeperOverRestarts(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "state")
	last := uint64(time.Now().UnixMilli())
	const late = 1 << 60
	for _, x := range []struct {
		name   string
		change func([]byte) []byte
		said   []bool
		epoch  uint64 // the epoch that is returned; 0: any
	}{
		{"no file", nil, nil, 0},
		{"the file", nil, nil, 0},
		{"a clock that has gone back", nil, nil, late + 1},
		{"a torn file", func(b []byte) []byte { return b[:len(b)-1] }, []bool{false}, 0},
		{"a damaged file", func(b []byte) []byte { b[len(b)/2]++; return b }, []bool{true}, 0},
	} {
		if x.change != nil {
			b, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, x.change(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			last = 0
		}
		k, said := keeperAt(t, path)
		if !slices.Equal(said, x.said) {
			t.Errorf("%s: warnings %v, want %v", x.name, said, x.said)
		}
		if x.epoch != 0 {
			k.found.State.Switch.EpochBase = late
		} else if x.change == nil && x.name != "no file" && k.Before().Switch.EpochBase != last {
			t.Errorf("%s: its epoch is %d, not %d", x.name, k.Before().Switch.EpochBase, last)
		}
		base := k.EpochBase()
		if base <= last && x.name != "no file" || base < last || x.epoch != 0 && base != x.epoch {
			t.Errorf("%s: epoch %d after %d", x.name, base, last)
		}
		last = base
		if err := k.Flush(); err != nil {
			t.Fatal(err)
		}
		<-k.Bell()
		if stored, failing, news := k.Look(); stored == 0 || stored != k.Stored() || failing || k.Failing() || news != nil {
			t.Errorf("%s: stored %d, failing %t, %+v", x.name, stored, failing, news)
		}
		k.failing = true
		for _, want := range []bool{true, false} {
			if _, _, news := k.Look(); (news != nil && news.Kind == api.EventStorage && news.Reason == "the state file is written again") != want {
				t.Errorf("%s: the file is written again: %+v", x.name, news)
			}
		}
		if k.ForgetBefore(); k.found != nil {
			t.Errorf("%s: the state of before is kept", x.name)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	if k, err := OpenKeeper(filepath.Join(path, "state"), 0, time.Millisecond, func(bool, string, ...any) {}); err == nil {
		t.Errorf("%+v", k)
	}
}

// A switch that keeps nothing waits for nothing.
func TestNoKeeper(t *testing.T) {
	var k *Keeper
	if k.Stored() != math.MaxUint64 || k.Failing() || k.Bell() != nil || k.Close() != nil {
		t.Error("it waits for a file")
	}
	if now, base := uint64(time.Now().UnixMilli()), k.EpochBase(); base < now || base > now+60_000 {
		t.Errorf("epoch %d at %d", base, now)
	}
}
