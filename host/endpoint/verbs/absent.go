// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !verbs || !cgo

package verbs

import "github.com/gleam-rdma/gleam/host/endpoint"

// Built says whether this program has the backend.
const Built = false

func open(Config) (endpoint.Device, error) { return nil, ErrNotBuilt }
