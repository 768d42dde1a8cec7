// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/cmd/commands"
	labcommand "github.com/gleam-rdma/gleam/cmd/gleam-lab/command"
	"github.com/gleam-rdma/gleam/internal/cli"
)

// documents are the files for users, by path from the module's root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	docs := make(map[string]string)
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(root, f)
			if err != nil {
				t.Fatal(err)
			}
			docs[name] = string(text)
		}
	}
	return docs
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped = regexp.MustCompile("[^a-z0-9 _-]")
	tag     = regexp.MustCompile(`<[^>]*>`)
	named   = regexp.MustCompile(`<a id="([^"]+)"></a>`)
)

// anchors returns the anchors of a document: those that it names, and those of headings, as GitHub makes them.
func anchors(text string) (as []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		text := tag.ReplaceAllString(strings.ToLower(m[1]), "")
		as = append(as, strings.ReplaceAll(dropped.ReplaceAllString(text, ""), " ", "-"))
	}
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		as = append(as, m[1])
	}
	return as
}

// sitePages are the files that scripts/site/build makes pages of.
func sitePages(t *testing.T) map[string]bool {
	t.Helper()
	script, err := os.ReadFile(root + "/scripts/site/build")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^git ls-files -z (.*) \|$`).FindSubmatch(script)
	if list == nil {
		t.Fatal("scripts/site/build has no list of pages that this test can read")
	}
	files := exec.Command("sh", "-c", "git ls-files "+string(list[1]))
	files.Dir = root
	out, err := files.Output()
	if err != nil {
		t.Fatal(err)
	}
	pages := make(map[string]bool)
	for _, name := range strings.Fields(string(out)) {
		pages[name] = true
	}
	return pages
}

// TestLinks follows every relative link to a file, and to a heading in it. Each document is linked to by another
// one, and what a page of the site links to is in the site.
func TestLinks(t *testing.T) {
	docs, pages, n := documents(t), sitePages(t), 0
	linked := map[string]bool{"README.md": true}
	for name, text := range docs {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			n++
			at := name
			if target != "" {
				at = filepath.Join(filepath.Dir(name), target)
				linked[at] = linked[at] || at != name
			}
			if _, err := os.Stat(filepath.Join(root, at)); err != nil {
				t.Errorf("%s: link to %s: %v", name, m[1], err)
			} else if strings.Contains(filepath.Base(at), ".") && pages[name] && !pages[at] {
				t.Errorf("%s: link to %s: scripts/site/build does not copy that file", name, m[1])
			} else if anchor != "" && !slices.Contains(anchors(docs[at]), anchor) {
				t.Errorf("%s: link to %s: there is no such heading", name, m[1])
			}
		}
	}
	for name := range docs {
		if !linked[name] {
			t.Errorf("%s: no other document links to it", name)
		}
	}
	if n < 10 {
		t.Errorf("%d links found; are they looked for rightly?", n)
	}
}

var (
	fence   = regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```$")
	indent  = regexp.MustCompile(`(?m)^(?:    |\t)(.*)$`)
	inline  = regexp.MustCompile("`([^`]+)`")
	comment = regexp.MustCompile(`(^|\s)#.*`)
	quoted  = regexp.MustCompile(`'[^']*'|"[^"]*"`)
	ends    = regexp.MustCompile(`[;&<>()]|\s\|\s|…`)
)

// typed returns the command lines in a document's code, one program each.
func typed(text string) (lines []string) {
	var code []string
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		code = append(code, strings.Split(strings.ReplaceAll(m[1], "\\\n", " "), "\n")...)
	}
	text = fence.ReplaceAllString(text, "")
	for _, re := range []*regexp.Regexp{indent, inline} {
		for _, m := range re.FindAllStringSubmatch(text, -1) {
			code = append(code, m[1])
		}
	}
	for _, line := range code {
		for _, part := range ends.Split(comment.ReplaceAllString(line, ""), -1) {
			lines = append(lines, strings.TrimSpace(part))
		}
	}
	return lines
}

// program returns the arguments of a command line of the named program.
func program(line, name string) ([]string, bool) {
	words := strings.Fields(line)
	if len(words) > 0 && words[0] == "sudo" {
		words = words[1:]
	}
	if len(words) == 0 || strings.TrimPrefix(words[0], "bin/") != name {
		return nil, false
	}
	return words[1:], true
}

