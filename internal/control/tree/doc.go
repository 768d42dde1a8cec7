// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package tree has what a switch knows of the other switches: the neighbours that hellos have found, which
// are the legs of its groups' trees, and what operators see of them. It knows nothing of groups, and of the
// control loop that owns it.
package tree
