// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// module is the path that all packages begin with.
const module = "github.com/gleam-rdma/gleam"

// header is the beginning of every Go file written by hand.
const header = "// Copyright 2026 The Gleam Authors\n// SPDX-License-Identifier: Apache-2.0\n"

// check returns the faults of one Go file; name is its path relative to the module, with
// slashes.
func check(name string, src []byte) []string {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	c := &checker{fset: fset, file: f, name: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go")}
	if !ast.IsGenerated(f) {
		c.writing(src)
	}
	c.packageName()
	c.imports()
	c.words()
	c.exits()
	c.faults()
	if i := roomOf(c.dir); i >= 0 && rooms[i].pure && !c.test {
		c.purity()
	}
	return c.wrong
}

type checker struct {
	fset  *token.FileSet
	file  *ast.File
	name  string
	dir   string
	test  bool
	wrong []string
}

func (c *checker) say(at token.Pos, format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf("%s:%d: %s", c.name, c.fset.Position(at).Line, fmt.Sprintf(format, args...)))
}

// writing checks header and length.
func (c *checker) writing(src []byte) {
	if !bytes.HasPrefix(src, []byte(header)) {
		c.say(c.file.FileStart, "does not begin with the licence header")
	}
	if n := bytes.Count(src, []byte("\n")); n > maxLines {
		c.say(c.file.FileEnd, "has %d lines; split it (at most %d)", n, maxLines)
	}
}

func (c *checker) packageName() {
	names := append(strings.Split(c.dir, "/"), strings.TrimSuffix(c.file.Name.Name, "_test"))
	for _, n := range names {
		if badNames[n] {
			c.say(c.file.Package, "package name %s says nothing", n)
			return
		}
	}
}

// imports checks that dependencies point up the table of rooms only. Tests may
// import any package.
func (c *checker) imports() {
	own := roomOf(c.dir)
	if own < 0 {
		c.say(c.file.Package, "package %s has no room: add it to the table here and to docs/ARCHITECTURE.md", c.dir)
		return
	}
	if c.test {
		return
	}
	for _, spec := range c.file.Imports {
		p := importPath(spec)
		if p == "testing" && rooms[own].dir != "test" {
			c.say(spec.Pos(), "imports testing outside of a test")
		}
		rel, ours := strings.CutPrefix(p, module+"/")
		if !ours {
			continue
		}
		switch other := roomOf(rel); {
		case other == own:
		case other < 0 || other > own:
			c.say(spec.Pos(), "%s is below %s in the table of rooms", c.dir, rel)
		case rooms[own].knows != nil && !slices.Contains(rooms[own].knows, rooms[other].dir):
			c.say(spec.Pos(), "%s must know nothing of %s", rooms[own].dir, rel)
		}
	}
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil { // the parser has accepted it
		panic(err)
	}
	return p
}

// words checks that a file uses only the permitted names of the rooms in room.words.
func (c *checker) words() {
	i := roomOf(c.dir)
	if c.test || i < 0 || rooms[i].words == nil {
		return
	}
	c.selectors(func(at token.Pos, pkg, name string) {
		rel, _ := strings.CutPrefix(pkg, module+"/")
		if only := rooms[i].words[rel]; only != nil && !only[name] {
			c.say(at, "%s must know nothing of %s.%s", rooms[i].dir, rel, name)
		}
	})
}

// exits checks that only commands and tests end the process: libraries return errors.
func (c *checker) exits() {
	if c.test || c.file.Name.Name == "main" {
		return
	}
	c.selectors(func(at token.Pos, pkg, fn string) {
		if pkg == "os" && fn == "Exit" || pkg == "log" && strings.HasPrefix(fn, "Fatal") {
			c.say(at, "a library must not end the process (%s.%s)", pkg, fn)
		}
	})
}

// faults checks that a file does not use what is wrong in other modules.
func (c *checker) faults() {
	c.selectors(func(at token.Pos, pkg, name string) {
		for _, f := range faulty {
			if f.pkg == pkg && strings.HasPrefix(name, f.prefix) {
				c.say(at, "%s.%s: %s", pkg, name, f.why)
			}
		}
	})
}

// purity checks a file of the core.
func (c *checker) purity() {
	for _, spec := range c.file.Imports {
		p := importPath(spec)
		for q := p; q != "." && !pureAll[p]; q = path.Dir(q) {
			if why := impure[q]; why != "" {
				c.say(spec.Pos(), "the core must not import %s: %s", p, why)
				break
			}
		}
	}
	ast.Inspect(c.file, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			c.say(g.Pos(), "the core must not start goroutines")
		}
		return true
	})
	c.selectors(func(at token.Pos, pkg, fn string) {
		if impureFuncs[pkg][fn] {
			c.say(at, "the core must not use %s.%s: time is passed in", pkg, fn)
		}
		if (pkg == "math/rand" || pkg == "math/rand/v2") && !seededOnly[fn] {
			c.say(at, "the core must not use %s.%s: randomness comes from a seed that is passed in", pkg, fn)
		}
	})
}

// selectors calls visit for every use of a name from an imported package.
func (c *checker) selectors(visit func(at token.Pos, pkg, name string)) {
	paths := make(map[string]string) // by the name the file gives them
	for _, spec := range c.file.Imports {
		p := importPath(spec)
		local := path.Base(p)
		if local == "v2" {
			local = path.Base(path.Dir(p))
		}
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == "." {
			c.say(spec.Pos(), "dot import of %s hides where names come from", p)
		}
		paths[local] = p
	}
	ast.Inspect(c.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && paths[x.Name] != "" {
				visit(sel.Pos(), paths[x.Name], sel.Sel.Name)
			}
		}
		return true
	})
}
