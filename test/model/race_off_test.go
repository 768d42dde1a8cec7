// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package model

const raceEnabled = false
