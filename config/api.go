// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io/fs"
	"net/netip"

	"github.com/gleam-rdma/gleam/config/identity"
)

// API configures the Unix socket that gleam talks to, and the API over TCP. Without ReadGroup all
// users that Mode lets connect may read; without a valid Listen there is no API over TCP.
type API struct {
	Socket    string      `yaml:"socket" kind:"socket" default:"/run/gleam/gleamd.sock"`
	Mode      fs.FileMode `yaml:"mode" default:"\"0660\""`
	Group     string      `yaml:"group" kind:"group" default:"gleam"`
	ReadGroup string      `yaml:"read_group" kind:"group" example:"wheel"`

	// The API over TCP, for `gleam group tree` and operators of several switches; without
	// listen there is none. It speaks TLS 1.3 alone, and to clients alone that have a
	// certificate for clients which one of the authorities in ca has signed. They may read.
	// An address of this machine and a port, such as 10.0.0.1:4798 or "[fd00::1]:4798".
	Listen netip.AddrPort `yaml:"listen" example:"10.0.0.1:4798"`
	// The address that neighbour switches, and by them gleam, learn of this API: that of
	// listen, unless it is 0.0.0.0 or "::".
	Advertise netip.AddrPort `yaml:"advertise" example:"10.0.0.1:4798"`
	// Certificate for servers, with the address of advertise or listen in it, its private key,
	// and the authorities for certificates of clients: PEM, relative paths start from this
	// file's folder. Nobody else may change these files, and everyone may not read the key.
	// A change closes all connections.
	Certificate *identity.File `yaml:"certificate" example:"api.crt" reload:"applied"`
	Key         *identity.File `yaml:"key" kind:"private" example:"api.key" reload:"applied"`
	CA          *identity.File `yaml:"ca" example:"api-ca.crt" reload:"applied"`
	// The common names of certificates whose holders may change groups and ports too.
	Operators []string `yaml:"operators" kind:"common name" unique:"name" default:"[]" reload:"applied"`
}

// Identity returns the files of the API over TCP.
func (a *API) Identity() *identity.Files {
	return &identity.Files{Certificate: a.Certificate, Key: a.Key, CA: a.CA}
}

// Web configures the live page. Without a valid Listen there is none, without Certificate and
// Key it is served by plain HTTP.
type Web struct {
	// A loopback address and a port. Any other address needs token_file, or certificate, key
	// and ca.
	Listen netip.AddrPort `yaml:"listen" example:"127.0.0.1:8477"`
	// DNS names by which browsers may ask for the page, beside localhost and addresses. A
	// request for another name is refused: a foreign page could have made it (DNS rebinding).
	Names []string `yaml:"names" kind:"host" unique:"name" default:"[]"`
	// The page's certificate and its private key, for HTTPS; and, for mutual TLS, the
	// authorities for certificates of browsers. Files as in api.
	Certificate *identity.File `yaml:"certificate" example:"web.crt"`
	Key         *identity.File `yaml:"key" kind:"private" example:"web.key"`
	CA          *identity.File `yaml:"ca" example:"web-ca.crt"`
	// A file of hexadecimal digits (openssl rand -hex 32) that browsers ask their user for as
	// the password. The name does not matter. Without TLS it crosses the network as it is.
	Token Secret `yaml:"token_file" kind:"file" example:"web.token"`
}

// Identity returns the files of TLS; nil for plain HTTP.
func (w *Web) Identity() *identity.Files {
	if w.Certificate == nil || w.Key == nil {
		return nil
	}
	return &identity.Files{Certificate: w.Certificate, Key: w.Key, CA: w.CA}
}

// Metrics configures the metrics for Prometheus. The fields that Web has, too, mean the same.
type Metrics struct {
	// As the keys of web, for scrapers in place of browsers.
	Listen      netip.AddrPort `yaml:"listen" example:"127.0.0.1:9477"`
	Names       []string       `yaml:"names" kind:"host" unique:"name" default:"[]"`
	Certificate *identity.File `yaml:"certificate" example:"metrics.crt"`
	Key         *identity.File `yaml:"key" kind:"private" example:"metrics.key"`
	CA          *identity.File `yaml:"ca" example:"metrics-ca.crt"`
	// The token is the password of Prometheus's basic_auth, or its authorization credentials.
	Token Secret `yaml:"token_file" kind:"file" example:"metrics.token"`
	// true: also at the API's Unix socket, as GET /metrics, for all who may read there.
	Socket bool `yaml:"socket" default:"false"`
	// 0 to 1000: the most groups that have metrics of their own. Those that stall come first,
	// then those with most traffic. The totals are of all groups.
	Groups int `yaml:"groups" range:"0 1000" default:"50"`
}

// Page returns how the metrics are served by TCP.
func (m *Metrics) Page() *Web {
	return &Web{Listen: m.Listen, Names: m.Names, Certificate: m.Certificate, Key: m.Key, CA: m.CA, Token: m.Token}
}

// On reports whether metrics are served.
func (m *Metrics) On() bool { return m.Socket || m.Listen.IsValid() }

// openToAll lets every user connect to the socket: gleamd decides by the peer's credentials.
const openToAll = 0o666

// check compares the keys of the socket. Where only a group may read, the socket's own bits let
// every user connect, since a file belongs to one group.
func (a *API) check(d *decoder, v value, seen map[string]value) {
	a.checkRemote(d, v, seen)
	if a.ReadGroup == "" {
		return
	}
	if mode, ok := seen["mode"]; !ok {
		a.Mode = openToAll
	} else if a.Mode&0o002 == 0 {
		d.fail(mode.line, mode.key, text(mode.node), "keeps the members of read_group from the socket: leave mode out, or want 0666; gleamd refuses all others itself")
	}
}

// checkRemote compares the keys of the API over TCP.
func (a *API) checkRemote(d *decoder, v value, seen map[string]value) {
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

func (m *Metrics) check(d *decoder, v value, seen map[string]value) { m.Page().check(d, v, seen) }

func (w *Web) check(d *decoder, v value, seen map[string]value) {
	listen, on := seen["listen"]
	for _, name := range []string{"names", "certificate", "key", "ca", "token_file"} {
		if at, ok := seen[name]; ok && !on && (name != "names" || len(w.Names) > 0) {
			d.fail(at.line, at.key, "", "has no effect without listen; leave it out, or give listen")
		}
	}
	for _, pair := range [][2]string{{"certificate", "key"}, {"key", "certificate"}, {"ca", "certificate"}} {
		at, ok := seen[pair[0]]
		if _, other := seen[pair[1]]; ok && !other {
			d.fail(at.line, at.key, "", fmt.Sprintf("needs %s: TLS takes certificate and key, and ca for certificates of browsers", pair[1]))
		}
	}
	_, token := seen["token_file"]
	_, mutual := seen["ca"]
	if w.Listen.IsValid() && !w.Listen.Addr().IsLoopback() && !token && !mutual {
		d.failAt(listen, "is not a loopback address: everybody who reaches it would see all groups; want 127.0.0.1 or [::1], or token_file, or certificate, key and ca for mutual TLS")
	}
	if f := w.Identity(); f != nil {
		if _, err := f.PageServer(); err != nil {
			d.fail(seen["key"].line, join(v.key, "key"), "", err.Error())
		}
	}
}
