// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gleam-rdma/gleam/config/identity"
)

// Web configures the live page.
type Web struct {
	Listen netip.AddrPort `yaml:"listen"` // not valid: there is none
	// Names are the DNS names, beside localhost, by which browsers may ask for it.
	Names []string `yaml:"names"`
	// What the page proves itself by; without both it is served by plain HTTP. With CA,
	// browsers need a certificate for clients of these authorities.
	Certificate *identity.File `yaml:"certificate"`
	Key         *identity.File `yaml:"key"`
	CA          *identity.File `yaml:"ca"`
	// Token is what browsers have to give as the password; none: they need not.
	Token Secret `yaml:"token_file"`
}

// Identity returns the files of TLS; nil for plain HTTP.
func (w *Web) Identity() *identity.Files {
	if w.Certificate == nil || w.Key == nil {
		return nil
	}
	return &identity.Files{Certificate: w.Certificate, Key: w.Key, CA: w.CA}
}

func (d *decoder) web(w *Web, v value) { d.page(w, v) }

// page reads the keys of something that is served by HTTP, and those of more.
func (d *decoder) page(w *Web, v value, more ...field) {
	seen := d.mapping(v, append([]field{
		{"listen", d.endpoint(&w.Listen)},
		{"names", func(v value) { d.hostNames(&w.Names, v) }},
		{"certificate", d.identityFile(&w.Certificate, identity.ReadCertificates)},
		{"key", d.identityFile(&w.Key, identity.ReadKey)},
		{"ca", d.identityFile(&w.CA, identity.ReadCertificates)},
		{"token_file", func(v value) { d.secretFile(new(string), &w.Token, v) }},
	}, more...)...)
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

// hostNames reads DNS names.
func (d *decoder) hostNames(dst *[]string, list value) {
	d.list(list, func(v value) {
		name, ok := d.str(v)
		name = strings.ToLower(name)
		switch _, err := netip.ParseAddr(name); {
		case !ok:
		case err == nil:
			d.failAt(v, "is an address, which needs no entry; want a DNS name")
		case name == "" || len(name) > 253 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "":
			d.failAt(v, "want a DNS name, without a port")
		case slices.Contains(*dst, name):
			d.failAt(v, "name is there already")
		default:
			*dst = append(*dst, name)
		}
	})
}
