// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"reflect"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// Every parameter of a group can be set in a MasterConfig, and has its default.
func TestMasterConfigHasAllParams(t *testing.T) {
	full := MasterConfig{
		VirtualQPN: 0x99, PathMTU: 4096, Policy: mcast.Quorum, Quorum: 3, DeadAfter: time.Second, LagPSNs: 64, LagTime: time.Minute,
		SenderTimeout: 15, SenderRetries: 6,
	}
	p, v := full.params(), reflect.Value{}
	if v = reflect.ValueOf(p); v.NumField() != 9 {
		t.Errorf("a group has %d parameters: set the new ones here, in the API, the command line, gleam.h and the wire format", v.NumField())
	}
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s is lost", v.Type().Field(i).Name)
		}
	}
	strict := (&MasterConfig{}).params()
	if want := (mcast.GroupParams{QPN: 0x676c6d, PathMTU: 1024, SenderTimeout: 14, SenderRetries: 7}); strict != want {
		t.Errorf("defaults %+v, want %+v", strict, want)
	}
	if p := (&MasterConfig{Policy: mcast.Evict}).params(); p.DeadAfter != 100*time.Millisecond {
		t.Errorf("dead_after %v under evict", p.DeadAfter)
	}
	if p := (&MasterConfig{Policy: mcast.Evict, DeadAfter: -1}).params(); p.DeadAfter != 0 {
		t.Errorf("dead_after %v, want never", p.DeadAfter)
	}
	if p := (&MasterConfig{DeadAfter: -1}).params(); p.DeadAfter != mcast.NeverDead {
		t.Errorf("dead_after %v under strict, want never", p.DeadAfter)
	}
}
