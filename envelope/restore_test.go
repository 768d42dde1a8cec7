// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// A registrar that starts again goes on with what was saved: the lease begins anew, old epochs
// and the numbers of former members stay refused, a member may leave.
func TestRestoredGroup(t *testing.T) {
	w := newWorld(t, RegistrarConfig{})
	reg := sample(1, 4)
	for _, rec := range reg.Members {
		w.addMember(t, rec, reg)
	}
	w.startMaster(t, "A", MasterConfig{Local: masterAddr, Auth: testAuth(), Deadline: 2 * time.Second}, reg)
	w.run(time.Second)
	var out Output
	w.sw.MemberEvicted(w.now, reg.Group, reg.Members[1].Key(), 0, 5, &out)
	saved, ok := w.sw.Saved(reg.Group)
	if !ok || len(saved.Registration.Members) != 3 || len(saved.Former) != 1 || saved.Former[0].PSN != 5 {
		t.Fatalf("%v: %+v", ok, saved)
	}
	cfg := RegistrarConfig{Secret: [SecretLen]byte{1}, Prefixes: w.sw.cfg.Prefixes, Auth: w.sw.auth, EpochBase: 7}
	fresh := func() *Registrar {
		r, err := NewRegistrar(cfg, w.sw.table)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := fresh()
	if err := r.Restore(time.Hour, &saved); err != nil {
		t.Fatal(err)
	}
	if again, ok := r.Saved(reg.Group); !ok || !reflect.DeepEqual(again, saved) {
		t.Errorf("restored as\n%+v, want\n%+v", again, saved)
	}
	if _, until, _ := r.Group(reg.Group); until != time.Hour+saved.Registration.Lease {
		t.Errorf("the lease ends at %v", until)
	}
	if n := r.Newest(reg.Group); n != saved.Registration.Epoch {
		t.Errorf("newest epoch %d", n)
	}
	if r.groups[reg.Group].gone[reg.Members[1].Key()].body.EndReason != Evicted {
		t.Error("the evicted member is forgotten")
	}
	r.RestoreEpoch(reg.Group, 1<<40)
	if n := r.Newest(reg.Group); n != 1<<40 {
		t.Errorf("newest epoch %d after RestoreEpoch", n)
	}
	for what, change := range map[string]func(r *Registrar, s *SavedGroup){
		"registered already": func(r *Registrar, s *SavedGroup) { _ = r.Restore(0, s) },
		"key 99":             func(_ *Registrar, s *SavedGroup) { s.Key = 99 },
		"epochs of":          func(_ *Registrar, s *SavedGroup) { s.Joined = nil },
		"group_prefix":       func(r *Registrar, _ *SavedGroup) { r.cfg.Prefixes = nil },
	} {
		r, s := fresh(), saved
		change(r, &s)
		if err := r.Restore(0, &s); err == nil || !strings.Contains(err.Error(), what) && what != "group_prefix" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
