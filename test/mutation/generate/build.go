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

// target is a package with all its mutants.
type target struct {
	sites  []*site
	suites []*suite // the tests of the package, and those that are tried where a mutant survives these
}

// suite is the tests of a package, built into one program with all mutants of the target.
type suite struct {
	name    string // the name of the folder, such as mcast
	root    string
	overlay string // the file for go's -overlay
	program string

	once     sync.Once // builds and measures
	err      error     // the outcome of once
	rapid    bool      // its tests have rapid's flags
	quick    []string  // the names of the tests that are run first
	usual    time.Duration
	usualCPU time.Duration // the CPU time without a mutant, as usual is the real time

	mu      sync.Mutex
	noticed map[string][2]string // the tests that have noticed the last mutants of a file, by file: a quick one and another
}

// dir is the working directory of the tests.
func (t *suite) dir() string { return filepath.Join(t.root, t.name) }

// load finds the sites of a package and writes into dir the files by which go's -overlay
// replaces those of the package.
func load(root, name, dir string) (sites []*site, overlay string, err error) {
	cfg := &packages.Config{Dir: root, Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports}
	pkgs, err := packages.Load(cfg, "./"+name)
	if err != nil {
		return nil, "", err
	}
	if len(pkgs) != 1 || len(pkgs[0].Errors) > 0 {
		return nil, "", fmt.Errorf("%s: not one package without errors: %v", name, pkgs)
	}
	p := pkgs[0]
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
			s := &site{id: len(sites) + 1, file: f.file, line: f.fset.Position(n.Pos()).Line, fn: f.fn, op: op, text: oneLine(text)}
			for _, o := range sites {
				if o.file == s.file && o.fn == s.fn && o.op == s.op && o.text == s.text {
					s.same++
				}
			}
			sites = append(sites, s)
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
	replace[filepath.Join(root, name, "planted.go")] = added
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return sites, overlay, os.WriteFile(overlay, b, 0o600)
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

// build plants the mutants of the package names[0], for the tests of all names.
func build(root string, names []string, dir string) (*target, error) {
	sites, overlay, err := load(root, names[0], dir)
	if err != nil {
		return nil, err
	}
	t := &target{sites: sites}
	for i, name := range names {
		t.suites = append(t.suites, &suite{
			name: name, root: root, overlay: overlay, program: filepath.Join(dir, fmt.Sprintf("program%d", i)), noticed: map[string][2]string{},
		})
	}
	return t, nil
}

// ready builds the test program and measures the tests without a mutant, once.
func (t *suite) ready(checks int) error {
	t.once.Do(func() {
		if t.err = t.build(); t.err == nil {
			t.err = t.warmUp(checks)
		}
	})
	return t.err
}

func (t *suite) build() error {
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", t.overlay, "-o", t.program, "./"+t.name)
	cmd.Dir = t.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s with mutants: %w\n%s", t.name, err, out)
	}
	list := exec.Command(t.program, "-test.run=^$", "-rapid.checks=1")
	list.Dir = t.dir()
	t.rapid = list.Run() == nil
	return nil
}
