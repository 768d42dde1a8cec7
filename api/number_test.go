// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
	"testing"
)

func TestNumbers(t *testing.T) {
	type numbers struct {
		QPN QPN  `json:"qpn"`
		PSN *PSN `json:"psn,omitempty"`
	}
	for in, want := range map[string]string{
		`{"qpn":17}`:                      `{"qpn":"0x000011"}`,
		`{"qpn":"17","psn":0}`:            `{"qpn":"0x000011","psn":"0x000000"}`,
		`{"qpn":"0x11","psn":"0xFFFFFF"}`: `{"qpn":"0x000011","psn":"0xffffff"}`,
		`{"qpn":"0x000011","psn":null}`:   `{"qpn":"0x000011"}`,
		`{"qpn":4294967295}`:              `{"qpn":"0xffffffff"}`, // DecodeRegister has the bounds
		`{"qpn":4294967296}`:              ``,
		`{"qpn":-1}`:                      ``,
		`{"qpn":1.5}`:                     ``,
		`{"qpn":""}`:                      ``,
		`{"qpn":"0x"}`:                    ``,
		`{"qpn":true}`:                    ``,
		`{"qpn":[1]}`:                     ``,
	} {
		var n numbers
		err := json.Unmarshal([]byte(in), &n)
		if want == "" {
			if err == nil {
				t.Errorf("%s is read as %v", in, n)
			}
			continue
		}
		if out, _ := json.Marshal(n); err != nil || string(out) != want {
			t.Errorf("%s: %s %v, want %s", in, out, err, want)
		}
	}
	if got := fmt.Sprintf("%v %s %d %#x %06X", QPN(17), PSN(18), QPN(19), PSN(20), QPN(0xab)); got != "0x000011 0x000012 19 0x14 0000AB" {
		t.Error(got)
	}
}
