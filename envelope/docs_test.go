// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/config"
)

// readDoc returns a page of docs.
func readDoc(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// table returns the rows of the tables in a section of a page, cell by cell, by
// their first cell. A row that is there twice fails the test.
func table(t *testing.T, doc, section string) map[string][]string {
	t.Helper()
	_, text, ok := strings.Cut(doc, "\n## "+section+"\n")
	if !ok {
		t.Fatalf("no section %q", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	rows := map[string][]string{}
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		var cells []string
		for _, c := range strings.Split(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(c))
		}
		if _, twice := rows[cells[0]]; twice && cells[0] != "what" && cells[0] != "limit" {
			t.Errorf("section %q has %q twice", section, cells[0])
		}
		rows[cells[0]] = cells[1:]
	}
	return rows
}

// The numbers of PROTOCOL.md §8 are those of the code, and, where a key of
// gleamd's configuration is named, of its default.
func TestDocumentedTimesAndLimits(t *testing.T) {
	r := RegistrarConfig{Secret: [SecretLen]byte{1}, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}, Auth: testAuth()}
	if err := r.setDefaults(); err != nil {
		t.Fatal(err)
	}
	m := MasterConfig{Local: masterAddr, Auth: testAuth()}
	if err := m.setDefaults(); err != nil {
		t.Fatal(err)
	}
	member, err := NewMember(MemberConfig{Local: masterAddr, Auth: testAuth()})
	if err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	want := map[string][]any{
		"retransmission: first wait / longest":                                {m.RetryMin, m.RetryMax},
		"deadline of a registration, leave or delete":                         {m.Deadline},
		"deadline for the Confirms of an update's new members":                {m.Deadline},
		"reassembly, since the last new segment":                              {r.ReassemblyTimeout},
		"member location: asked again every / given up after":                 {r.LocateRetry, r.LocateTimeout},
		"lease: default / least / most":                                       {r.DefaultLease, r.MinLease, r.MaxLease},
		"Gone until acknowledged: first wait / longest":                       {r.EventRetry, 16 * r.EventRetry},
		"unauthenticated hints, least time between two":                       {r.HintInterval},
		"repetition between switches: first wait / longest":                   {r.Switch.Retry, 16 * r.Switch.Retry},
		"each of the two steps of a registration through a tree, at its root": {r.Switch.Timeout},
		"two rebuilds of a group, least time between / asked for again after": {rebuildInterval, rebuildRetry},
		"End and Gone to a switch that does not answer":                       {endTime},
		"an adjacency that is lost, before the groups over it end":            {r.Switch.Grace},
		"switches one behind another, from the root":                          {maxHops},
		"cookies: taken for at least / at most":                               {r.CookiePeriod, 2 * r.CookiePeriod},
		"epochs above the newest known one":                                   {int(r.EpochStep)},
		"UDP port":                                                            {int(r.Port)},
		"groups":                                                              {r.MaxGroups},
		"members of a group":                                                  {r.MaxMembers},
		"envelopes a second from one port":                                    {c.Limits.EnvelopesPerPort},
		"envelopes a second from one address of a port":                       {c.Limits.EnvelopesPerAddress},
		"registrations that are put together at once":                         {r.MaxPending},
		"groups whose epochs are remembered":                                  {r.MaxEpochs},
		"Gone that wait for an Ack":                                           {r.MaxEvents},
		"times that a Gone is sent":                                           {r.EventTries},
		"what":                                                                nil,
		"limit":                                                               nil,
	}
	rows := table(t, readDoc(t, "PROTOCOL.md"), "8. Time and limits")
	for name, values := range want {
		cells, ok := rows[name]
		if !ok {
			t.Errorf("PROTOCOL.md §8 has no row %q", name)
		}
		if values == nil {
			continue
		}
		if got := strings.Split(cells[0], " / "); len(got) != len(values) {
			t.Errorf("%s: %q, want %v", name, cells[0], values)
		} else {
			for i := range got {
				if v := documented(t, got[i], values[i]); v != values[i] {
					t.Errorf("%s: PROTOCOL.md has %q, the code %v", name, got[i], values[i])
				}
			}
		}
	}
	for name := range rows {
		if _, ok := want[name]; !ok {
			t.Errorf("PROTOCOL.md §8 has %q, which nothing compares with the code", name)
		}
	}
	// gleamd passes its configuration on: the two have one default.
	for key, same := range map[string]bool{
		"envelope.lease_max":          c.Envelope.LeaseMax == r.MaxLease,
		"envelope.locate_timeout":     c.Envelope.LocateTimeout == r.LocateTimeout,
		"envelope.udp_port":           c.Envelope.UDPPort == r.Port,
		"limits.groups":               c.Limits.Groups == r.MaxGroups,
		"limits.members_per_group":    c.Limits.MembersPerGroup == r.MaxMembers,
		"the member's retransmission": member.cfg.RetryMin == m.RetryMin && member.cfg.RetryMax == m.RetryMax && member.cfg.Deadline == m.Deadline,
	} {
		if !same {
			t.Errorf("%s has two defaults", key)
		}
	}
}

