// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
	"go.uber.org/zap"

	"github.com/gleam-rdma/gleam/config"
)

// entry is what a journal was sent.
type entry struct {
	message  string
	priority journal.Priority
	fields   map[string]string
}

// fakeJournal keeps what it is sent, or refuses it with err.
type fakeJournal struct {
	entries []entry
	err     error
}

func (j *fakeJournal) send(message string, p journal.Priority, fields map[string]string) error {
	if j.err == nil {
		j.entries = append(j.entries, entry{message, p, fields})
	}
	return j.err
}

// An entry has its level, text and fields in the journal, and nothing on standard error.
func TestJournalFields(t *testing.T) {
	var j fakeJournal
	var stderr buffer
	log := newLogger(config.Log{Level: config.LogInfo, Format: config.LogConsole}, &stderr, j.send)
	log.Debug("hidden")
	log.With(zap.String("port", "eth1")).Sugar().Warnw("member removed", "group", netip.MustParseAddr("10.77.254.1"),
		"member", netip.MustParseAddr("10.77.0.2"), "error", errors.New("silent"), "after", 2*time.Second, "missing", []int{3, 4}, "note", "of the host\nPRIORITY=0", "_x", 1)
	if len(j.entries) != 1 || stderr.String() != "" {
		t.Fatalf("%+v, standard error %q", j.entries, stderr.String())
	}
	e := j.entries[0]
	for name, want := range map[string]string{
		"GROUP": "10.77.254.1", "MEMBER": "10.77.0.2", "PORT": "eth1", "ERROR": "silent", "AFTER": "2s", "MISSING": "[3,4]",
		"SYSLOG_IDENTIFIER": "gleamd", "GLEAM__X": "1", "GLEAM_MESSAGE": "member removed", "NOTE": "of the host\nPRIORITY=0",
	} {
		if got := e.fields[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if e.priority != journal.PriWarning || !strings.HasPrefix(e.message, "member removed {") || !strings.Contains(e.message, `"member": "10.77.0.2"`) {
		t.Errorf("priority %d, %q", e.priority, e.message)
	}
	if strings.Contains(e.message, "\n") {
		t.Errorf("a line of its own from a field: %q", e.message)
	}
}

// What the journal does not take is on standard error; JSON is there in any case.
func TestJournalFallsBack(t *testing.T) {
	j := fakeJournal{err: errors.New("message too long")}
	var stderr buffer
	newLogger(config.Log{Level: config.LogInfo, Format: config.LogConsole}, &stderr, j.send).Info("gleamd is ready", zap.String("socket", "s"))
	if s := stderr.String(); !strings.Contains(s, "INFO\tgleamd is ready\t{\"socket\": \"s\"}") {
		t.Errorf("standard error %q", s)
	}
	var taken fakeJournal
	var lines buffer
	newLogger(config.Log{Level: config.LogInfo, Format: "json"}, &lines, taken.send).Info("gleamd is ready")
	if s := lines.String(); len(taken.entries) != 0 || !strings.HasPrefix(s, "{") {
		t.Errorf("journal %v, standard error %q", taken.entries, s)
	}
}

// Each key becomes a name that the journal takes, and none that means something to it.
func FuzzJournalName(f *testing.F) {
	for _, s := range []string{"port", "", "_pid", "0x", "message", "MESSAGE", "größe", "a-b.c", strings.Repeat("x", 100)} {
		f.Add(s)
	}
	valid := regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)
	f.Fuzz(func(t *testing.T, key string) {
		if name := journalName(key); !valid.MatchString(name) || ownNames[name] {
			t.Errorf("%q is %q", key, name)
		}
	})
}

func TestJournalNames(t *testing.T) {
	for key, want := range map[string]string{"port": "PORT", "since_start": "SINCE_START", "message": "GLEAM_MESSAGE", "_pid": "GLEAM__PID", "": "GLEAM_", "priority": "GLEAM_PRIORITY"} {
		if got := journalName(key); got != want {
			t.Errorf("%q is %q, want %q", key, got, want)
		}
	}
}

// Standard error is the journal's only if JOURNAL_STREAM says so.
func TestNoJournal(t *testing.T) {
	for _, stream := range []string{"", "1:1", "nonsense"} {
		t.Setenv("JOURNAL_STREAM", stream)
		if systemJournal() != nil {
			t.Errorf("JOURNAL_STREAM=%q: a journal", stream)
		}
	}
}
