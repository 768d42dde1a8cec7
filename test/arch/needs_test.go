// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// minimal are programs that a minimal Debian with git, make and Go has, and that tests run.
var minimal = strings.Fields("apt-get bash cat chroot cmp cp dpkg-deb env find git go kill make mmdebstrap mount nsenter setpriv sh sleep sudo tar timeout unshare")

// words are programs whose names tests use for other things; exec.Command and labtest.Needs tell.
var words = []string{"ethtool", "ip", "nm", "patch", "prometheus"}

// packagesTable returns the parts that need each thing, by scripts/packages.
func packagesTable(t *testing.T) map[string][]string {
	t.Helper()
	table := make(map[string][]string)
	for line := range strings.Lines(read(t, "scripts/packages")) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) < 3 || table[words[0]] != nil {
			t.Errorf("scripts/packages: want THING PACKAGE PART..., and each thing once: %q", line)
			continue
		}
		table[words[0]] = words[2:]
	}
	if len(table) < 30 {
		t.Fatalf("scripts/packages has %d things: is it read rightly?", len(table))
	}
	return table
}

// modes returns the modes of scripts/test, in its order.
func modes(t *testing.T) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^#   ([a-z0-9-]+)  `).FindAllStringSubmatch(read(t, "scripts/test"), -1) {
		all = append(all, m[1])
	}
	if len(all) < 15 {
		t.Fatalf("scripts/test has %d modes: are they read rightly?", len(all))
	}
	return all
}

// Each part in scripts/packages is a mode of scripts/test, or what a script asks scripts/need for; and what they ask
// for is there.
func TestPartsOfPackages(t *testing.T) {
	table, parts := packagesTable(t), make(map[string]bool)
	for _, of := range table {
		for _, p := range of {
			parts[p] = false
		}
	}
	files := []string{"Makefile", "scripts/deb", "scripts/foreign", "scripts/generate-check", "scripts/site/build", "scripts/test", "test/nics/run.sh", "test/rxe/run.sh"}
	for _, file := range files {
		for _, m := range regexp.MustCompile(`need"? ([a-z][a-z0-9-]*)(?: *\n|; then| \|\||;)`).FindAllStringSubmatch(code(read(t, file)), -1) {
			if _, ok := parts[m[1]]; !ok {
				t.Errorf("%s: scripts/packages has no part %s", file, m[1])
			}
			parts[m[1]] = true
		}
	}
	for _, m := range modes(t) {
		parts[m] = true
	}
	for _, p := range slices.Sorted(maps.Keys(parts)) {
		if !parts[p] {
			t.Errorf("scripts/packages: nothing is the part %s", p)
		}
	}
}

// code returns a script without its comments.
func code(script string) string {
	return regexp.MustCompile(`(?m)^\s*#.*$`).ReplaceAllString(script, "")
}

// function is what a function, or the value of a variable, of the tests mentions.
type function struct {
	calls  []string // functions and variables, as folder.Name
	things []string // programs it runs, and what it passes to labtest.Needs and Has
	parts  []string // the parts of labtest.Part
	isTest bool
}

// functions returns those of the module's tests, and of the packages below test, by folder.Name.
// Methods of one name are one.
func functions(t *testing.T, table map[string][]string) map[string]*function {
	t.Helper()
	all := make(map[string]*function)
	for name, src := range goFiles(t) {
		if !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "test/rxe/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		folder, imports := path.Dir(name), make(map[string]string)
		for _, i := range file.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			if inside, ok := strings.CutPrefix(p, "github.com/gleam-rdma/gleam/"); ok {
				imports[path.Base(inside)] = inside
			}
		}
		add := func(name string, isTest bool, n ast.Node) {
			f := all[folder+"."+name]
			if f == nil {
				f = &function{}
				all[folder+"."+name] = f
			}
			f.isTest = f.isTest || isTest
			f.read(n, folder, imports, table)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				isTest := d.Recv == nil && strings.HasSuffix(name, "_test.go") && regexp.MustCompile(`^(Test|Fuzz)[^a-z]`).MatchString(d.Name.Name) && d.Name.Name != "TestMain"
				add(d.Name.Name, isTest, d.Body)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok {
						for i, n := range v.Names {
							if i < len(v.Values) {
								add(n.Name, false, v.Values[i])
							}
						}
					}
				}
			}
		}
	}
	return all
}

