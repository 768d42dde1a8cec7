// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/envelope"
)

func hmacOf(t *testing.T, key, data []byte) []string {
	t.Helper()
	h := hmac.New(sha256.New, key)
	h.Write(data)
	derived, err := hkdf.Key(sha256.New, key, nil, "gleam out-of-band exchange 2, Ed25519 seed", 32)
	if err != nil {
		t.Fatal(err)
	}
	return []string{hex.EncodeToString(h.Sum(nil)), hex.EncodeToString(derived)}
}

// sameCodec gives b to both decoders. What both take both write in the same bytes.
func sameCodec(t *testing.T, c *process, keys envelope.Keys, insecure bool, b []byte) {
	t.Helper()
	m, err := envelope.Open(b, keys, insecure)
	want := []string{"D 0"}
	if err != nil {
		want[0] = fmt.Sprintf("D %d", err.(*envelope.ParseError).Drop)
	} else {
		again, err := envelope.Append(nil, &m, keys, m.KeyID)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, hex.EncodeToString(again))
	}
	if got := c.ask("codec %x", b); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%x: in C %q, in Go %q (%v)", b, got, want, err)
	}
}

// TestWire: the messages of envelope's own files of examples, whole and with each byte
// changed, and the inputs that its fuzzing has found.
func TestWire(t *testing.T) {
	c := start(t)
	keys := envelope.Keys{7: []byte(strings.Repeat("\xa5", 32))}
	c.ask("key 7 %x", keys[7])
	golden, err := os.ReadFile("../../../envelope/testdata/wire")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^[0-9a-f]{8}  ([0-9a-f ]{48,49}) `)
	var all [][]byte
	for _, block := range strings.Split(string(golden), "\n\n") {
		var b []byte
		for l := range strings.Lines(block) {
			if f := line.FindStringSubmatch(l); f != nil {
				x, err := hex.DecodeString(strings.ReplaceAll(f[1], " ", ""))
				if err != nil {
					t.Fatal(err)
				}
				b = append(b, x...)
			}
		}
		if b != nil {
			all = append(all, b)
		}
	}
	if len(all) < 13 {
		t.Fatalf("%d messages found", len(all))
	}
	for _, b := range all {
		sameCodec(t, c, keys, false, b)
		for i := range b {
			sameCodec(t, c, keys, false, b[:i])
			x := append([]byte(nil), b...)
			x[i] ^= 1 << (i % 8)
			sameCodec(t, c, keys, false, x)
		}
	}
	// Without MACs, so that the bodies are looked at.
	c.ask("key 0 -")
	for _, b := range append(all, corpus(t)...) {
		if len(b) < 40 {
			continue
		}
		x := append([]byte(nil), b...)
		if x[6] != 0 || x[7] != 0 {
			x = x[:max(36, len(x)-envelope.MACLen)]
		}
		x[6], x[7], x[10], x[11] = 0, 0, byte(len(x)>>8), byte(len(x))
		for i := range x {
			for bit := range 8 {
				y := append([]byte(nil), x...)
				y[i] ^= 1 << bit
				sameCodec(t, c, nil, true, y)
			}
		}
	}
}

// TestPrivateData: the private data of RDMA-CM is that of the examples of package cm.
func TestPrivateData(t *testing.T) {
	c := start(t)
	file, err := os.ReadFile("../../../envelope/cm/testdata/private")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(file)) {
		f := strings.Fields(line)
		if len(f) != 11 || f[0] == "#" {
			continue
		}
		n++
		c.ask("key 7 %x", strings.Repeat("\xa5", 40))
		if n == 5 {
			c.ask("key 0 -")
		}
		if got := c.ask("private %s", strings.Join(f[:10], " ")); got[0] != f[10] {
			t.Errorf("%s: in C %s", line, got[0])
		}
	}
	if n != 5 {
		t.Errorf("%d examples", n)
	}
}

// corpus are the inputs of envelope's FuzzParse.
func corpus(t testing.TB) (all [][]byte) {
	t.Helper()
	files, err := filepath.Glob("../../../envelope/testdata/fuzz/FuzzParse/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var b []byte
		for l := range strings.Lines(string(src)) {
			if _, err := fmt.Sscanf(l, "[]byte(%q)", &b); err == nil {
				all = append(all, b)
			}
		}
	}
	if len(all) < len(files) {
		t.Fatalf("%d of %d files read", len(all), len(files))
	}
	return all
}
