// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/gleam-rdma/gleam/config/identity"
	"github.com/gleam-rdma/gleam/config/linkrate"
)

// read reads v into a field by its type and the tags of its row.
func (d *decoder) read(at reflect.Value, tag reflect.StructTag, v value) {
	kind := tag.Get("kind")
	if tag.Get("default") == "all" && text(v.node) == "all" {
		at.SetZero()
		return
	}
	switch dst := at.Addr().Interface().(type) {
	case *bool:
		d.boolean(dst, v)
	case *int:
		if i, ok := d.number(v, tag); ok {
			*dst = int(i)
		}
	case *uint16:
		if i, ok := d.number(v, tag); ok {
			*dst = uint16(i)
		}
	case *float64:
		d.share(dst, v)
	case *time.Duration:
		d.duration(dst, tag, v)
	case *fs.FileMode:
		d.mode(dst, v)
	case *linkrate.Rate:
		d.rate(dst, v)
	case *netip.AddrPort:
		d.endpoint(dst, v)
	case **identity.File:
		d.identityFile(dst, kind, v)
	case *SwitchID:
		d.switchID(dst, v)
	case *string:
		switch kind {
		case "file": // method check of its section reads it
		case "user":
			d.user(dst, v)
		default:
			if s, ok := d.string(v, kind); ok {
				*dst = s
			}
		}
	case *Secret:
		if kind == "file" {
			d.secretFile(dst, v)
		} else {
			d.secret(dst, v)
		}
	case *[]string:
		if kind == "ports" {
			*dst = []string{} // an empty list is none
		}
		list(d, dst, tag, v, func(v value) (string, bool) { return d.string(v, kind) })
	case *[]int:
		if kind == "cpus" {
			d.cpus(dst, tag, v)
		} else if n, ok := v.node.(*ast.SequenceNode); !ok || len(n.Values) == 0 {
			d.wrongKind(v, "all, or a list of RX queue numbers such as [0, 1]")
		} else {
			list(d, dst, tag, v, func(v value) (int, bool) { i, ok := d.number(v, tag); return int(i), ok })
			slices.Sort(*dst)
		}
	case *[]netip.Prefix:
		if kind == "allowed" {
			allowed(d, dst, tag, v, "all, or a list of addresses and prefixes such as [10.77.0.1, \"fd77::/64\"]", d.hostPrefix)
		} else {
			list(d, dst, tag, v, func(v value) (netip.Prefix, bool) { return d.groupPrefix(v, *dst) })
		}
	case *[]MAC:
		allowed(d, dst, tag, v, "all, or a list of MAC addresses such as [\"02:67:6c:01:00:01\"]", d.mac)
	case *[]Role:
		list(d, dst, tag, v, func(v value) (r Role, ok bool) {
			if d.choice(reflect.ValueOf(&r).Elem(), tag, v); slices.Contains(*dst, r) {
				d.failAt(v, "%s is there already", r)
				return r, false
			}
			return r, r != ""
		})
	case *ECN: // Port.check reads it: its defaults are those of the port's queue
	default:
		switch {
		case at.Kind() == reflect.String:
			d.choice(at, tag, v)
		case at.Kind() == reflect.Slice:
			d.sections(at, v)
		default:
			d.section(at, v)
		}
	}
	if what := tag.Get("unique"); what != "" && at.Kind() != reflect.Slice && !at.IsZero() {
		id := fmt.Sprint(wildcard(v.key), " ", at)
		if line := d.where[id]; line > 0 {
			d.failAt(v, "%s is there already, in line %d", what, line)
		} else {
			d.where[id] = v.line
		}
	}
}

// list reads a list of different values. An empty list leaves the default.
func list[T comparable](d *decoder, dst *[]T, tag reflect.StructTag, v value, read func(value) (T, bool)) {
	standard := *dst
	*dst = nil
	d.list(v, func(v value) {
		x, ok := read(v)
		switch {
		case !ok:
		case slices.Contains(*dst, x):
			d.failAt(v, "%s", strings.TrimSpace(tag.Get("unique")+" is there already"))
		default:
			*dst = append(*dst, x)
		}
	})
	if len(*dst) == 0 {
		*dst = standard
	}
}

