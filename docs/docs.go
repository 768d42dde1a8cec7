// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package docs has documents for programs that print parts of them.
package docs

import _ "embed" // for Aggregation

// Aggregation is AGGREGATION.md, which has the rules of the switch.
//
//go:embed AGGREGATION.md
var Aggregation string
