// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package iface

import "github.com/safchain/ethtool"

// Features of interfaces, as ETHTOOL_GFEATURES names them.
const (
	FeatureLRO     = "rx-lro"
	FeatureHWGRO   = "rx-gro-hw"
	FeatureVLAN    = "rx-vlan-hw-parse"
	FeatureGROList = "rx-gro-list"
	FeatureUDPGRO  = "rx-udp-gro-forwarding"
)

// Features returns which features of an interface are on.
func Features(name string) (map[string]bool, error) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return e.Features(name)
}