func (d *decoder) boolean(dst *bool, v value) {
	if n, ok := v.node.(*ast.BoolNode); ok {
		*dst = n.Value
		return
	}
	d.wrongKind(v, "true or false")
}

// number reads a number in the range of a row. Of kind power it is a power of two, of kind udp
// no port of RoCEv2 itself (IBTA annex A17).
func (d *decoder) number(v value, tag reflect.StructTag) (i int64, ok bool) {
	const roceUDPPort = 4791
	n, ok := v.node.(*ast.IntegerNode)
	if !ok {
		d.wrongKind(v, "a number")
		return 0, false
	}
	switch x := n.Value.(type) {
	case int64:
		i = x
	case uint64:
		i, ok = int64(x), x <= 1<<63-1
	default:
		ok = false
	}
	var low, high int64
	_, _ = fmt.Sscan(tag.Get("range"), &low, &high)
	switch kind := tag.Get("kind"); {
	case !ok || i < low || i > high:
		d.failAt(v, "want a number from %d to %d", low, high)
	case kind == "power" && i&(i-1) != 0:
		d.failAt(v, "want a power of two from %d to %d", low, high)
	case kind == "udp" && i == roceUDPPort:
		d.failAt(v, "is the port of RoCEv2; take another")
	default:
		return i, true
	}
	return 0, false
}

// duration reads a Go duration, such as 50us or 1m30s, in the range of a row.
func (d *decoder) duration(dst *time.Duration, tag reflect.StructTag, v value) {
	t := text(v.node)
	if _, ok := v.node.(*ast.StringNode); !ok && t != "0" {
		d.wrongKind(v, "a duration with its unit, such as 50us, 2s or 10m")
		return
	}
	least, most, _ := strings.Cut(tag.Get("range"), " ")
	low, _ := time.ParseDuration(least)
	high, _ := time.ParseDuration(most)
	x, err := time.ParseDuration(t)
	switch {
	case err != nil:
		d.failAt(v, "want a duration such as 50us, 2s or 10m")
	case x < low || x > high:
		d.failAt(v, "want a duration from %v to %v", low, high)
	case tag.Get("kind") == "milliseconds" && x%time.Millisecond != 0:
		d.failAt(v, "want whole milliseconds")
	default:
		*dst = x
	}
}

// choice reads one of the words of a row.
func (d *decoder) choice(at reflect.Value, tag reflect.StructTag, v value) {
	s, ok := d.str(v)
	switch words := tag.Get("choice"); {
	case !ok:
	case !slices.Contains(strings.Split(words, ", "), s):
		d.failAt(v, "want one of %s", words)
	default:
		at.SetString(s)
	}
}

func (d *decoder) str(v value) (string, bool) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		d.wrongKind(v, "a string (put it in quotes)")
	default:
		d.wrongKind(v, "a string")
	}
	return "", false
}

// string reads a string of a kind, in the form in which it is used.
func (d *decoder) string(v value, kind string) (s string, ok bool) {
	if s, ok = d.str(v); !ok {
		return s, false
	}
	wrong := ""
	switch kind {
	case "interface": // net/core/dev.c:dev_valid_name
		if s == "" || len(s) > 15 || s == "." || s == ".." || strings.ContainsFunc(s, func(r rune) bool { return r == '/' || r == ':' || r <= ' ' || r == 0x7f }) {
			wrong = "not an interface name: want 1 to 15 bytes without white space, / or :"
		}
	case "folder":
		if !filepath.IsAbs(s) || strings.ContainsRune(s, 0) {
			wrong = "want the absolute path of a folder"
		}
		s = filepath.Clean(s)
	case "socket": // sun_path has 108 bytes with its NUL
		if !filepath.IsAbs(s) || strings.ContainsRune(s, 0) {
			wrong = "want an absolute path"
		} else if len(s) > 107 {
			wrong = fmt.Sprintf("has %d bytes; a Unix socket's path has at most 107", len(s))
		}
	case "group":
		if !validAccount(s) {
			wrong = "not the name of a group of users"
		}
	case "common name": // X.520, ub-common-name
		if s == "" || len(s) > 64 {
			wrong = "want the common name of a certificate, of 1 to 64 bytes"
		}
	case "host":
		s = strings.ToLower(s)
		if _, err := netip.ParseAddr(s); err == nil {
			wrong = "is an address, which needs no entry; want a DNS name"
		} else if s == "" || len(s) > 253 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
			wrong = "want a DNS name, without a port"
		}
	}
	if wrong != "" {
		d.failAt(v, "%s", wrong)
	}
	return s, wrong == ""
}

