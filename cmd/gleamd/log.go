// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/gleam-rdma/gleam/config"
)

// newLogger logs to w as c says, or to the journal that has w, if there is one and c does not
// ask for JSON. config has checked the level's name.
func newLogger(c config.Log, w io.Writer, journal sendJournal) *zap.Logger {
	level, err := zapcore.ParseLevel(string(c.Level))
	if err != nil {
		level = zapcore.InfoLevel
	}
	e := zap.NewProductionEncoderConfig()
	e.EncodeTime = zapcore.ISO8601TimeEncoder
	e.EncodeDuration = zapcore.StringDurationEncoder
	enc := zapcore.NewJSONEncoder(e)
	if c.Format == config.LogConsole {
		e.EncodeLevel = zapcore.CapitalLevelEncoder
		enc = zapcore.NewConsoleEncoder(e)
	}
	core := zapcore.NewCore(enc, zapcore.Lock(zapcore.AddSync(w)), level)
	if journal != nil && c.Format == config.LogConsole {
		core = newJournalCore(level, journal, e, core)
	}
	return zap.New(core)
}
