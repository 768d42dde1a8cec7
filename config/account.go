// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/gleam-rdma/gleam/config/identity"
)

// openToAll lets every user connect to the socket: gleamd decides by the peer's credentials.
const openToAll = 0o666

// api reads the keys below api. Where only a group may read, the socket's own bits let
// every user connect, since a file belongs to one group.
func (d *decoder) api(a *API, v value) {
	seen := d.mapping(v,
		field{"socket", d.socket(&a.Socket)},
		field{"mode", d.mode(&a.Mode)},
		field{"group", d.group(&a.Group)},
		field{"read_group", d.group(&a.ReadGroup)},
		field{"listen", d.endpoint(&a.Listen)},
		field{"advertise", d.endpoint(&a.Advertise)},
		field{"certificate", d.identityFile(&a.Certificate, identity.ReadCertificates)},
		field{"key", d.identityFile(&a.Key, identity.ReadKey)},
		field{"ca", d.identityFile(&a.CA, identity.ReadCertificates)},
		field{"operators", func(v value) { d.operators(&a.Operators, v) }})
	d.remoteAPI(a, v, seen)
	if a.ReadGroup == "" {
		return
	}
	if mode, ok := seen["mode"]; !ok {
		a.Mode = openToAll
	} else if a.Mode&0o002 == 0 {
		d.fail(mode.line, mode.key, text(mode.node), "keeps the members of read_group from the socket: leave mode out, or want 0666; gleamd refuses all others itself")
	}
}

// group reads the name of a group of users, as useradd(8) takes it.
func (d *decoder) group(dst *string) func(value) {
	return func(v value) {
		name, ok := d.str(v)
		switch {
		case !ok:
		case !validAccount(name):
			d.failAt(v, "not the name of a group of users")
		default:
			*dst = name
		}
	}
}

// folder reads the absolute path of a folder.
func (d *decoder) folder(dst *string) func(value) {
	return func(v value) {
		s, ok := d.str(v)
		switch {
		case !ok:
		case !filepath.IsAbs(s) || strings.ContainsRune(s, 0):
			d.failAt(v, "want the absolute path of a folder")
		default:
			*dst = filepath.Clean(s)
		}
	}
}

// user reads the name or the number of a user.
func (d *decoder) user(dst *string) func(value) {
	return func(v value) {
		name := text(v.node)
		_, isNumber := v.node.(*ast.IntegerNode)
		if _, ok := v.node.(*ast.StringNode); !ok && !isNumber || !validAccount(name) || name[0] == '-' {
			d.failAt(v, "want %s, or the name or the number of a user", UserAuto)
			return
		}
		*dst = name
	}
}

func validAccount(name string) bool {
	return name != "" && len(name) <= 32 && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == ':' || r == '/' || r >= 0x7f })
}
