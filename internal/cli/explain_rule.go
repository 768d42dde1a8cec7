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

// findRule returns the rule that a user names: R43, r43 or 43.
func findRule(list []docs.Rule, name string) (*docs.Rule, error) {
	n, err := strconv.Atoi(strings.TrimLeft(name, "Rr"))
	i := slices.IndexFunc(list, func(r docs.Rule) bool { return r.Name == fmt.Sprintf("R%02d", n) })
	if err != nil || i < 0 {
		last := slices.MaxFunc(list, func(a, b docs.Rule) int {
			return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
		})
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
docs/AGGREGATION.md of this version of gleam has them, with the tests to read first and
the details of any document. Other explanations, traces and counters name rules. It asks
no daemon.`,
		Example: `  gleam explain rule R43
  gleam explain rule R12 R57 -o json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return UsageErrorf("%s: which rule? Such as R43", c.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
			for _, r := range docs.Rules() {
				names = append(names, r.Name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			all, list := docs.Rules(), []docs.Rule{}
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

var (
	markdownLink = regexp.MustCompile(`\[([^\]]+)\]\([^)]+\)`)
	emphasis     = regexp.MustCompile(`\*{1,2}([^*\s](?:[^*]*[^*\s])?)\*{1,2}`)
)

// plainText returns a paragraph of a document without links and emphasis.
func plainText(text string) string {
	return emphasis.ReplaceAllString(markdownLink.ReplaceAllString(text, "$1"), "$1")
}

func writeRules(w io.Writer, list []docs.Rule) {
	const indent = 7
	for i, r := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		wrap(w, r.Name, indent, r.Title+" ("+r.Chapter+")")
		fmt.Fprintln(w)
		wrap(w, "", indent, plainText(r.Text))
		fmt.Fprintln(w)
		wrap(w, "tests", indent, strings.Join(r.Tests, ", "))
		for _, s := range r.Sections {
			fmt.Fprintf(w, "\ndocs/%s: %s\n", s.Page, s.Title)
			for p := range strings.SplitSeq(s.Text, "\n\n") {
				fmt.Fprintln(w)
				if strings.HasPrefix(p, "|") || strings.HasPrefix(p, "- ") {
					fmt.Fprintln(w, p)
				} else {
					wrap(w, "", 2, plainText(p))
				}
			}
		}
	}
}
