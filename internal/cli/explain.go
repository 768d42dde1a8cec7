// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
)

func explainCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain",
		Short: "What the switch would do to a packet and why, what an ACK waits for, what an error means",
	}
	c.AddCommand(explainPacketCommand(env), explainACKCommand(env), explainStatusCommand(env), explainCounterCommand(env), explainNAKCommand(env), explainRuleCommand(env), explainVendorErrCommand(env))
	return c
}

// rulesNote says where the rules are.
const rulesNote = "gleam explain rule R43 has the text of a rule; docs/AGGREGATION.md has all."

// textWidth is the width of texts, in columns.
const textWidth = 80

// wrap writes a text after a label, in lines of at most textWidth columns. What follows the first
// line is indented by indent columns, the width of the label.
func wrap(w io.Writer, label string, indent int, text string) {
	line := fmt.Sprintf("%-*s", indent, label)
	if len(label) >= indent {
		line = label + " "
	}
	empty := true
	for _, word := range strings.Fields(text) {
		if !empty && len(line)+1+len(word) > textWidth {
			fmt.Fprintln(w, strings.TrimRight(line, " "))
			line, empty = strings.Repeat(" ", indent), true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

// writeSteps writes steps with their rules in front, or in an own column if there are few.
func writeSteps(w io.Writer, indent string, steps []api.ExplainStep) {
	for _, s := range steps {
		wrap(w, indent+strings.Join(s.Rules, " "), len(indent)+13, s.Text)
	}
}

// stateText shows the state of a group in one line.
func stateText(s *api.ExplainedState) string {
	if !s.Source.IsValid() {
		return s.State + ", no source"
	}
	return fmt.Sprintf("%s, source %s, acknowledged %s, next %s", s.State, s.Source, number24(s.AckPSN), number24(s.NextPSN))
}

func explainACKCommand(env *Env) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "ack GROUP",
		Short: "What the next acknowledgement of a group waits for",
		Long: `Says what the next acknowledgement to the group's source waits for: which member,
since when and why, and what ends the wait. Nothing is sent or changed.`,
		Example: `  gleam explain ack 10.77.254.1`,
		Args:    oneGroup, ValidArgsFunction: env.completeGroups,
		RunE: func(c *cobra.Command, args []string) error {
			x, err := env.client().ExplainACK(c.Context(), netip.MustParseAddr(args[0])) // oneGroup has parsed it
			if err != nil {
				return err
			}
			return out.print(env.Stdout, x, func(w io.Writer) { writeACK(w, x) })
		},
	}
	out.addTo(c)
	return c
}

func writeACK(w io.Writer, x *api.ACKExplanation) {
	wrap(w, "group", 10, fmt.Sprintf("%s: %s", x.Group, stateText(&x.Now)))
	fmt.Fprintln(w)
	writeSteps(w, "", x.Steps)
	for i := range x.Waits {
		v := &x.Waits[i]
		fmt.Fprintln(w)
		who := "nobody"
		if len(v.Members) > 0 {
			who = v.Members[0].String()
		}
		if n := len(v.Members); n > 1 {
			who += fmt.Sprintf(" and %d more", n-1)
		}
		if v.Switch != "" {
			who += " behind switch " + v.Switch
		}
		if v.Port != "" {
			who += " at port " + v.Port
		}
		since := ""
		if v.Since != nil {
			since = fmt.Sprintf(", waited for since %s (%v)", v.Since.Format("15:04:05.000000"), seconds(v.Seconds).Round(time.Microsecond))
		}
		wrap(w, "waits for", 10, fmt.Sprintf("%s: packet %s and later ones, %d in all%s", who, number24(v.PSN), v.Lag, since))
		writeSteps(w, "  ", v.Why)
		if v.Switch != "" && v.API != "" {
			wrap(w, "", 15, fmt.Sprintf("gleam --address %s explain ack %s", v.API, x.Group))
		}
		fmt.Fprintln(w, "  what ends it")
		for _, e := range v.Ends {
			text := e.Text
			if e.Seconds != nil {
				text = fmt.Sprintf("In %v: %s", seconds(*e.Seconds).Round(time.Microsecond), e.Text)
			}
			wrap(w, "  "+strings.Join(e.Rules, " "), 15, text)
		}
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, rulesNote)
}
