// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/test/certs"
)

// TestByteOrderMark: files that an editor has saved with a byte order mark, or with line ends of
// Windows, are read as others are: the configuration, files of secrets, the page's token, certificates and their keys.
func TestByteOrderMark(t *testing.T) {
	const mark = "\ufeff"
	dir := t.TempDir()
	secret := fmt.Sprintf("%x", sha256.Sum256([]byte(dir)))
	text := "ports: [{name: eth1}, {name: eth2}]\ngroup_prefixes: [10.77.254.0/24]\nenvelope:\n  keys: [{id: 1, secret_file: gleam.key}]\n" +
		"web: {listen: \"10.0.0.1:80\", token_file: gleam.key, certificate: cert.pem, key: cert.key, ca: ca.pem}\n"
	authority := certs.New(t)
	certificate, private := authority.Issue(certs.Want{Name: "s", Server: netip.MustParseAddr("10.0.0.1")})
	pem := map[string]string{"cert.pem": certificate, "cert.key": private, "ca.pem": authority.File}
	for name, source := range pem {
		b, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		pem[name] = string(b)
	}
	for name, change := range map[string]func(string) string{
		"a mark":             func(s string) string { return mark + s },
		"CR LF":              func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"a mark and CR LF":   func(s string) string { return mark + strings.ReplaceAll(s, "\n", "\r\n") },
		"neither of the two": func(s string) string { return s },
	} {
		if err := os.WriteFile(filepath.Join(dir, "gleam.key"), []byte(change(secret+"\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, text := range pem {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(change(text)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(dir, "gleamd.yaml")
		if err := os.WriteFile(file, []byte(change(text)), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(file)
		if err != nil || len(c.Ports) != 2 || c.Ports[1].Name != "eth2" || len(c.Envelope.Keys) != 1 || !bytes.Equal(c.Web.Token.Bytes(), c.Envelope.Keys[0].Secret.Bytes()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
