// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package privilege

import (
	"fmt"
	"os/user"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/config"
)

// Whom gleamd becomes, and that it is never root.
func TestIdentify(t *testing.T) {
	for _, tt := range []struct {
		name       string
		passwd     map[string]string // uid:gid by name
		want       string
		uid, gid   int // the identity of the process
		identity   string
		uidG, gidG int
		err        string
	}{
		{"the system's user", map[string]string{"gleam": "990:980"}, config.UserAuto, 0, 0, "user gleam (uid 990)", 990, 980, ""},
		{"no such user", nil, config.UserAuto, 0, 0, "uid 61797", 61797, 61797, ""},
		{"somebody has that number", map[string]string{"x": "61797:1"}, config.UserAuto, 0, 0, "uid 61798", 61798, 61798, ""},
		{"by name", map[string]string{"switch": "7:8"}, "switch", 0, 0, "user switch (uid 7)", 7, 8, ""},
		{"a name that nobody has", nil, "switch", 0, 0, "", 0, 0, "there is no user switch"},
		{"by number", nil, "4711", 0, 0, "uid 4711", 4711, 4711, ""},
		{"by somebody's number", map[string]string{"switch": "7:8"}, "7", 0, 0, "user switch (uid 7)", 7, 8, ""},
		{"root", map[string]string{"root": "0:0"}, "root", 0, 0, "", 0, 0, "is root"},
		{"root by number", nil, "0", 0, 0, "", 0, 0, "is root"},
		{"root's group", map[string]string{"w": "5:0"}, "w", 0, 0, "", 0, 0, "root's group"},
		{"not started as root", map[string]string{"gleam": "990:980"}, config.UserAuto, 7, 8, "uid 7", 7, 8, ""},
		{"somebody else", map[string]string{"gleam": "990:980"}, "gleam", 7, 8, "", 0, 0, "started as uid 7 and cannot become user gleam (uid 990)"},
		{"itself", map[string]string{"gleam": "990:980"}, "gleam", 990, 980, "user gleam (uid 990)", 990, 980, ""},
	} {
		find := func(match func(name, uid string) bool) (*user.User, error) {
			for name, ids := range tt.passwd {
				uid, gid, _ := strings.Cut(ids, ":")
				if match(name, uid) {
					return &user.User{Username: name, Uid: uid, Gid: gid}, nil
				}
			}
			return nil, fmt.Errorf("unknown user")
		}
		a := accounts{
			byName: func(s string) (*user.User, error) { return find(func(name, _ string) bool { return name == s }) },
			byID:   func(s string) (*user.User, error) { return find(func(_, uid string) bool { return uid == s }) },
		}
		id, err := a.identify(tt.want, tt.uid, tt.gid)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, %v, want %q", tt.name, id, err, tt.err)
			}
			continue
		}
		if err != nil || id.String() != tt.identity || id.UID != tt.uidG || id.GID != tt.gidG {
			t.Errorf("%s: %v (gid %d), %v", tt.name, id, id.GID, err)
		}
	}
}
