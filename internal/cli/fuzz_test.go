// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"reflect"
	"strings"
	"testing"
)

// FuzzRegisterFlags parses arbitrary flags of group register: accepted ones are valid,
// and the errors of others show no well-formed R_Key.
func FuzzRegisterFlags(f *testing.F) {
	const member = "ip=10.77.0.1,qpn=17,sq-psn=0,rq-psn=0xff"
	const rkey = "0xdeadbeef"
	f.Add("10.77.254.1", "1024", "evict", "va=0x1000,len=4096,rkey=1", "100ms", "on", member, member+",va=1,len=4096,rkey=1")
	f.Add("fd77::1", "0x400", "quorum:1", "", "never", "off", member, "ip=fd77::9,qpn=0x20,sq-psn=1,rq-psn=1")
	f.Add("x", "", "strict", "va=1", "1s", "", "ip=,qpn", "=,,=")
	f.Fuzz(func(t *testing.T, group, pmtu, policy, window, deadAfter, repair, one, two string) {
		flags := registerFlags{
			group: group, qpn: "0x676c6d", pmtu: pmtu, policy: policy, window: window, deadAfter: deadAfter,
			lagPSNs: "0", timeout: "14", retries: "7", repair: repair, members: []string{one, two},
		}
		r, err := flags.parse()
		if err == nil {
			if r.Validate() != nil || len(r.Members) != 2 {
				t.Fatalf("%+v is accepted as %+v", flags, r)
			}
			return
		}
		for _, c := range []struct{ flag, word string }{{"window", window}, {"member", one}, {"member", two}} {
			if fields, e := parseFields(c.word, nil, append(memberKeys, windowKeys...)); e == nil && reflect.DeepEqual(fields["rkey"], rkey) &&
				strings.Contains(err.Error(), rkey) {
				t.Fatalf("--%s %s: the error shows the R_Key: %v", c.flag, c.word, err)
			}
		}
	})
}
