// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Rights by user, and the missing right in a refusal.
func TestAccess(t *testing.T) {
	own := uint32(os.Geteuid())
	change, read := &UserGroup{"gleam", 900}, &UserGroup{"adm", 4}
	for _, tt := range []struct {
		name                string
		access              Access
		peer                Peer
		role                role
		get, post           bool
		getLacks, postLacks string
	}{
		{"root", Access{Change: change, Read: read}, Peer{UID: 0}, owner, true, true, "", ""},
		{"gleamd's own user", Access{Change: change, Read: read}, Peer{UID: own}, owner, true, true, "", ""},
		{"a member by its primary group", Access{Change: change, Read: read}, Peer{UID: 1000, GID: 900}, operator, true, true, "", ""},
		{"a member by another group", Access{Change: change, Read: read}, Peer{UID: 1000, GID: 1000, Groups: []uint32{7, 900}}, operator, true, true, "", ""},
		{"a reader", Access{Change: change, Read: read}, Peer{UID: 1000, Groups: []uint32{4}}, reader, true, false, "", "usermod -aG gleam USER"},
		{"neither", Access{Change: change, Read: read}, Peer{UID: 1000}, stranger, false, false, "usermod -aG adm USER", "members of group gleam"},
		{"anybody", Access{Change: change}, Peer{UID: 1000}, reader, true, false, "", "uid 1000 may not change here; changes are for root, uid "},
		{"anybody without groups", Access{}, Peer{UID: 1000}, reader, true, false, "", "use sudo"},
		{"a certificate", Access{}, Peer{Name: "ann"}, reader, true, false, "", `certificate "ann" may not change here: api.operators`},
		{"an operator's certificate", Access{Operators: []string{"bob", "ann"}}, Peer{Name: "ann"}, operator, true, true, "", ""},
		{"a certificate of root's name", Access{Read: read}, Peer{Name: "root"}, reader, true, false, "", `certificate "root" may not change`},
		{"nobody's group", Access{Change: nil, Read: read}, Peer{UID: 1000, GID: 0}, stranger, false, false, "may not read", "may not change"},
	} {
		r := tt.access.role(&tt.peer)
		if r != tt.role {
			t.Errorf("%s: role %d, want %d", tt.name, r, tt.role)
		}
		for method, want := range map[string]struct {
			may   bool
			lacks string
		}{"GET": {tt.get, tt.getLacks}, "POST": {tt.post, tt.postLacks}, "PUT": {tt.post, tt.postLacks}, "DELETE": {tt.post, tt.postLacks}, "PATCH": {tt.post, tt.postLacks}, "BREW": {tt.post, tt.postLacks}} {
			err := tt.access.refusal(&tt.peer, r, method)
			if (err == nil) != want.may || err != nil && !strings.Contains(err.Error(), want.lacks) {
				t.Errorf("%s: %s: %v, want %q", tt.name, method, err, want.lacks)
			}
		}
	}
}

// The kernel reports the connecting user, with all groups.
func TestPeerOf(t *testing.T) {
	ln, err := Listen(filepath.Join(t.TempDir(), "s.sock"), 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("unix", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	p, err := peerOf(in)
	if err != nil || p.UID != uint32(os.Geteuid()) || p.GID != uint32(os.Getegid()) || p.PID != int32(os.Getpid()) {
		t.Errorf("%+v, %v", p, err)
	}
	if groups, _ := os.Getgroups(); len(p.Groups) != len(groups) {
		t.Errorf("groups %v, want %v", p.Groups, groups)
	}
}

// A share is bounded in all and for each user, and returns its slots.
func TestShare(t *testing.T) {
	s := newShare(3, 2)
	for i, want := range []bool{true, true, false} {
		if got := s.take("1"); got != want {
			t.Errorf("the %dth of user 1: %v", i, got)
		}
	}
	if !s.take("2") || s.take("3") {
		t.Error("the third in all is not the last")
	}
	done := make(chan bool)
	go func() { done <- s.wait(t.Context(), "1") }()
	s.give("1")
	if !<-done {
		t.Error("what was given back is not taken")
	}
	s.give("1")
	s.give("1")
	s.give("2")
	if s.total != 0 || len(s.byUser) != 0 {
		t.Errorf("left: %d, %v", s.total, s.byUser)
	}
}