// read adds what a node mentions. A string that is a name in the table is a program that
// is run, as is the program of exec.Command.
func (f *function) read(n ast.Node, folder string, imports map[string]string, table map[string][]string) {
	strung := func(e ast.Expr) string {
		l, ok := e.(*ast.BasicLit)
		if !ok || l.Kind != token.STRING {
			return ""
		}
		s, _ := strconv.Unquote(l.Value)
		return s
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if s := strung(n); table[s] != nil && !slices.Contains(words, s) {
				f.things = append(f.things, s)
			}
		case *ast.Ident:
			f.calls = append(f.calls, folder+"."+n.Name)
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" {
				f.calls = append(f.calls, imports[x.Name]+"."+n.Sel.Name)
				return false
			}
		case *ast.CallExpr:
			switch args := n.Args; types.ExprString(n.Fun) {
			case "exec.CommandContext":
				f.runs(strung(args[1]))
			case "exec.Command":
				f.runs(strung(args[0]))
			case "labtest.Needs", "labtest.Has":
				for _, a := range args[1:] {
					f.runs(strung(a))
				}
			case "labtest.Part":
				for _, a := range args[1:] {
					f.parts = append(f.parts, strung(a))
				}
			}
		}
		return true
	})
}

// runs adds a program, but for those of this module, and of no package.
func (f *function) runs(program string) {
	if program != "" && !strings.HasPrefix(program, "../") && program != "/none/such" && !strings.HasPrefix(program, "/proc/") {
		f.things = append(f.things, program)
	}
}

// reach calls f for a function and all that it mentions, and what these mention.
func reach(all map[string]*function, name string, seen map[string]bool, f func(*function)) {
	if all[name] == nil || seen[name] {
		return
	}
	seen[name] = true
	f(all[name])
	for _, c := range all[name].calls {
		reach(all, c, seen, f)
	}
}

// Each part's line of scripts/packages has the programs that its tests run.
func TestPartsInstallWhatTheirTestsRun(t *testing.T) {
	table := packagesTable(t)
	all := functions(t, table)
	n := 0
	for _, mode := range modes(t) {
		if mode == "unit" {
			continue // it skips what needs a package that is not there
		}
		runs := runsOf(t, mode)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !all[name].isTest || !runs(name) {
				continue
			}
			var things, parts []string
			reach(all, name, make(map[string]bool), func(f *function) {
				things, parts = append(things, f.things...), append(parts, f.parts...)
			})
			if len(parts) > 0 && !slices.Contains(parts, mode) {
				continue
			}
			n++
			slices.Sort(things)
			for _, thing := range slices.Compact(things) {
				switch of := table[thing]; {
				case of == nil && !slices.Contains(minimal, thing):
					t.Errorf("%s runs %s, which a minimal Debian lacks: scripts/packages", name, thing)
				case of != nil && !slices.Contains(of, mode) && !slices.Contains(of, "race"):
					t.Errorf("%s runs %s, and scripts/packages does not have it for the part %s", name, thing, mode)
				}
			}
		}
	}
	if n < 1000 {
		t.Errorf("%d tests were looked at; is this test still looking for the right thing?", n)
	}
}

// runsOf returns whether a mode of scripts/test runs a test, which is folder.Name.
func runsOf(t *testing.T, mode string) func(name string) bool {
	t.Helper()
	out, err := exec.Command("../../scripts/test", "--list", mode).Output()
	flags, packages, ok := strings.Cut(strings.TrimSpace(string(out)), " -- ")
	if err != nil || !ok {
		t.Fatalf("scripts/test --list %s: %v: %s", mode, err, out)
	}
	run := regexp.MustCompile("")
	if m := regexp.MustCompile(`-run (\S+)`).FindStringSubmatch(flags); m != nil {
		run = regexp.MustCompile(m[1])
	}
	return func(name string) bool {
		folder, test, _ := strings.Cut(name, ".")
		return run.MatchString(test) && covers(strings.Fields(packages), folder)
	}
}

