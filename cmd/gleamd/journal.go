// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
	"go.uber.org/zap/zapcore"
)

// sendJournal sends an entry to systemd's journal, as journal.Send does.
type sendJournal func(message string, priority journal.Priority, fields map[string]string) error

// systemJournal returns the journal that has this process's standard error; nil if something
// else has it.
func systemJournal() sendJournal {
	if ok, err := journal.StderrIsJournalStream(); err != nil || !ok {
		return nil
	}
	return journal.Send
}

// journalCore writes entries with their fields to the journal, by its own protocol. The
// journal has time and level; an entry's text has the fields once more, for those who read it.
type journalCore struct {
	zapcore.LevelEnabler
	send     sendJournal
	text     zapcore.Encoder
	fallback zapcore.Core // the core for what the journal does not take
	with     []zapcore.Field
}

func newJournalCore(level zapcore.LevelEnabler, send sendJournal, e zapcore.EncoderConfig, fallback zapcore.Core) *journalCore {
	e.TimeKey, e.LevelKey, e.ConsoleSeparator, e.SkipLineEnding = "", "", " ", true
	return &journalCore{LevelEnabler: level, send: send, text: zapcore.NewConsoleEncoder(e), fallback: fallback}
}

func (c *journalCore) With(fields []zapcore.Field) zapcore.Core {
	more := *c
	more.with = append(more.with[:len(more.with):len(more.with)], fields...)
	return &more
}

func (c *journalCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *journalCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	fields = append(c.with[:len(c.with):len(c.with)], fields...)
	line, err := c.text.EncodeEntry(e, fields)
	if err != nil {
		return err
	}
	defer line.Free()
	if c.send(line.String(), priorities[e.Level], journalFields(e.Message, fields)) == nil {
		return nil
	}
	return c.fallback.Write(e, fields)
}

func (c *journalCore) Sync() error { return nil }

// priorities are syslog's.
var priorities = map[zapcore.Level]journal.Priority{
	zapcore.DebugLevel: journal.PriDebug, zapcore.InfoLevel: journal.PriInfo, zapcore.WarnLevel: journal.PriWarning,
	zapcore.ErrorLevel: journal.PriErr, zapcore.DPanicLevel: journal.PriCrit, zapcore.PanicLevel: journal.PriCrit, zapcore.FatalLevel: journal.PriCrit,
}

// journalFields are an entry's fields, in the names that the journal takes, and its text without them.
func journalFields(message string, fields []zapcore.Field) map[string]string {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(values)
	}
	found := make(map[string]string, len(values.Fields)+2)
	for key, v := range values.Fields {
		found[journalName(key)] = journalValue(v)
	}
	found["SYSLOG_IDENTIFIER"], found["GLEAM_MESSAGE"] = "gleamd", message
	return found
}

// ownNames are those of systemd.journal-fields(7) that mean something else than an entry's fields.
var ownNames = map[string]bool{
	"MESSAGE": true, "MESSAGE_ID": true, "PRIORITY": true, "CODE_FILE": true, "CODE_LINE": true, "CODE_FUNC": true, "ERRNO": true,
	"INVOCATION_ID": true, "USER_INVOCATION_ID": true, "SYSLOG_FACILITY": true, "SYSLOG_IDENTIFIER": true, "SYSLOG_PID": true,
	"SYSLOG_TIMESTAMP": true, "SYSLOG_RAW": true, "DOCUMENTATION": true, "TID": true, "UNIT": true, "USER_UNIT": true, "OBJECT_PID": true,
}

// maxJournalName is the number of letters that the journal takes.
const maxJournalName = 64

// journalName is a field's key in the letters that the journal takes: port is PORT.
func journalName(key string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, key)
	if name == "" || name[0] < 'A' || name[0] == '_' || ownNames[name] {
		name = "GLEAM_" + name
	}
	return name[:min(len(name), maxJournalName)]
}

// journalValue is a value as text: scalars as they are, others as JSON.
func journalValue(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case fmt.Stringer:
		return v.String()
	case []any, map[string]any:
		if text, err := json.Marshal(v); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(v)
}
