// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"github.com/gleam-rdma/gleam/dataplane/iface"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
)

// machine is the computer that is looked at, as a switch or as a host.
type machine struct{ *checks.Machine }

// thisMachine is the computer that the process runs on.
func thisMachine() *machine { return &machine{checks.This()} }

func (m *machine) read(path string) string    { return m.Read(path) }
func (m *machine) names(path string) []string { return m.Names(path) }

// checkClock checks that the time is cheap to read and right.
func (m *machine) checkClock(r *Report) {
	var o checks.Outcome
	m.CheckClock(&o)
	r.take(&o)
	r.add(checks.CheckClock)
}

// Features of a host's interface.
const (
	featureLRO     = iface.FeatureLRO
	featureGROList = iface.FeatureGROList
	featureUDPGRO  = iface.FeatureUDPGRO
)

// features returns which features of an interface are on.
func features(name string) (map[string]bool, error) { return iface.Features(name) }
