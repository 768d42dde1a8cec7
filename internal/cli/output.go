// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/theory/jsonpath"
)

// output is the -o of a command that prints what programs may want, too.
type output struct {
	format string
	path   *jsonpath.Path // the path of formatPath
	drawn  []string       // formats of this command alone, which it writes itself
}

// Formats that each command has.
const (
	formatTable = "table"    // a table for people; it fits the terminal, if it is one
	formatWide  = "wide"     // the table with all its columns
	formatJSON  = "json"     // JSON as the API has it
	formatYAML  = "yaml"     // the same in YAML
	formatPath  = "jsonpath" // =QUERY: what a query of RFC 9535 finds in the JSON, one a line
)

// values are what the flag takes, as help texts and errors name them.
func (o *output) values() []string {
	return append([]string{formatTable, formatWide, formatJSON, formatYAML, formatPath + "=QUERY"}, o.drawn...)
}

// list has the values as a sentence.
func (o *output) list() string {
	v := o.values()
	last := len(v) - 1
	return strings.Join(v[:last], ", ") + " or " + v[last]
}

// addTo gives c its -o flag.
func (o *output) addTo(c *cobra.Command, drawn ...string) {
	o.format, o.drawn = formatTable, drawn
	c.Flags().VarP(o, "output", "o", o.list())
	completions := o.values()
	completions[slices.Index(completions, formatPath+"=QUERY")] = formatPath + "="
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(completions, cobra.ShellCompDirectiveNoFileComp))
}

// String, Set and Type make *output a pflag.Value.
func (o *output) String() string { return o.format }

// Set implements pflag.Value.
func (o *output) Set(s string) error {
	if query, ok := strings.CutPrefix(s, formatPath+"="); ok {
		path, err := jsonpath.Parse(query)
		if err != nil {
			return fmt.Errorf("%q is no query such as $[*].ip (RFC 9535): %w", query, err)
		}
		o.format, o.path = formatPath, path
		return nil
	}
	if s == formatPath || !slices.Contains(o.values(), s) {
		return fmt.Errorf("want %s", o.list())
	}
	o.format = s
	return nil
}

// isText reports whether the output is for people.
func (o *output) isText() bool { return o.format == formatTable || o.format == formatWide }

// Type implements pflag.Value.
func (o *output) Type() string { return "format" }

// print writes v in a format for programs, or by table, whose columns are separated by tabs.
func (o *output) print(w io.Writer, v any, table func(io.Writer)) error {
	width := 0
	switch o.format {
	case formatJSON:
		return WriteJSON(w, v)
	case formatYAML:
		return writeYAML(w, v)
	case formatPath:
		return writeFound(w, o.path, v)
	case formatTable:
		width = columnsOf(w)
	}
	var text bytes.Buffer
	table(&text)
	return writeTable(w, text.String(), width)
}

// printLine writes one of many values as they come; line is it as a line of a table.
func (o *output) printLine(w io.Writer, v any, line string) error {
	switch o.format {
	case formatJSON:
		return json.NewEncoder(w).Encode(v)
	case formatYAML:
		if _, err := fmt.Fprintln(w, "---"); err != nil {
			return err
		}
		return writeYAML(w, v)
	case formatPath:
		return writeFound(w, o.path, v)
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// writeYAML writes v with the keys of its JSON, in their order.
func writeYAML(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		b, err = yaml.JSONToYAML(b)
	}
	if err != nil {
		return fmt.Errorf("as YAML: %w", err)
	}
	_, err = w.Write(b)
	return err
}

// writeFound writes what path finds in the JSON of v, one a line: text as it is, the rest as
// JSON.
func writeFound(w io.Writer, path *jsonpath.Path, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var input any
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&input); err != nil {
		return err
	}
	for _, found := range path.Select(input) {
		if s, ok := found.(string); ok {
			fmt.Fprintln(w, s)
		} else if err := json.NewEncoder(w).Encode(found); err != nil {
			return err
		}
	}
	return nil
}

// Output is the flag -o of a command outside of this package.
type Output struct{ output }

// AddTo gives c its -o flag. Formats that the command alone has, and writes itself, are in drawn.
func (o *Output) AddTo(c *cobra.Command, drawn ...string) { o.addTo(c, drawn...) }

// ForPeople reports that -o asks for no format for programs.
func (o *Output) ForPeople() bool { return o.isText() }

// Is reports that -o asks for a format of the command alone.
func (o *Output) Is(drawn string) bool { return o.format == drawn }

// Print writes v in a format for programs, or as text writes it.
func (o *Output) Print(w io.Writer, v any, text func(io.Writer) error) error {
	if o.isText() {
		return text(w)
	}
	return o.print(w, v, nil)
}

// PrintOne writes one of many values as they come, or as text writes it.
func (o *Output) PrintOne(w io.Writer, v any, text func(io.Writer) error) error {
	if o.isText() {
		return text(w)
	}
	return o.printLine(w, v, "")
}

// WriteJSON writes v as indented JSON, as all commands do with --output json.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// number24 shows a PSN or QPN.
func number24[N ~uint32](n N) string { return fmt.Sprintf("0x%06x", n) }

// addrText shows an address that may be missing.
func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return "-"
	}
	return a.String()
}

// text shows a string that may be empty.
func text(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// vlan shows a VLAN ID; 0 is untagged.
func vlan(v uint16) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprint(v)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
