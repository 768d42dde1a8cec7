// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPure: the machines know no sockets, clocks, goroutines or randomness.
func TestPure(t *testing.T) {
	allowed := []string{
		"cmp", "container/heap", "crypto/hmac", "crypto/sha256", "encoding/binary", "fmt", "net/netip", "slices", "strings", "time",
		"github.com/gleam-rdma/gleam/mcast", "github.com/gleam-rdma/gleam/rocev2",
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range parsed.Imports {
			if !slices.Contains(allowed, strings.Trim(i.Path.Value, `"`)) {
				t.Errorf("%s imports %s", f.Name(), i.Path.Value)
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine", f.Name())
			case *ast.SelectorExpr:
				if p, ok := x.X.(*ast.Ident); ok && p.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "NewTimer", "NewTicker", "AfterFunc"}, x.Sel.Name) {
					t.Errorf("%s uses time.%s", f.Name(), x.Sel.Name)
				}
			}
			return true
		})
	}
}
