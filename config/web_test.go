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

// The page is refused, with line and key, where everybody could read it, and where keys do
// not fit each other.
func TestWeb(t *testing.T) {
	ca := certs.New(t)
	certificate, private := ca.Issue(certs.Want{Name: "s", Server: netip.MustParseAddr("10.0.0.1")})
	_, another := ca.Issue(certs.Want{Name: "x", Client: true})
	token := filepath.Join(t.TempDir(), "token")
	public := filepath.Join(t.TempDir(), "public")
	for path, mode := range map[string]os.FileMode{token: 0o600, public: 0o644} {
		if err := os.WriteFile(path, []byte(goodHex+"\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	tls := func(key string) string { return fmt.Sprintf(`certificate: %s, key: %s`, certificate, key) }
	for text, want := range map[string]string{
		"":                                            "",
		`listen: "127.0.0.1:80"`:                      "",
		`listen: "127.3.0.1:80", names: [A.b-c]`:      "",
		`listen: "[::1]:80"`:                          "",
		`listen: "10.0.0.1:80"`:                       `f:4: web.listen: "10.0.0.1:80": is not a loopback address`,
		`listen: "0.0.0.0:80"`:                        "is not a loopback address",
		`listen: "[::]:80"`:                           "is not a loopback address",
		`listen: "10.0.0.1:80", ` + tls(private):      "is not a loopback address",
		`listen: "10.0.0.1:80", token_file: ` + token: "",
		`listen: "10.0.0.1:80", token_file: ` + token + ", " + tls(private): "",
		`listen: "10.0.0.1:80", ca: ` + ca.File + ", " + tls(private):       "",
		`listen: "10.0.0.1:80", token_file: ` + public:                      "may be read or changed by others",
		`listen: "10.0.0.1:80", token_file: /nowhere`:                       "cannot read the secret: no such file",
		`listen: "10.0.0.1:80", ca: ` + ca.File:                             "f:4: web.ca: needs certificate",
		`listen: "127.0.0.1:80", key: ` + private:                           "f:4: web.key: needs certificate",
		`listen: "127.0.0.1:80", certificate: ` + certificate:               "f:4: web.certificate: needs key",
		`listen: "127.0.0.1:80", ` + tls(another):                           "is not the private key of the first certificate",
		`token_file: ` + token:                                              "has no effect without listen",
		`names: [a]`:                                                        "has no effect without listen",
		`listen: "127.0.0.1:80", names: [10.0.0.1]`:                         "is an address, which needs no entry",
		`listen: "127.0.0.1:80", names: ["a:80"]`:                           "want a DNS name, without a port",
		`listen: "127.0.0.1:80", names: [a, A]`:                             "name is there already",
	} {
		_, err := Parse("f", []byte(minimal+"web: {"+text+"}\n"))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("web: {%s}: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), goodHex[:16]) {
			t.Errorf("the token is in the error: %v", err)
		}
	}
}
