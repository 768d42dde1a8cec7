// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/docs"
)

// rule is a row of the table of rules in docs/AGGREGATION.md.
type rule struct {
	Name string `json:"rule"`
	Text string `json:"text"`
	// Reason is what the rule is for.
	Reason string `json:"reason,omitempty"`
	// Sections are those of the document that say more about it.
	Sections []ruleSection `json:"sections,omitempty"`
}

type ruleSection struct {
	Title string `json:"title"`
	Text  string `json:"text"` // as the document has it
}

var (
	ruleRow   = regexp.MustCompile(`^\| (R\d{2,3}) \| (.*) \| (.*) \|$`)
	ruleNames = regexp.MustCompile(`R(\d{2,3})(?:-R(\d{2,3}))?`)
	rulePart  = regexp.MustCompile(`^\*\*R(\d{2,3})\.\*\* `)
)

// rulesOf returns the rules of a document in its order.
func rulesOf(document string) (list []rule) {
	about := map[string][]ruleSection{}
	for i, section := range strings.Split("\n"+document, "\n## ") {
		title, text, _ := strings.Cut(section, "\n")
		if title == "Rules" {
			for line := range strings.Lines(text) {
				if m := ruleRow.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
					list = append(list, rule{Name: m[1], Text: m[2], Reason: m[3]})
				}
			}
			continue
		}
		if i == 0 {
			continue
		}
		for _, name := range rulesNamed(title) {
			about[name] = append(about[name], ruleSection{title, partAbout(name, strings.TrimSpace(text))})
		}
	}
	for i := range list {
		list[i].Sections = about[list[i].Name]
	}
	return list
}

// rulesNamed returns the rules that a title names, of ranges each.
func rulesNamed(title string) (names []string) {
	for _, m := range ruleNames.FindAllStringSubmatch(title, -1) {
		first, _ := strconv.Atoi(m[1])
		last, err := strconv.Atoi(m[2])
		if err != nil {
			last = first
		}
		for n := first; n <= last; n++ {
			names = append(names, fmt.Sprintf("R%02d", n))
		}
	}
	return names
}

// partAbout returns the part of a section that is about a rule, which begins with its name: from
// there up to that of another rule; all, if there is no such part.
func partAbout(name, text string) string {
	var part []string
	in, parts := false, false
	for p := range strings.SplitSeq(text, "\n\n") {
		if m := rulePart.FindStringSubmatch(p); m != nil {
			in, parts = "R"+m[1] == name, true
		}
		if in {
			part = append(part, p)
		}
	}
	if !parts {
		return text
	}
	return strings.Join(part, "\n\n")
}

// findRule returns the rule that a user names: R43, r43 or 43.
func findRule(list []rule, name string) (*rule, error) {
	n, err := strconv.Atoi(strings.TrimLeft(name, "Rr"))
	i := slices.IndexFunc(list, func(r rule) bool { return r.Name == fmt.Sprintf("R%02d", n) })
	if err != nil || i < 0 {
		last := slices.MaxFunc(list, func(a, b rule) int { return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name)) })
		return nil, UsageErrorf("there is no rule %q: rules are named R01 to %s, without some", name, last.Name)
	}
	return &list[i], nil
}

func explainRuleCommand(env *Env) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "rule NAME...",
		Short: "The text of a rule of the switch, such as R43",
		Long: `Prints rules by which the switch decides, and why they are as they are, as
docs/AGGREGATION.md has them, which is the document of this version of gleam. Other
explanations, traces and counters name rules. It asks no daemon.`,
		Example: `  gleam explain rule R43
  gleam explain rule R12 R57 -o json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return UsageErrorf("%s: which rule? Such as R43", c.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
			for _, r := range rulesOf(docs.Aggregation) {
				names = append(names, r.Name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			all, list := rulesOf(docs.Aggregation), []rule{}
			for _, name := range args {
				r, err := findRule(all, name)
				if err != nil {
					return err
				}
				list = append(list, *r)
			}
			return out.print(env.Stdout, list, func(w io.Writer) { writeRules(w, list) })
		},
	}
	out.addTo(c)
	return c
}

// plainCell makes the text of a table's cell plain.
var plainCell = strings.NewReplacer("**", "", `\|`, "|")

func writeRules(w io.Writer, list []rule) {
	for i, r := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		wrap(w, r.Name, 7, plainCell.Replace(r.Text))
		if r.Reason != "" {
			wrap(w, "reason", 7, plainCell.Replace(r.Reason))
		}
		for _, s := range r.Sections {
			fmt.Fprintf(w, "\n%s\n\n%s\n", s.Title, s.Text)
		}
	}
}