// A test that is skipped because another part of scripts/test runs it (labtest's Part) is run by one of those parts.
func TestPartsRunTheirTests(t *testing.T) {
	runs := make(map[string]func(name string) bool)
	for _, mode := range modes(t) {
		runs[mode] = runsOf(t, mode)
	}
	all, n := functions(t, nil), 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !all[name].isTest {
			continue
		}
		var parts []string
		reach(all, name, make(map[string]bool), func(f *function) { parts = append(parts, f.parts...) })
		if len(parts) == 0 {
			continue
		}
		n++
		if !slices.ContainsFunc(parts, func(p string) bool { return runs[p] != nil && runs[p](name) }) {
			t.Errorf("%s leaves itself to %s, and no such part runs it: scripts/test", name, strings.Join(parts, " or "))
		}
	}
	if n < 20 {
		t.Errorf("%d tests are of parts; is this test still looking for the right thing?", n)
	}
}

// covers says whether patterns of packages have a folder among them.
func covers(patterns []string, folder string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		p = strings.TrimPrefix(p, "./")
		below, all := strings.CutSuffix(p, "...")
		return p == folder || all && strings.HasPrefix(folder+"/", below)
	})
}

// Each line of scripts/skips has a test that exists, and a reason.
func TestSkipsExist(t *testing.T) {
	all := functions(t, nil)
	for line := range strings.Lines(read(t, "scripts/skips")) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) < 4 {
			t.Errorf("scripts/skips: want PACKAGE TEST REASON: %q", line)
			continue
		}
		test, _, _ := strings.Cut(words[1], "/")
		if f := all[words[0]+"."+test]; f == nil || !f.isTest {
			t.Errorf("scripts/skips: %s has no test %s", words[0], test)
		}
	}
}

// The tests that run without the race detector are those of the pure rooms, all of them, of rooms that start no
// goroutine, and some of those that test the project and not a program.
func TestCoreRunsWithoutRaceDetector(t *testing.T) {
	m := regexp.MustCompile(`core=\$\("\$go" list (.*)\)`).FindStringSubmatch(read(t, "scripts/test"))
	if m == nil {
		t.Fatal("scripts/test does not name the packages of the core")
	}
	for i := range rooms {
		r := &rooms[i]
		if in := covers(strings.Fields(m[1]), r.dir); in && !r.pure && !strings.HasPrefix(r.dir, "test/") && startsGoroutines(t, r.dir) {
			t.Errorf("scripts/test runs the tests of %s without the race detector, and it starts goroutines", r.dir)
		} else if quick := r.dir == "docs" || strings.HasPrefix(r.dir, "config/"); !in && r.pure && !quick {
			t.Errorf("scripts/test runs the tests of %s, which is pure, with the race detector", r.dir)
		}
	}
}

// startsGoroutines says whether the Go files of a folder, the tests too, have a go statement or a call of a method Go.
func startsGoroutines(t *testing.T, dir string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d Go files, %v", dir, len(files), err)
	}
	return slices.ContainsFunc(files, func(f string) bool {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`(?m)^\s*go \w|\.Go\(`).Match(b)
	})
}

// Each mode of scripts/test has a part of scripts/packages, or is among those that need none.
func TestModesHaveParts(t *testing.T) {
	m := regexp.MustCompile(`(?m)^unit\) ;;\n([a-z| -]+)\) ;;.*\n([a-z-]+)\) need `).FindStringSubmatch(read(t, "scripts/test"))
	if m == nil {
		t.Fatal("scripts/test does not say which modes need no packages")
	}
	none := append(strings.Split(m[1], " | "), "unit", m[2])
	parts := make(map[string]bool)
	for _, of := range packagesTable(t) {
		for _, p := range of {
			parts[p] = true
		}
	}
	for _, mode := range modes(t) {
		if !parts[mode] && !slices.Contains(none, mode) {
			t.Errorf("scripts/test %s asks scripts/need for the part %s, which scripts/packages does not have", mode, mode)
		}
	}
}