// user reads the name or the number of a user.
func (d *decoder) user(dst *string, v value) {
	name := text(v.node)
	_, isNumber := v.node.(*ast.IntegerNode)
	if _, ok := v.node.(*ast.StringNode); !ok && !isNumber || !validAccount(name) || name[0] == '-' {
		d.failAt(v, "want %s, or the name or the number of a user", UserAuto)
		return
	}
	*dst = name
}

// validAccount reports whether useradd(8) takes the name of a user or group.
func validAccount(name string) bool {
	return name != "" && len(name) <= 32 && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == ':' || r == '/' || r >= 0x7f })
}

// mode reads permission bits in octal, in quotes or not.
func (d *decoder) mode(dst *fs.FileMode, v value) {
	bits, err := strconv.ParseUint(strings.TrimPrefix(text(v.node), "0o"), 8, 32)
	if err != nil || bits == 0 || bits > 0o777 {
		d.failAt(v, "want permission bits in octal, such as \"0660\"")
		return
	}
	*dst = fs.FileMode(bits)
}

// share reads a number from 0 to 1.
func (d *decoder) share(dst *float64, v value) {
	switch v.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		x, err := strconv.ParseFloat(text(v.node), 64)
		if err != nil || x < 0 || x > 1 {
			d.failAt(v, "want a number from 0 to 1")
			return
		}
		*dst = x
	default:
		d.wrongKind(v, "a number from 0 to 1")
	}
}

// rate reads a rate such as 100mbit, or none.
func (d *decoder) rate(dst *linkrate.Rate, v value) {
	s, ok := v.node.(*ast.StringNode)
	if !ok {
		d.wrongKind(v, "a rate with its unit, such as 100mbit, or none")
		return
	}
	r, err := linkrate.Parse(s.Value)
	if err != nil {
		d.failAt(v, "%s", err)
		return
	}
	*dst = r
}

// switchID reads auto, or hexadecimal digits, with or without quotes.
func (d *decoder) switchID(dst *SwitchID, v value) {
	const digits = 16
	t := text(v.node)
	b, err := hex.DecodeString(t)
	var id SwitchID
	for _, x := range b {
		id = id<<8 | SwitchID(x)
	}
	if t != "auto" && (err != nil || len(t) != digits || id == 0) {
		d.failAt(v, "want auto, or %d hexadecimal digits in quotes, not all 0", digits)
		return
	}
	*dst = id
}

// maxWorkers bounds the workers: each pair of them has rings of its own.
const maxWorkers = 64

// cpus reads the CPU of the only worker, or one for each of several. Any number of them may
// have any CPU, -1.
func (d *decoder) cpus(dst *[]int, tag reflect.StructTag, v value) {
	*dst = nil
	cpu := func(v value) {
		i, ok := d.number(v, tag)
		switch {
		case ok && i >= 0 && slices.Contains(*dst, int(i)):
			d.failAt(v, "CPU is another worker's already")
		case ok:
			*dst = append(*dst, int(i))
		}
	}
	if n, ok := v.node.(*ast.SequenceNode); !ok {
		cpu(v)
	} else if len(n.Values) == 0 || len(n.Values) > maxWorkers {
		d.failAt(v, "has %d entries: want 1 to %d workers' CPUs", len(n.Values), maxWorkers)
	} else {
		d.list(v, cpu)
	}
}

// endpoint reads an address and a port.
func (d *decoder) endpoint(dst *netip.AddrPort, v value) {
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

// path returns the path of a file that the configuration names: it starts from its own folder.
func (d *decoder) path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(d.file), path)
}

// identityFile reads the path of a file in PEM, and the file: certificates, or a private key.
func (d *decoder) identityFile(dst **identity.File, kind string, v value) {
	path, ok := d.str(v)
	if !ok {
		return
	}
	read := identity.ReadCertificates
	if kind == "private" {
		read = identity.ReadKey
	}
	f, err := read(d.path(path), d.files.Read)
	if err != nil {
		d.failAt(v, "%v", err)
		return
	}
	*dst = f
}