// documented is a cell as a value like like.
func documented(t *testing.T, cell string, like any) any {
	t.Helper()
	if _, ok := like.(int); ok {
		n, err := strconv.Atoi(cell)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	d, err := time.ParseDuration(strings.ReplaceAll(strings.ReplaceAll(cell, "min", "m"), " ", ""))
	if err != nil {
		t.Error(err)
	}
	return d
}

// Every reason of a Reject, and no other number, has a row in PROTOCOL.md §7; whether it has
// a value is as in Reason's comments.
func TestDocumentedReasons(t *testing.T) {
	rows := table(t, readDoc(t, "PROTOCOL.md"), "7. Reasons of a Reject")
	delete(rows, "#")
	last := 0
	for r := Reason(1); r < NumReasons; r++ {
		cells, ok := rows[strconv.Itoa(int(r))]
		if !ok {
			t.Errorf("PROTOCOL.md §7 has no row for %d, %v", r, r)
			continue
		}
		last++
		delete(rows, strconv.Itoa(int(r)))
		if said := (&Problem{Reason: r, Value: 77}).Error() != (&Problem{Reason: r}).Error(); said != (cells[1] != "") {
			t.Errorf("%d, %v: PROTOCOL.md §7 says of the value %q", r, r, cells[1])
		}
	}
	if len(rows) > 0 || last == 0 {
		t.Errorf("PROTOCOL.md §7 has %d reasons, and %v", last, rows)
	}
}

// Statuses and reasons for a Gone are in PROTOCOL.md §4 with their numbers.
func TestDocumentedNumbers(t *testing.T) {
	doc := readDoc(t, "PROTOCOL.md")
	for what, words := range map[string]map[int]string{
		"status": {0: "confirmed", 1: "not joined", 2: "QPN", 3: "sq_psn", 4: "rq_psn", 5: "virtual QPN", 6: "path MTU", 7: "WRITE window"},
		"why":    {1: "deleted", 2: "lease expired", 3: "replaced by a newer epoch", 4: "left", 5: "removed by the master", 6: "evicted", 7: "group failed", 8: "a switch of the tree was lost"},
	} {
		i := strings.Index(doc, "    "+what+" ")
		if i < 0 {
			t.Fatalf("PROTOCOL.md §4 has no %s", what)
		}
		text := strings.Join(strings.Fields(doc[i:i+500]), " ")
		for n, word := range words {
			if !regexp.MustCompile(fmt.Sprintf(`\b%d %s\b`, n, regexp.QuoteMeta(word))).MatchString(text) {
				t.Errorf("%s: no \"%d %s\" in %q", what, n, word, text)
			}
			if name := map[string]string{"status": Status(n).String(), "why": EndReason(n).String()}[what]; !strings.Contains(name, strings.TrimPrefix(word, "not ")) {
				t.Errorf("%s %d is %q in the code, %q in PROTOCOL.md §4", what, n, name, word)
			}
		}
	}
}

// No message is longer than a switch takes, however large the path's MTU is.
func TestSegmentsFitASwitch(t *testing.T) {
	reg := withWindows(sample(1, 300))
	segs, err := reg.Segments(9000)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range segs {
		b, err := Append(nil, &Message{Header: Header{
			Epoch: 1, Seq: uint16(i), Total: uint16(len(segs)), Group: reg.Group, ReplyTo: masterAddr,
		}, Body: s}, testKeys, 7)
		if err != nil || len(b) > MaxLen {
			t.Errorf("segment %d has %d bytes (%v)", i, len(b), err)
		}
	}
	if doc := readDoc(t, "PROTOCOL.md"); !strings.Contains(doc, fmt.Sprintf("has at most %d bytes (`MaxLen`)", MaxLen)) {
		t.Error("PROTOCOL.md §9 has another length")
	}
}
