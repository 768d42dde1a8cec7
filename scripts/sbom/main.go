// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Command sbom prints what programs are made of, as a CycloneDX document: for each the
// Go release and the modules, with their checksums, that the Go tool has recorded in it.
// The same programs give the same bytes.
//
//	sbom VERSION PROGRAM...
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "sbom: %s\n", err)
		os.Exit(1)
	}
}

func run(args []string, to io.Writer) error {
	if len(args) < 2 {
		return errors.New("name the version and the programs: make build makes bin/gleamd and bin/gleam")
	}
	bom := cdx.NewBOM()
	b := builder{version: args[0], components: make(map[string]cdx.Component)}
	for _, p := range args[1:] {
		if err := b.add(p); err != nil {
			return err
		}
	}
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		BOMRef: "gleam", Type: cdx.ComponentTypeApplication, Name: "gleam", Version: b.version,
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
	}}
	b.dependencies = append(b.dependencies, cdx.Dependency{Ref: "gleam", Dependencies: &b.programs})
	var components []cdx.Component
	for _, c := range b.components {
		components = append(components, c)
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	bom.Components, bom.Dependencies = &components, &b.dependencies
	return cdx.NewBOMEncoder(to, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

// builder collects what the programs have in common.
type builder struct {
	components   map[string]cdx.Component // components by reference
	dependencies []cdx.Dependency
	programs     []string
	version      string
}

func (b *builder) add(program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	ref := "program:" + filepath.Base(program)
	b.programs = append(b.programs, ref)
	b.components[ref] = cdx.Component{
		BOMRef: ref, Type: cdx.ComponentTypeApplication, Name: filepath.Base(program), Version: b.version,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
	}
	std := "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")
	b.components[std] = cdx.Component{BOMRef: std, PackageURL: std, Type: cdx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion}
	uses := []string{std}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		b.components[purl] = cdx.Component{
			BOMRef: purl, PackageURL: purl, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
			Properties: &[]cdx.Property{{Name: "go:sum", Value: m.Sum}},
		}
		uses = append(uses, purl)
	}
	b.dependencies = append(b.dependencies, cdx.Dependency{Ref: ref, Dependencies: &uses})
	return nil
}
