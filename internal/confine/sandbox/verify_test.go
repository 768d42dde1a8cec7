// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"strings"
	"testing"
)

const status = `Name:	gleamd
Uid:	990	990	990	990
Groups:	 
CapInh:	0000000000000000
CapPrm:	0000008000001000
CapEff:	0000008000001000
CapBnd:	0000000000000000
CapAmb:	0000000000000000
NoNewPrivs:	1
Seccomp:	2
`

// A thread with more than is left to it is found, whatever it has more.
func TestCheckStatus(t *testing.T) {
	l := Limits{UID: 990, GID: 980, Capabilities: []int{12, 39}}
	if err := checkStatus(status, l, 0, true); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(status), "\n")[1:] {
		key, _, _ := strings.Cut(line, ":")
		more := strings.NewReplacer("0\n", "8\n", " \n", "0 \n", "1\n", "0\n", "2\n", "0\n").Replace(line + "\n")
		if err := checkStatus(strings.Replace(status, line+"\n", more, 1), l, 0, true); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", more, err)
		}
		if err := checkStatus(strings.Replace(status, line+"\n", "", 1), l, 0, true); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("without %q: %v", line, err)
		}
	}
}
