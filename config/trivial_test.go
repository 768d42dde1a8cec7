// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTrivialSecrets: guessable secrets are refused, and no random secret is.
func TestTrivialSecrets(t *testing.T) {
	for says, b := range map[string][]byte{
		"one byte repeated": bytes.Repeat([]byte("k"), 64),
		"pattern of 8":      bytes.Repeat([]byte("password"), 4),
		"pattern of 14":     bytes.Repeat([]byte("correct horse "), 3),
		"pattern of 16":     bytes.Repeat([]byte("0123456789abcdef"), 2),
		"only 2 different":  append(make([]byte, 31), 1),
		"only 3 different":  []byte("aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbc"),
		"counts up":         counting(0, 1),
		"counts up or":      counting(255, 0xFF),
		"counts up or down": counting(7, 0x11),
		"counts":            []byte("abcdefghijklmnopqrstuvwxyz012345"),
		"up or down; draw":  []byte("9876543210zyxwvutsrqponmlkjihgfe"),
		"down":              append(counting(0x40, 3)[:17], 0x99, 0x12, 0xe3, 0x77, 0x01, 0xb8, 0x2c, 0xd5, 0x6a, 0xf0, 0x33, 0x8e, 0x04, 0xc1, 0x5b),
		"has 31 bytes":      make([]byte, 31),
	} {
		if _, err := newSecret(b); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", b, err, says)
		}
	}
	random := rand.NewChaCha8([32]byte{1})
	for range 20_000 {
		b := make([]byte, 32)
		_, _ = random.Read(b)
		if _, err := newSecret(b); err != nil {
			t.Fatalf("%x: %v", b, err)
		}
	}
}

// counting returns 32 bytes that count from first by step.
func counting(first, step byte) (b []byte) {
	for i := range byte(32) {
		b = append(b, first+i*step)
	}
	return b
}

// TestSecretFileOwners: files that others may read or change are refused, with the
// remedy.
func TestSecretFileOwners(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(goodHex+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mode os.FileMode
		uid  int
		says string
	}{
		{0o600, 0, ""}, {0o640, 0, ""}, {0o400, 0, ""}, {0o604, 0, "chmod 0600"}, {0o602, 0, "chmod 0600"}, {0o660, 0, "chmod 0640"}, {0o600, 4711, "chown root"},
	} {
		if os.Geteuid() != 0 && c.uid != 0 {
			continue
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 {
			if err := os.Chown(path, c.uid, 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ReadSecret(path); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says+" "+path) {
			t.Errorf("mode %o, user %d: %v, want %q", c.mode, c.uid, err, c.says)
		}
	}
}

// TestConfigurationsWithSecrets: a configuration in which secrets stand is refused as a file of
// secrets is, with the line of the first and the remedy. One without them may be read by all.
func TestConfigurationsWithSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gleamd.yaml")
	keys := "{keys: [{id: 1, secret: hex:" + goodHex + "}]}"
	hosts := strings.Replace(minimal, "{insecure: true}", keys, 1)
	switches := minimal + "switch: " + keys + "\n"
	for _, c := range []struct {
		text string
		mode os.FileMode
		uid  int
		says string
	}{
		{minimal, 0o644, 0, ""}, {minimal, 0o664, 0, ""}, {minimal, 0o644, 4711, ""},
		{hosts, 0o600, 0, ""}, {hosts, 0o640, 0, ""}, {switches, 0o640, 0, ""},
		{hosts, 0o644, 0, "chmod 0640"}, {hosts, 0o604, 0, "chmod 0600"}, {hosts, 0o660, 0, "chmod 0640"}, {hosts, 0o600, 4711, "chown root"},
		{switches, 0o644, 0, "chmod 0640"}, {switches, 0o640, 4711, "chown root"},
		{strings.Replace(hosts, "hex:", "", 1), 0o644, 0, "chmod 0640"},
	} {
		if os.Geteuid() != 0 && c.uid != 0 {
			continue
		}
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 {
			if err := os.Chown(path, c.uid, 0); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Load(path)
		if (err == nil) != (c.says == "") || err != nil && !(strings.Contains(err.Error(), c.says+" "+path) && strings.Contains(err.Error(), "keys[0].secret: stands in a file that")) {
			t.Errorf("mode %o, user %d: %v, want %q\n%s", c.mode, c.uid, err, c.says, c.text)
		}
		if err != nil && leaks(err.Error()) {
			t.Errorf("the secret is in the error: %v", err)
		}
	}
}
