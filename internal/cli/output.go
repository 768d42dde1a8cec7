// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// output is the -o of every command that reads.
type output struct{ format string }

const (
	formatTable = "table"
	formatJSON  = "json"
)

// addTo gives c its -o flag.
func (o *output) addTo(c *cobra.Command) {
	o.format = formatTable
	c.Flags().VarP(o, "output", "o", "table or json")
	c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{formatTable, formatJSON}, cobra.ShellCompDirectiveNoFileComp))
}

// String, Set and Type make *output a pflag.Value.
func (o *output) String() string { return o.format }

// Set implements pflag.Value.
func (o *output) Set(s string) error {
	if s != formatTable && s != formatJSON {
		return fmt.Errorf("want %s or %s", formatTable, formatJSON)
	}
	o.format = s
	return nil
}

// Type implements pflag.Value.
func (o *output) Type() string { return "format" }

// print writes v as JSON, or by table.
func (o *output) print(w io.Writer, v any, table func(*tabwriter.Writer)) error {
	if o.format == formatJSON {
		return WriteJSON(w, v)
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	table(tw)
	return tw.Flush()
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
