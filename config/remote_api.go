// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/gleam-rdma/gleam/config/identity"
	"github.com/gleam-rdma/gleam/config/trusted"
)

// endpoint reads an address and a port.
func (d *decoder) endpoint(dst *netip.AddrPort) func(value) {
	return func(v value) {
		s, ok := d.str(v)
		if !ok {
			return
		}
		a, err := netip.ParseAddrPort(s)
		switch {
		case err != nil:
			d.failAt(v, "want an address and a port, such as 10.0.0.1:4798 or [fd00::1]:4798")
		case a.Port() == 0:
			d.failAt(v, "want a port from 1 to 65535")
		case a.Addr().IsMulticast() || a.Addr().Zone() != "" || a.Addr().Is4In6():
			d.failAt(v, "want a unicast address, without a zone")
		default:
			*dst = a
		}
	}
}

// identityFile reads the path of a file in PEM, and the file.
func (d *decoder) identityFile(dst **identity.File, read func(string, trusted.Reader) (*identity.File, error)) func(value) {
	return func(v value) {
		path, ok := d.str(v)
		if !ok {
			return
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(d.file), path)
		}
		f, err := read(path, d.files.Read)
		if err != nil {
			d.failAt(v, "%v", err)
			return
		}
		*dst = f
	}
}

// operators reads common names.
func (d *decoder) operators(dst *[]string, list value) {
	d.list(list, func(v value) {
		name, ok := d.str(v)
		switch {
		case !ok:
		case name == "" || len(name) > 64: // X.520, ub-common-name
			d.failAt(v, "want the common name of a certificate, of 1 to 64 bytes")
		case slices.Contains(*dst, name):
			d.failAt(v, "name is there already")
		default:
			*dst = append(*dst, name)
		}
	})
}

// remoteAPI checks the keys of the API over TCP against each other. seen are the keys of
// section api that the file has.
func (d *decoder) remoteAPI(a *API, v value, seen map[string]value) {
	listen, on := seen["listen"]
	for _, name := range []string{"certificate", "key", "ca"} {
		if _, ok := seen[name]; ok != on {
			at, why := listen, fmt.Sprintf("needs %s: the API over TCP speaks TLS with certificates of both ends alone", name)
			if ok {
				at, why = seen[name], "has no effect without listen; leave it out, or give listen"
			}
			d.fail(at.line, at.key, "", why)
		}
	}
	if at, ok := seen["advertise"]; ok && !on {
		d.fail(at.line, at.key, "", "has no effect without listen; leave it out, or give listen")
	} else if ok && a.Advertise.IsValid() && a.Advertise.Addr().IsUnspecified() {
		d.failAt(at, "is the address of nobody; want the one that others reach this switch by")
	} else if !ok && !a.Listen.Addr().IsUnspecified() {
		a.Advertise = a.Listen
	}
	if f := a.Identity(); f.Certificate != nil && f.Key != nil && f.CA != nil {
		if _, err := f.Server(); err != nil {
			d.fail(seen["key"].line, join(v.key, "key"), "", err.Error())
		}
	}
}
