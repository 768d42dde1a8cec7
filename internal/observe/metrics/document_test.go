// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"strings"
)

// document returns docs/METRICS.md: the catalog, in words.
func document() string {
	var b strings.Builder
	b.WriteString(`# Metrics

<!-- Made of the catalog in the code: go test ./internal/observe/metrics -run TestDocument -write -->

gleamd has metrics for Prometheus. They are off until ` + "`metrics:`" + ` in the configuration says where they are served:

` + "```yaml" + `
metrics: {listen: 127.0.0.1:9477}    # http://127.0.0.1:9477/metrics
` + "```" + `

* A loopback address needs no more. Any other address needs ` + "`token_file`" + `, or ` + "`certificate`, `key` and `ca`" + ` for mutual TLS, as for the live page ([WEB.md](WEB.md#readers)).
  Prometheus gives the token as the password of ` + "`basic_auth`" + `, with any name, or as the credentials of ` + "`authorization`" + `.
* ` + "`socket: true`" + ` serves them at the API's Unix socket, too, to users with the right to read: ` + "`curl --unix-socket /run/gleam/gleamd.sock http://switch/metrics`" + `.
* ` + "`groups: 50`" + ` bounds the groups that have series of their own: those that stall first, then those with most traffic. Totals are of all groups. ` + "`gleam_groups_left_out`" + ` says how many have none.
* Names of Prometheus's conventions: seconds, bytes, counters end in ` + "`_total`" + `. A counter begins at 0 again when gleamd starts; ` + "`gleam_restart_epoch`" + ` is another one then.
* A scrape asks the switch once. Scrapes within half a second get the same answer, and at most a tenth of the time is spent on answers. [PERFORMANCE.md](PERFORMANCE.md#observation) says what it costs.

[contrib/prometheus](../contrib/prometheus) has a configuration for Prometheus and rules for alerts, [contrib/grafana](../contrib/grafana) a dashboard. ` + "`make test-metrics`" + ` has Debian's Prometheus scrape
a lab's switch, kills a member under traffic, and waits for the alert.

`)
	for _, s := range catalog {
		fmt.Fprintf(&b, "## %s\n\n", s.Title)
		if s.Text != "" {
			fmt.Fprintf(&b, "%s\n\n", s.Text)
		}
		b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
		for _, m := range s.Metrics {
			labels := strings.Join(m.Labels, ", ")
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, labels, m.Help)
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
