// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/test/certs"
)

// Files that others may read or change, and keys that do not fit, are refused with the reason.
func TestRemoteAPI(t *testing.T) {
	ca := certs.New(t)
	certificate, private := ca.Issue(certs.Want{Name: "s", Server: netip.MustParseAddr("10.0.0.1")})
	_, another := ca.Issue(certs.Want{Name: "x", Client: true})
	copyOf := func(path string, mode os.FileMode) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "copy")
		if err := os.WriteFile(to, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(to, mode); err != nil {
			t.Fatal(err)
		}
		return to
	}
	keys := func(listen, certificate, key, ca string) string {
		return fmt.Sprintf("listen: %q, certificate: %s, key: %s, ca: %s", listen, certificate, key, ca)
	}
	for text, want := range map[string]string{
		"": "",
		keys("10.0.0.1:99", certificate, private, ca.File):                                "",
		keys("[fd00::1]:99", copyOf(certificate, 0o444), copyOf(private, 0o640), ca.File): "",
		keys("10.0.0.1", certificate, private, ca.File):                                   "want an address and a port",
		keys("10.0.0.1:0", certificate, private, ca.File):                                 "want a port from 1 to 65535",
		keys("239.0.0.1:99", certificate, private, ca.File):                               "want a unicast address",
		keys("10.0.0.1:99", certificate, copyOf(private, 0o604), ca.File):                 "may be read or changed by others (mode 0604); run: chmod 0600 ",
		keys("10.0.0.1:99", certificate, copyOf(private, 0o620), ca.File):                 "run: chmod 0600 ",
		keys("10.0.0.1:99", copyOf(certificate, 0o664), private, ca.File):                 "may be changed by others (mode 0664); run: chmod 0644 ",
		keys("10.0.0.1:99", certificate, private, copyOf(ca.File, 0o666)):                 "may be changed by others",
		keys("10.0.0.1:99", certificate, another, ca.File):                                "is not the private key of the first certificate",
		keys("10.0.0.1:99", private, private, ca.File):                                    "has no certificate",
		keys("10.0.0.1:99", certificate, certificate, ca.File):                            "has no private key",
		keys("10.0.0.1:99", certificate, "/dev/null", ca.File):                            "not a regular file",
		keys("10.0.0.1:99", certificate, "/nowhere", ca.File):                             "no such file",
		`listen: "10.0.0.1:99"`:                                                           "needs certificate",
		"key: " + private:                                                                 "has no effect without listen",
		`advertise: "10.0.0.1:99"`:                                                        "has no effect without listen",
		`advertise: "0.0.0.0:99", ` + keys("0.0.0.0:99", certificate, private, ca.File):   "is the address of nobody",
		`operators: [a, a]`: "name is there already",
		`operators: [""]`:   "want the common name",
	} {
		_, err := Parse("f", []byte(minimal+"api: {"+text+"}\n"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for listen, want := range map[string]string{"10.0.0.1:99": "10.0.0.1:99", "0.0.0.0:99": "invalid AddrPort"} {
		c, err := Parse("f", []byte(minimal+"api: {"+keys(listen, certificate, private, ca.File)+"}\n"))
		if err != nil || c.API.Advertise.String() != want {
			t.Errorf("listen %s: advertise %v, %v", listen, c.API.Advertise, err)
		}
		if s := fmt.Sprintf("%v %+v %#v %s", c, c, c.API, c.API.Key); strings.Contains(s, "PRIVATE") {
			t.Errorf("a key is printed: %s", s)
		}
	}
}

// A reload takes new files of the same names, and other operators; the address needs a restart.
func TestRemoteAPIReloads(t *testing.T) {
	ca := certs.New(t)
	issue := func() string {
		certificate, private := ca.Issue(certs.Want{Name: "s", Server: netip.MustParseAddr("10.0.0.1")})
		return fmt.Sprintf("certificate: %s, key: %s, ca: %s", certificate, private, ca.File)
	}
	text := issue()
	parse := func(listen, more string) *Config {
		return mustParse(t, fmt.Sprintf("%sapi: {listen: %q, %s%s}\n", minimal, listen, text, more))
	}
	a := parse("10.0.0.1:99", "")
	if got := changed(a, parse("10.0.0.1:99", "")); got != "" {
		t.Errorf("the same files: %s", got)
	}
	issue()
	if got := changed(a, parse("10.0.0.1:98", ", operators: [ann]")); got != "api.listen! api.advertise! api.certificate api.key api.operators" {
		t.Error(got)
	}
}