// check returns the fault in the arguments of a command: a subcommand or flag that does
// not exist. Alternatives are written a|b.
func check(c *cobra.Command, args []string) error {
	for i, arg := range args {
		if arg == "|" { // another program follows
			return nil
		}
		if !strings.HasPrefix(arg, "-") {
			if !c.HasSubCommands() {
				continue // an argument or a flag's value
			}
			for _, name := range strings.Split(arg, "|") {
				at := slices.IndexFunc(c.Commands(), func(s *cobra.Command) bool { return s.Name() == name })
				if at < 0 {
					return fmt.Errorf("%s has no command %s", c.CommandPath(), name)
				}
				if err := check(c.Commands()[at], args[i+1:]); err != nil {
					return err
				}
			}
			return nil
		}
		if arg == "-" { // standard input or output
			continue
		}
		if arg == "--" {
			return nil
		}
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		c.InitDefaultHelpFlag()
		c.InitDefaultVersionFlag()
		flag := c.Flag(name)
		if !strings.HasPrefix(arg, "--") {
			flag = c.Flags().ShorthandLookup(name[:1])
		}
		if flag == nil {
			return fmt.Errorf("%s has no flag %s", c.CommandPath(), arg)
		}
		if c.HasSubCommands() && flag.NoOptDefVal == "" && !strings.Contains(arg, "=") && i+1 < len(args) {
			return check(c, args[i+2:]) // its value is no subcommand
		}
	}
	return nil
}

// tree is the command gleam.
func tree() *cobra.Command {
	var out bytes.Buffer
	return cli.New(&cli.Env{Stdout: &out, Stderr: &out, Build: api.Version{Version: "v1"}}, slices.Concat(commands.OfGleam, labcommand.Commands)...)
}

// TestCommands looks up each gleam command that documents and help texts name,
// with its flags.
func TestCommands(t *testing.T) {
	gleam, n := tree(), 0
	look := func(where, text string) {
		for _, line := range typed(text) {
			if args, ok := program(line, "gleam"); ok {
				n++
				if err := check(gleam, args); err != nil {
					t.Errorf("%s: %s: %v", where, line, err)
				}
			}
		}
	}
	for name, text := range documents(t) {
		look(name, text)
	}
	if n < 40 {
		t.Errorf("%d commands found in documents; are they looked for rightly?", n)
	}
	var help func(c *cobra.Command)
	help = func(c *cobra.Command) {
		look(c.CommandPath()+" --help", strings.ReplaceAll(c.Long+"\n"+c.Example, "\n  ", "\n    "))
		for _, s := range c.Commands() {
			help(s)
		}
	}
	help(gleam)
}

// TestCheckFindsWrongCommands shows that check can fail.
func TestCheckFindsWrongCommands(t *testing.T) {
	for line, want := range map[string]string{
		"gleam stats -o json":                                   "",
		"sudo bin/gleam --socket /run/x group show 10.0.0.1":    "",
		"gleam perf write-bw|send-lat --group 10.0.0.1 -n 5 h":  "",
		"gleam events -f":                                       "",
		"gleam group sow 10.0.0.1":                              "gleam group has no command sow",
		"gleam --sockets /run/x stats":                          "gleam has no flag --sockets",
		"gleam perf write-bw|write-lot --listen":                "gleam perf has no command write-lot",
		"gleam demo --killmember C":                             "gleam demo has no flag --killmember",
		"gleam perf write-bw --listen --verify --key-file=k -Z": "gleam perf write-bw has no flag -Z",
	} {
		args, ok := program(line, "gleam")
		if !ok {
			t.Errorf("%s: no command of gleam", line)
		}
		if err := check(tree(), args); fmt.Sprint(err) != want && (err != nil || want != "") {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// TestDaemonFlags looks up each flag of gleamd that documents name in gleamd's help.
func TestDaemonFlags(t *testing.T) {
	help, err := exec.Command("go", "run", "../../cmd/gleamd", "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, help)
	}
	n := 0
	for name, text := range documents(t) {
		for _, line := range typed(text) {
			args, ok := program(line, "gleamd")
			for _, a := range args {
				if flag, _, _ := strings.Cut(a, "="); ok && strings.HasPrefix(a, "-") {
					n++
					if !regexp.MustCompile(`(^|[\s,])` + regexp.QuoteMeta(flag) + `[\s,]`).Match(help) {
						t.Errorf("%s: %s: gleamd has no flag %s", name, line, flag)
					}
				}
			}
		}
	}
	if n == 0 {
		t.Error("no flags of gleamd found")
	}
}

// TestTargets looks up each target of make that documents name.
func TestTargets(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for name, text := range documents(t) {
		for _, line := range typed(text) {
			args, _ := program(quoted.ReplaceAllString(line, ""), "make")
			if slices.Contains(args, "-C") {
				continue // another Makefile's
			}
			for _, a := range args {
				if strings.HasPrefix(a, "-") || strings.Contains(a, "=") {
					continue
				}
				n++
				if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(a) + `:`).Match(makefile) {
					t.Errorf("%s: %s: the Makefile has no target %s", name, line, a)
				}
			}
		}
	}
	if n < 10 {
		t.Errorf("%d targets found; are they looked for rightly?", n)
	}
}
