// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// scrubber replaces what identifies hosts by numbered names, the same name for the same thing.
type scrubber struct {
	own   []replacement
	names map[string]string
	count map[string]int
}

// replacement is of the name of a host, or of a file.
type replacement struct {
	of *regexp.Regexp
	by string
}

func newScrubber() *scrubber {
	return &scrubber{names: map[string]string{}, count: map[string]int{}}
}

var (
	macs    = regexp.MustCompile(`enx[0-9a-f]{12}|\b[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}\b`)
	ips     = regexp.MustCompile(`[0-9A-Fa-f]*(?::[0-9A-Fa-f]*){2,}(?:\.[0-9]+){0,3}|\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b`)
	secrets = regexp.MustCompile(`(?i)\b((?:r_?key|secret|password)"?(?: of|[:=])*\s*"?)(?:hex:)?(?:0x)?[0-9a-f]{2,}\b`)
)

// hosts has the names of hosts replaced.
func (s *scrubber) hosts(names []string) {
	for i, n := range names {
		if _, err := netip.ParseAddr(n); err != nil && s != nil {
			s.own = append(s.own, replacement{regexp.MustCompile(`\b` + regexp.QuoteMeta(n) + `\b`), fmt.Sprintf("receiver-%d", i+1)})
		}
	}
}

// file has a path replaced.
func (s *scrubber) file(path, by string) {
	if s != nil && strings.Contains(path, "/") {
		s.own = append(s.own, replacement{regexp.MustCompile(regexp.QuoteMeta(path)), by})
	}
}

// text returns a text without what identifies hosts. Nil replaces R_Keys and other secrets alone.
func (s *scrubber) text(t string) string {
	t = secrets.ReplaceAllString(t, "${1}0")
	if s == nil {
		return t
	}
	for _, r := range s.own {
		t = r.of.ReplaceAllLiteralString(t, r.by)
	}
	t = macs.ReplaceAllStringFunc(t, func(m string) string { return s.name("mac", strings.ToLower(m)) })
	return ips.ReplaceAllStringFunc(t, func(m string) string {
		addr := strings.TrimRight(m, ":") // what ends a sentence's part
		if strings.HasSuffix(m, "::") {
			addr = m
		}
		ip, err := netip.ParseAddr(addr)
		if err != nil || ip.IsUnspecified() || ip.IsLoopback() {
			return m
		}
		return s.name("ip", ip.Unmap().String()) + strings.TrimPrefix(m, addr)
	})
}

func (s *scrubber) name(kind, of string) string {
	if s.names[of] == "" {
		s.count[kind]++
		s.names[of] = fmt.Sprintf("%s-%d", kind, s.count[kind])
	}
	return s.names[of]
}

// step returns a step without what identifies hosts.
func (s *scrubber) step(x *Step) Step {
	y := *x
	y.Name = s.text(x.Name)
	y.Command, y.Reason, y.Next, y.Output = s.text(x.Command), s.text(x.Reason), s.text(x.Next), s.text(x.Output)
	if len(x.Result) > 0 {
		if y.Result = []byte(s.text(string(x.Result))); !json.Valid(y.Result) {
			y.Output, y.Result = string(y.Result), nil
		}
	}
	return y
}
