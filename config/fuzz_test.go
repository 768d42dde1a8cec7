// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"os"
	"testing"
)

// FuzzParse: for any file, Parse neither panics nor returns an invalid Config, and
// every error names the file.
func FuzzParse(f *testing.F) {
	reference, err := os.ReadFile("reference.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(reference)
	f.Add([]byte(minimal))
	f.Add([]byte("ports: [{name: p1, queues: [0]}]\nenvelope: {keys: [{id: 1, secret: hex:" + goodHex + "}]}\n"))
	f.Add([]byte("a: &x [*x]\n<<: *x\n"))
	f.Add([]byte("? [a, b]\n: !!binary aGk=\n"))
	f.Add([]byte("[[[[{{{{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f", data)
		if err == nil {
			if len(c.Ports) == 0 || len(c.GroupPrefixes) == 0 || c.Envelope.Insecure == (len(c.Envelope.Keys) > 0) {
				t.Errorf("accepted an incomplete configuration: %+v", c)
			}
			return
		}
		var errs Errors
		if !errors.As(err, &errs) || len(errs) == 0 {
			t.Fatalf("error of type %T", err)
		}
		for _, e := range errs {
			if e.File != "f" || e.Reason == "" || e.Line < 0 {
				t.Errorf("error says too little: %+v", e)
			}
		}
	})
}
