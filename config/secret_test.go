// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"go.uber.org/zap/zapcore"
)

// leaks reports whether s shows the bytes of goodHex in a usual form.
func leaks(s string) bool {
	b, err := hex.DecodeString(goodHex)
	if err != nil {
		panic(err)
	}
	numbers := strings.Trim(fmt.Sprint(b[2:7]), "[]")
	for _, form := range []string{
		goodHex[4:], strings.ToUpper(goodHex[4:]), numbers, strings.Trim(fmt.Sprintf("%#v", b[2:7]), "[]byte{}"),
		strings.ReplaceAll(numbers, " ", ", "), strings.ReplaceAll(numbers, " ", ","), base64.StdEncoding.EncodeToString(b)[:8],
		fmt.Sprintf(`\x%x\x%x`, b[2], b[3]), string(b[2:4]),
	} {
		if strings.Contains(s, form) {
			return true
		}
	}
	return false
}

func TestSecretIsNeverPrinted(t *testing.T) {
	s := mustSecret(t)
	if !leaks(fmt.Sprintf("%x", s.Bytes())) || !leaks(fmt.Sprint(s.Bytes())) || !leaks(fmt.Sprintf("%#v", s.Bytes())) {
		t.Fatal("leaks does not recognise the bytes; the test proves nothing")
	}
	c := Default()
	c.Envelope.Keys = []Key{{ID: 1, Secret: s}}
	hidden := struct{ inner Secret }{s} // fmt cannot call methods of unexported fields
	for _, v := range []any{s, &s, c, *c, c.Envelope.Keys, map[string]any{"k": s}, hidden, &hidden} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
			if got := fmt.Sprintf(verb, v); leaks(got) {
				t.Errorf("%s of %T shows the secret: %s", verb, v, got)
			}
		}
	}
	for name, marshal := range map[string]func(any) ([]byte, error){
		"JSON": json.Marshal,
		"YAML": func(v any) ([]byte, error) { return yaml.Marshal(v) },
		"zap": func(v any) ([]byte, error) {
			enc := zapcore.NewJSONEncoder(zapcore.EncoderConfig{})
			if err := enc.AddReflected("config", v); err != nil {
				return nil, err
			}
			buf, err := enc.EncodeEntry(zapcore.Entry{}, nil)
			return buf.Bytes(), err
		},
	} {
		for _, v := range []any{s, c, *c} {
			got, err := marshal(v)
			if err != nil {
				t.Errorf("%s of %T: %v", name, v, err)
			}
			if leaks(string(got)) || !strings.Contains(string(got), redacted) {
				t.Errorf("%s of %T: %s", name, v, got)
			}
		}
	}
	if got := fmt.Sprintf("%v %s %#v", s, s, s); got != "REDACTED REDACTED REDACTED" {
		t.Errorf("got %s", got)
	}
}

// TestSecretIsNotInErrors puts a secret where it is wrong in many ways.
func TestSecretIsNotInErrors(t *testing.T) {
	for _, section := range []string{
		"envelope: {keys: [{id: 1, secret: hex:" + goodHex[2:] + "}]}", // short
		"envelope: {keys: [{id: 1, secret: hex:" + goodHex + "x}]}",
		"envelope: {keys: [{id: 1, secret: " + goodHex + "}]}", // no prefix
		"envelope: {keys: [{id: 1, secret: [" + goodHex + "]}]}",
		"envelope: {keys: [{id: 1, secrte: hex:" + goodHex + "}]}",
		"envelope: {keys: [{id: hex:" + goodHex + "}]}",
		"envelope: {keys: [{id: 1, secret_file: hex:" + goodHex + "}]}",
		"envelope: {keys: [hex:" + goodHex + "]}",
		"envelope: {keys: [" + goodHex + "]}",
		"envelope: {keys: hex:" + goodHex + "}",
		"envelope: {keys: " + goodHex + "}",
		"envelope: hex:" + goodHex,
		"envelope: {hex:" + goodHex + ": 1}",
		"envelope: {keys: [{id: 1, secret: hex:" + goodHex + "}",            // no YAML
		"envelope:\n\tkeys: [{id: 1, secret: hex:" + goodHex + "}",          // no YAML
		"envelope: {keys: [{id: 1, secret: \"hex:" + goodHex + "}]}",        // no YAML
		"envelope: {keys: [{id: 1, secret: hex:" + goodHex + "}]}\nx: y: z", // no YAML, a line later
	} {
		for _, s := range []string{section, strings.Replace(section, "envelope:", "envelope: {insecure: true}\nswitch:", 1)} {
			_, err := Parse("f", []byte("ports: [{name: p1}]\ngroup_prefixes: [10.77.254.0/24]\n"+s+"\n"))
			if err == nil {
				t.Errorf("accepted: %s", s)
				continue
			}
			if leaks(err.Error()) {
				t.Errorf("%s\nleaks: %v", s, err)
			}
		}
	}
}
