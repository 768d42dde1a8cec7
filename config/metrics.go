// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/config/identity"
)

// MaxMetricsGroups bounds Metrics.Groups.
const MaxMetricsGroups = 1000

// Metrics configures the metrics for Prometheus. The fields that Web has, too, mean the same.
type Metrics struct {
	Listen      netip.AddrPort `yaml:"listen"`
	Names       []string       `yaml:"names"`
	Certificate *identity.File `yaml:"certificate"`
	Key         *identity.File `yaml:"key"`
	CA          *identity.File `yaml:"ca"`
	Token       Secret         `yaml:"token_file"`

	Socket bool `yaml:"socket"` // they are served at the API's Unix socket, too
	Groups int  `yaml:"groups"` // the most that have metrics of their own
}

// Page returns how the metrics are served by TCP.
func (m *Metrics) Page() *Web {
	return &Web{Listen: m.Listen, Names: m.Names, Certificate: m.Certificate, Key: m.Key, CA: m.CA, Token: m.Token}
}

// On reports whether metrics are served.
func (m *Metrics) On() bool { return m.Socket || m.Listen.IsValid() }

func (d *decoder) metrics(m *Metrics, v value) {
	var w Web
	d.page(&w, v,
		field{"socket", d.boolean(&m.Socket)},
		field{"groups", d.int(&m.Groups, 0, MaxMetricsGroups)})
	m.Listen, m.Names, m.Certificate, m.Key, m.CA, m.Token = w.Listen, w.Names, w.Certificate, w.Key, w.CA, w.Token
}
