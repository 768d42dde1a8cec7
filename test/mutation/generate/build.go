// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/tools/go/packages"
)

// target is a package with all its mutants, built into one test program.
type target struct {
	name    string // the name of the folder, such as mcast
	dir     string
	sites   []*site
	program string
	rapid   bool     // its tests have rapid's flags
	quick   []string // the names of the tests that are run first

	usual, usualCPU time.Duration // times of its tests without a mutant

	mu      sync.Mutex
	noticed map[string][2]string // the tests that have noticed the last mutants of a file, by file: a quick one and another
}

// load finds the sites of a package and writes into dir the files by which go's -overlay
// replaces those of the package.
func load(root, name, dir string) (*target, string, error) {
	cfg := &packages.Config{Dir: root, Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports}
	pkgs, err := packages.Load(cfg, "./"+name)
	if err != nil {
		return nil, "", err
	}
	if len(pkgs) != 1 || len(pkgs[0].Errors) > 0 {
		return nil, "", fmt.Errorf("%s: not one package without errors: %v", name, pkgs)
	}
	p, t := pkgs[0], &target{name: name, dir: filepath.Join(root, name), noticed: map[string][2]string{}}
	replace := map[string]string{}
	for i, file := range p.Syntax {
		path := p.Fset.Position(file.Package).Filename
		if ast.IsGenerated(file) || !pure(file) {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, "", err
		}
		f := &finder{
			info: p.TypesInfo, file: name + "/" + filepath.Base(path), src: src, fset: p.Fset, at: map[ast.Node][]*site{},
		}
		f.add = func(n ast.Node, op, text string) *site {
			s := &site{id: len(t.sites) + 1, file: f.file, line: f.fset.Position(n.Pos()).Line, fn: f.fn, op: op, text: oneLine(text)}
			for _, o := range t.sites {
				if o.file == s.file && o.fn == s.fn && o.op == s.op && o.text == s.text {
					s.same++
				}
			}
			t.sites = append(t.sites, s)
			return s
		}
		for _, d := range file.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				f.decl(d)
			}
		}
		text := f.rewrite(file)
		if _, err := format.Source([]byte(text)); err != nil {
			return nil, "", fmt.Errorf("%s with its mutants: %w", path, err)
		}
		copied := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return nil, "", err
		}
		replace[path] = copied
	}
	added := filepath.Join(dir, "planted.go")
	if err := os.WriteFile(added, fmt.Appendf(nil, support, p.Name), 0o600); err != nil {
		return nil, "", err
	}
	replace[filepath.Join(t.dir, "planted.go")] = added
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return t, overlay, os.WriteFile(overlay, b, 0o600)
}

// impure are packages by which a file talks to the kernel or to other hosts: its effects
// show in tests with namespaces, which are too slow to run for each mutant.
var impure = []string{
	"C", "crypto/tls", "net", "os", "os/exec", "os/signal", "syscall",
	"golang.org/x/sys/unix", "github.com/vishvananda/netlink", "github.com/cilium/ebpf", "github.com/safchain/ethtool",
	"github.com/gleam-rdma/gleam/bpf", "github.com/gleam-rdma/gleam/internal/control/locate",
}

// pure reports whether a file imports no impure package.
func pure(file *ast.File) bool {
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil || slices.Contains(impure, path) {
			return false
		}
	}
	return true
}

func oneLine(text string) string {
	words := strings.Fields(text)
	text = strings.Join(words, " ")
	if len(text) > 100 {
		text = text[:100] + "…"
	}
	return text
}

// build makes the test program of a package with its mutants.
func build(root, name, dir string) (*target, error) {
	t, overlay, err := load(root, name, dir)
	if err != nil {
		return nil, err
	}
	t.program = filepath.Join(dir, "program")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", t.program, "./"+name)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s with its mutants: %w\n%s", name, err, out)
	}
	list := exec.Command(t.program, "-test.run=^$", "-rapid.checks=1")
	list.Dir = t.dir
	t.rapid = list.Run() == nil
	return t, nil
}
