// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
)

// sane returns a valid registration with all fields set.
func sane() *api.Register {
	w := func(va uint64) *api.Window { return &api.Window{VA: va, Len: 4096, RKey: 0xDEADBEEF} }
	return &api.Register{
		Group: netip.MustParseAddr("10.77.254.1"), QPN: 0x1234, PMTU: 2048, Policy: "evict", DeadAfterMS: 100, Window: w(0),
		Members: []api.RegisterMember{
			{IP: netip.MustParseAddr("10.77.0.1"), QPN: 0x10, SQPSN: 0xFFFFFF, RQPSN: 0, Window: w(1 << 40)},
			{IP: netip.MustParseAddr("10.77.0.2"), QPN: 0xFFFFFE, SQPSN: 0, RQPSN: 0xFFFFFF, Window: w(1<<64 - 4096)},
			{IP: netip.MustParseAddr("10.77.0.3"), QPN: 0x11, SQPSN: 1, RQPSN: 1, Window: w(0)},
		},
	}
}

func TestValidate(t *testing.T) {
	if err := sane().Validate(); err != nil {
		t.Fatal(err)
	}
	ip := netip.MustParseAddr
	for _, tt := range []struct {
		name, want string
		change     func(*api.Register)
	}{
		{"one may only send", "", func(r *api.Register) { r.Members[1].Window = nil }},
		{"no windows", "", func(r *api.Register) {
			r.Window = nil
			for i := range r.Members {
				r.Members[i].Window = nil
			}
		}},
		{"no group", "group: missing", func(r *api.Register) { r.Group = netip.Addr{} }},
		{"multicast", "group: 224.0.0.1 is an IP multicast", func(r *api.Register) { r.Group = ip("224.0.0.1") }},
		{"multicast v6", "group: ff0e::1 is an IP multicast", func(r *api.Register) { r.Group = ip("ff0e::1") }},
		{"broadcast", "group: 255.255.255.255 is the broadcast", func(r *api.Register) { r.Group = ip("255.255.255.255") }},
		{"zone", "group: fe80::1%x has a zone", func(r *api.Register) { r.Group = ip("fe80::1%x") }},
		{"mapped", "write 10.0.0.1", func(r *api.Register) { r.Group = ip("::ffff:10.0.0.1") }},
		{"qpn of GSI", "qpn: 0x1 is no", func(r *api.Register) { r.QPN = 1 }},
		{"qpn of multicast", "qpn: 0xffffff is no", func(r *api.Register) { r.QPN = 0xFFFFFF }},
		{"pmtu", "path_mtu: 1500: want 256, 512, 1024, 2048 or 4096", func(r *api.Register) { r.PMTU = 1500 }},
		{"policy", `policy: "lax"`, func(r *api.Register) { r.Policy = "lax" }},
		{"one member", "members: 1 given", func(r *api.Register) { r.Members = r.Members[:1] }},
		{"many members", "members: 4097 given", func(r *api.Register) { r.Members = make([]api.RegisterMember, 4097) }},
		{"empty window", "window.len: missing or 0", func(r *api.Register) { r.Window.Len = 0 }},
		{"window past the end", "window.len: 4097 reaches past", func(r *api.Register) { *r.Window = api.Window{VA: 1<<64 - 4096, Len: 4097} }},
		{"member unspecified", "members[1].ip: 0.0.0.0 is the unspecified", func(r *api.Register) { r.Members[1].IP = ip("0.0.0.0") }},
		{"member loopback", "members[1].ip: 127.0.0.1 is a loopback", func(r *api.Register) { r.Members[1].IP = ip("127.0.0.1") }},
		{"family", "members[2].ip: fd00::1 is of another address family", func(r *api.Register) { r.Members[2].IP = ip("fd00::1") }},
		{"member is group", "members[0].ip: 10.77.254.1 is the group's own", func(r *api.Register) { r.Members[0].IP = r.Group }},
		{"twice", "members[2].ip: 10.77.0.1 is a member already", func(r *api.Register) { r.Members[2].IP = r.Members[0].IP }},
		{"member qpn", "members[0].qpn: 0x1000000 is no", func(r *api.Register) { r.Members[0].QPN = 1 << 24 }},
		{"sq_psn", "members[0].sq_psn: 0x1000000 does not fit", func(r *api.Register) { r.Members[0].SQPSN = 1 << 24 }},
		{"rq_psn", "members[1].rq_psn: 0x1000000 does not fit", func(r *api.Register) { r.Members[1].RQPSN = 1 << 24 }},
		{"two windows missing", "members[2].window: missing, as that of 10.77.0.1 is", func(r *api.Register) { r.Members[0].Window, r.Members[2].Window = nil, nil }},
		{"no group window", "members[0].window: given, but the group has none", func(r *api.Register) { r.Window = nil }},
		{"short window", "members[0].window.len: 4095 is less than the group's 4096", func(r *api.Register) { r.Members[0].Window.Len = 4095 }},
	} {
		r := sane()
		tt.change(r)
		err := r.Validate()
		var fe *api.FieldError
		switch {
		case tt.want == "" && err == nil:
		case tt.want == "" || err == nil || !strings.Contains(err.Error(), tt.want) || !errors.As(err, &fe):
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		case strings.Contains(strings.ToLower(err.Error()), "deadbeef"):
			t.Errorf("%s: %v shows an R_Key", tt.name, err)
		}
	}
}

