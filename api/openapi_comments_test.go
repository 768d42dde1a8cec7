// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// readComments returns the comments of this package's structs and fields, by Type and
// Type.Field.
func readComments(t *testing.T) map[string]string {
	texts := make(map[string]string)
	names, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	line := func(groups ...*ast.CommentGroup) string {
		for _, g := range groups {
			if g != nil {
				return strings.Join(strings.Fields(g.Text()), " ")
			}
		}
		return ""
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				ts, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				texts[ts.Name.Name] = line(ts.Doc, g.Doc)
				st, ok := ts.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, field := range st.Fields.List {
					for _, id := range field.Names {
						texts[ts.Name.Name+"."+id.Name] = line(field.Doc, field.Comment)
					}
				}
			}
		}
	}
	return texts
}

// The server has each path and method of the document.
func TestDocumentIsServed(t *testing.T) {
	w := httptest.NewRecorder()
	h := &handler{}
	h.ServeHTTP(w, httptest.NewRequest("GET", "/v1/openapi.json", nil))
	var doc struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || w.Code != http.StatusOK {
		t.Fatal(w.Code, err)
	}
	n := 0
	for path, methods := range doc.Paths {
		for method := range methods {
			n++
			real := strings.NewReplacer("{group}", "10.0.0.1", "{member}", "10.0.0.2", "{name}", "p1").Replace(path)
			if x, _, err := find(strings.ToUpper(method), real); err != nil || x.path != path {
				t.Errorf("%s %s: %v", method, path, err)
			}
		}
	}
	if n != len(routes) {
		t.Errorf("%d operations are described, there are %d", n, len(routes))
	}
}
