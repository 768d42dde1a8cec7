// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// The document of a program, this test's own, names the modules that are in it.
func TestDocument(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, again bytes.Buffer
	for _, to := range []*bytes.Buffer{&first, &again} {
		if err := run([]string{"v1", self}, to); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), again.Bytes()) {
		t.Error("the same program gives two documents")
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(&first, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, c := range *bom.Components {
		found[c.Name] = c.Version != ""
		if c.Name == "github.com/CycloneDX/cyclonedx-go" && !strings.HasPrefix((*c.Properties)[0].Value, "h1:") {
			t.Errorf("its checksum is %v", c.Properties)
		}
	}
	if !found["std"] || !found["github.com/CycloneDX/cyclonedx-go"] {
		t.Errorf("components %v", found)
	}
	if err := run(nil, &first); err == nil {
		t.Error("a document of nothing")
	}
	if err := run([]string{"v1", "main.go"}, &first); err == nil || !strings.Contains(err.Error(), "main.go") {
		t.Errorf("a document of a text: %v", err)
	}
}