// FuzzRegister: decoding never panics, and an accepted Register is valid by rules
// written down here a second time, and survives being sent again.
func FuzzRegister(f *testing.F) {
	b, err := json.Marshal(sane())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(saneJSON))
	f.Add([]byte(strings.NewReplacer("10.77.254.", "fd77::fe:", "10.77.0.", "fd77::").Replace(saneJSON)))
	f.Add([]byte(`{"group":"10.0.0.1","qpn":16777216,"path_mtu":-1,"members":[null,{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := api.DecodeRegister(bytes.NewReader(data))
		if err != nil {
			if r != nil {
				t.Fatalf("both %+v and %v", r, err)
			}
			return
		}
		if why := insane(r); why != "" {
			t.Fatalf("%s passed: %s", data, why)
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if r2, err := api.DecodeRegister(bytes.NewReader(again)); err != nil || !reflect.DeepEqual(r, r2) {
			t.Fatalf("%s\nbecame %+v\nthen %+v, %v", data, r, r2, err)
		}
	})
}

func policyOK(r *api.Register) bool {
	if r.Policy == "strict" {
		return r.LagMS == 0 && r.LagPSNs == 0
	}
	var k int
	if n, _ := fmt.Sscanf(r.Policy, "quorum:%d", &k); n == 1 {
		return k >= 1 && k < len(r.Members)
	}
	return r.Policy == "evict"
}

func insane(r *api.Register) string {
	pmtus := map[int]bool{256: true, 512: true, 1024: true, 2048: true, 4096: true}
	if !pmtus[r.PMTU] || r.QPN < 0x10 || r.QPN >= 0xFFFFFF || len(r.Members) < 2 || !policyOK(r) {
		return "group"
	}
	addrs := map[netip.Addr]bool{r.Group: true}
	windows := 0
	for i, m := range r.Members {
		addrs[m.IP] = true
		if m.IP.BitLen() != r.Group.BitLen() || m.QPN < 0x10 || m.QPN >= 0xFFFFFF || m.SQPSN>>24 != 0 || m.RQPSN>>24 != 0 {
			return fmt.Sprintf("member %d", i)
		}
		if m.Window != nil {
			windows++
			if r.Window == nil || m.Window.Len < r.Window.Len || m.Window.VA+m.Window.Len-1 < m.Window.VA {
				return fmt.Sprintf("window of member %d", i)
			}
		}
	}
	for a := range addrs {
		if a.IsMulticast() || a.IsUnspecified() || a.IsLoopback() || a.Zone() != "" || a.Is4In6() || !a.IsValid() {
			return "address"
		}
	}
	if len(addrs) != len(r.Members)+1 {
		return "addresses not distinct"
	}
	if r.Window != nil && (r.Window.Len == 0 || windows < len(r.Members)-1) {
		return "windows"
	}
	return ""
}

// Every parameter of a group can be set in a Register.
func TestRegisterHasAllParams(t *testing.T) {
	r := api.Register{QPN: 0x99, PMTU: 4096, Policy: "quorum:3", DeadAfterMS: 100, LagPSNs: 64, LagMS: 1000, SenderTimeout: 15, SenderRetries: 6}
	p, err := r.Params()
	if err != nil {
		t.Fatal(err)
	}
	for v, i := reflect.ValueOf(p), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s is lost", v.Type().Field(i).Name)
		}
	}
}
