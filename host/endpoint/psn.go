// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"math/rand/v2"

	"github.com/gleam-rdma/gleam/rocev2"
)

// RandomPSN returns a random first PSN. It keeps delayed packets of an earlier connection
// under the same QPN from being accepted as new ones.
func RandomPSN() rocev2.PSN { return rocev2.PSN(rand.Uint32() & rocev2.PSNMask) }
