// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
)

var write = flag.Bool("write", false, "TestReference writes reference.yaml")

// row is a key as its field declares it.
type row struct {
	name    string
	tag     reflect.StructTag
	section string   // the type of its value, or of the elements of its list, if that has keys
	list    bool     // true: the value is a list
	doc     []string // its comment, a line each
	tail    string   // the comment behind it
	parted  bool     // true: an empty line is before it
}

// sources returns the files of this package but for tests.
func sources(t *testing.T) (fset *token.FileSet, files []*ast.File) {
	t.Helper()
	fset = token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return fset, files
}

// declared returns the rows of each section, by the name of its type.
func declared(t *testing.T) map[string][]row {
	t.Helper()
	sections := make(map[string][]row)
	fset, files := sources(t)
	line := func(at token.Pos) int { return fset.Position(at).Line }
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			body, ok := spec.Type.(*ast.StructType)
			if !ok || len(body.Fields.List) == 0 || body.Fields.List[0].Tag == nil {
				return true
			}
			end := line(body.Pos())
			for _, f := range body.Fields.List {
				text, err := strconv.Unquote(f.Tag.Value)
				if err != nil {
					t.Fatal(err)
				}
				r := row{tag: reflect.StructTag(text), tail: strings.TrimSpace(f.Comment.Text())}
				r.name = r.tag.Get("yaml")
				begin := line(f.Pos())
				if f.Doc != nil {
					begin = line(f.Doc.Pos())
					for _, c := range f.Doc.List {
						r.doc = append(r.doc, strings.TrimPrefix(c.Text, "//"))
					}
				}
				r.parted, end = begin > end+1, line(f.End())
				typ := f.Type
				if a, ok := typ.(*ast.ArrayType); ok {
					typ, r.list = a.Elt, true
				}
				if id, ok := typ.(*ast.Ident); ok {
					r.section = id.Name
				}
				sections[spec.Name.Name] = append(sections[spec.Name.Name], r)
			}
			return true
		})
	}
	for _, rows := range sections {
		for i := range rows {
			if sections[rows[i].section] == nil {
				rows[i].section = ""
			}
		}
	}
	return sections
}

// reference writes the keys of a section as reference.yaml has them. first is what the first line
// begins with, indent the others.
func reference(b *strings.Builder, sections map[string][]row, section, first, indent string) {
	for _, r := range sections[section] {
		if r.parted {
			b.WriteString("\n")
		}
		for _, l := range r.doc {
			fmt.Fprintf(b, "%s#%s\n", indent, l)
		}
		if why := r.tag.Get("restart"); why != "" && r.doc != nil {
			fmt.Fprintf(b, "%s# Restart: %s.\n", indent, why)
		} else if r.tag.Get("reload") == "applied" && r.doc != nil {
			fmt.Fprintf(b, "%s# Reload: applied.\n", indent)
		}
		value, tail := r.tag.Get("default"), ""
		if r.tail != "" {
			tail = "\t# " + r.tail
		}
		items, ok := r.tag.Lookup("required")
		switch example := r.tag.Get("example"); {
		case example != "":
			fmt.Fprintf(b, "%s# %s: %s%s\n", indent, r.name, example, tail)
		case r.list && value == "":
			fmt.Fprintf(b, "%s%s:\n", first, r.name)
			reference(b, sections, r.section, indent+"  - ", indent+"    ")
			if ok {
				fmt.Fprintf(b, "%s  %s\n", indent, strings.ReplaceAll(items, "\n", "\n"+indent+"  "))
			}
		case r.section != "" && value == "":
			fmt.Fprintf(b, "%s%s:\n", first, r.name)
			reference(b, sections, r.section, indent+"  ", indent+"  ")
		default:
			fmt.Fprintf(b, "%s%s: %s%s\n", first, r.name, value+items, tail)
		}
		first = indent
	}
}

// reference.yaml has below its header what the rows say: go test ./config -run TestReference -write.
func TestReference(t *testing.T) {
	old := string(mustRead(t, "reference.yaml"))
	header, _, _ := strings.Cut(old, "\n\n")
	var keys, text strings.Builder
	reference(&keys, declared(t), "Config", "", "")
	aligned := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprint(aligned, header, "\n\n", keys.String())
	aligned.Flush()
	if *write {
		if err := os.WriteFile("reference.yaml", []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text.String() != old {
		t.Error("reference.yaml differs from the rows: go test ./config -run TestReference -write")
	}
}

func TestReferenceHoldsTheDefaults(t *testing.T) {
	dir := t.TempDir()
	got, err := Load(referenceIn(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	ecn := ECN{KMin: 32768, KMax: 131072, PMax: 0.2}
	want.Ports = []Port{{Name: "p1", Queue: 262144, ECN: ecn, XDP: PortXDP{Mode: XDPDefault}}, {Name: "p2", Queue: 262144, ECN: ecn, XDP: PortXDP{Mode: XDPDefault}}}
	want.GroupPrefixes = []netip.Prefix{netip.MustParsePrefix("10.77.254.0/24"), netip.MustParsePrefix("fd77::6c65:0/112")}
	want.Envelope.Keys = []Key{{ID: 1, SecretFile: filepath.Join(dir, "gleam.key"), Secret: mustSecret(t), Roles: []Role{RoleMaster, RoleMember}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("reference.yaml gives\n%+v\nwant the defaults\n%+v", got, want)
	}
}
