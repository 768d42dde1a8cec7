// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// plainNames are titles of columns, and keys of the log, which a stranger understands.
const plainNames = `
	bridge, cause, certificate, connections, cpus, end, file, info, key, meaning, links upwards,
	action, address, after, all others same, all routes after, answer, api, applied, at, bytes, commit, config, cpu time, detail, driver, dropped, duration, ends_gleamd_after,
	ended, entries, error, event, expected, feature, fields, frames, from, go, groups, groups_ended, hosts, ifindex, in mid-transfer, interface, interval, keys, limit, link, mac,
	likely wrong, lost by driver, mac, members_lost, message, mtu, neighbour, neighbour_mtu, nodes, of payload, old_ifindex, old_mac, old_mtu, operators, packets, pid, platform, port, ports, prefixes,
	program, queue, queued bytes, queues, rate, reason, received, refused, registered, remedy, replica, required, result, rx frames, same, section, seconds, sender's link, sha-256, since,
	socket, started, state, switch, tier, time, times, to, took, tx frames, unchanged, url, use, user, version, vlan, why, xdp, af_xdp, zero copy, native xdp
`

// column matches what a title has besides words: a verb of fmt, and "a second".
var column = regexp.MustCompile(`%[-+# 0-9.]*[a-z]|/[sS]$`)

// names calls visit with the titles of columns of a file: the cells of texts with tabs that have no small letter, and the
// columns of package top; and with the keys of its log.
func names(t *testing.T, file string, src []byte, visit func(name string)) {
	f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	literal := func(e ast.Expr) string {
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			s, _ := strconv.Unquote(l.Value)
			return s
		}
		return ""
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if a, ok := n.Type.(*ast.ArrayType); ok {
				if id, ok := a.Elt.(*ast.Ident); ok && id.Name == "column" {
					for _, e := range n.Elts {
						visit(literal(e.(*ast.CompositeLit).Elts[0]))
					}
				}
			}
		case *ast.BasicLit:
			text := column.ReplaceAllString(strings.Trim(literal(n), "\n"), "")
			if !strings.Contains(text, "\t") || text != strings.ToUpper(text) || !strings.ContainsAny(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
				break
			}
			for _, cell := range strings.Split(text, "\t") {
				visit(cell)
			}
		case *ast.CallExpr:
			call, args := "", n.Args
			switch f := n.Fun.(type) {
			case *ast.Ident:
				call = f.Name
			case *ast.SelectorExpr:
				call = f.Sel.Name
				if x, ok := f.X.(*ast.Ident); ok && x.Name == "zap" && len(args) == 2 {
					visit(literal(args[0]))
				}
			}
			if call == "notify" && len(args) > 2 {
				for i := 2; i < len(args); i += 2 {
					visit(literal(args[i]))
				}
			}
		}
		return true
	})
}

// Each title of a column, and each key of the log, is a word of the glossary, or one that says itself.
func TestColumnsAreExplained(t *testing.T) {
	known, used := make(map[string]bool), make(map[string]bool)
	for line := range strings.Lines(read(t, "docs/GLOSSARY.md")) {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			for word := range strings.SplitSeq(cells[1], ",") {
				known[strings.Trim(strings.ToLower(word), " `")] = true
			}
		}
	}
	plain := make(map[string]bool)
	for word := range strings.SplitSeq(plainNames, ",") {
		plain[strings.TrimSpace(word)] = true
	}
	found := 0
	for file, src := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "test/") || strings.HasPrefix(file, "scripts/") {
			continue
		}
		names(t, file, src, func(name string) {
			name = strings.Join(strings.Fields(strings.ToLower(column.ReplaceAllString(name, ""))), " ")
			if name == "" {
				return
			}
			found++
			used[name] = true
			if !plain[name] && !known[name] && !known[strings.TrimSuffix(name, "s")] {
				t.Errorf("%s prints the column, or the key, %q: docs/GLOSSARY.md does not have it", file, name)
			}
		})
	}
	if found < 200 {
		t.Errorf("%d columns and keys: is this test still looking for the right thing?", found)
	}
	for name := range plain {
		if !used[name] || known[name] {
			t.Errorf("%q is no column and no key, or is in docs/GLOSSARY.md", name)
		}
	}
	_, section, _ := strings.Cut(read(t, "docs/GLOSSARY.md"), "\n## Columns and keys\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) == 5 && !strings.Contains(cells[1], "---") && strings.TrimSpace(cells[1]) != "word" {
			for word := range strings.SplitSeq(cells[1], ",") {
				if word = strings.Trim(strings.ToLower(word), " `"); !used[word] {
					t.Errorf("docs/GLOSSARY.md explains %q, which is no column and no key", word)
				}
			}
		}
	}
}
