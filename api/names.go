// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"github.com/gleam-rdma/gleam/config/identity"
	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/mcast"
)

// Types of packages that other modules cannot import.
type (
	Rate            = linkrate.Rate     // bit/s; 0: no limit
	Certificates    = identity.Files    // what one end of a connection over TCP has
	CertificateFile = identity.File     // one of them, which prints as its path
	GroupParams     = mcast.GroupParams // what a registration chooses beside address and members
	Param           = mcast.Param       // one of them, by its name
	ParamError      = mcast.ParamError  // what is wrong with one
)

// LoadCertificates reads the files of a client for DialTLS, all in PEM: its certificate, its
// private key, and the authorities that sign the certificates of servers. An error names
// the file, and what is wrong with its contents or its mode.
func LoadCertificates(certificate, key, ca string) (*Certificates, error) {
	return identity.Load(certificate, key, ca)
}
