// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"slices"
)

// KeyState is one key of two configurations that a reload compares.
type KeyState struct {
	Key     string // "ports[p1].rate"; a port that only one of both has is "ports[p1]"
	Changed bool
	Restart string // why a reload does not apply a change of it; "" if it does
}

// Reasons for a restart beside those of the rows.
const (
	unknownReason = "no reload applies it"
	sizedReason   = "tables have the sizes of the start: a reload may lower it, and raise it up to there"
)

// Compare compares every key of c, the configuration in use, with next. A port is the
// same one if it has the same name. Keys that hold secrets are compared whole, as
// envelope.keys. start is the configuration that gleamd was started with.
func (c *Config) Compare(next, start *Config) (states []KeyState) {
	comparison{start, func(key, restart string, running, next reflect.Value) {
		same := running.IsValid() && next.IsValid() && reflect.DeepEqual(running.Interface(), next.Interface())
		states = append(states, KeyState{key, !same, restart})
	}}.configs(c, next)
	return states
}

// KeepUntilRestart gives c, which was just read, the values of running for all keys whose
// changes need a restart: c is then what is in effect after a reload. start is the
// configuration that gleamd was started with.
func (c *Config) KeepUntilRestart(running, start *Config) {
	comparison{start, func(_, restart string, running, next reflect.Value) {
		if restart != "" && running.IsValid() && next.IsValid() {
			next.Set(running)
		}
	}}.configs(running, c)
}

// comparison visits the keys of two configurations, each with the reason for which its change
// needs a restart, or "". A port that one of both lacks is a key without a value there.
type comparison struct {
	start *Config
	visit func(key, restart string, running, next reflect.Value)
}

func (x comparison) configs(running, next *Config) {
	x.section("", unknownReason, reflect.ValueOf(running).Elem(), reflect.ValueOf(next).Elem(), reflect.ValueOf(x.start).Elem())
}

// section visits the keys below key. above is the reason of the section itself.
func (x comparison) section(key, above string, running, next, start reflect.Value) {
	for i := range running.NumField() {
		row := running.Type().Field(i)
		key, restart := join(key, row.Tag.Get("yaml")), restartOf(row.Tag, above)
		a, b, s := running.Field(i), next.Field(i), start.Field(i)
		switch {
		case row.Type == reflect.TypeFor[[]Port]():
			x.ports(key, restart, a, b)
		case isSection(row.Type):
			x.section(key, restart, a, b, s)
		case row.Tag.Get("reload") == "sized" && b.Int() > s.Int():
			x.visit(key, sizedReason, a, b)
		default:
			x.visit(key, restart, a, b)
		}
	}
}

func (x comparison) ports(key, restart string, running, next reflect.Value) {
	at := func(list reflect.Value, name string) reflect.Value {
		if i := slices.IndexFunc(list.Interface().([]Port), func(p Port) bool { return p.Name == name }); i >= 0 {
			return list.Index(i)
		}
		return reflect.Value{}
	}
	for _, p := range running.Interface().([]Port) {
		key, a, b := fmt.Sprintf("%s[%s]", key, p.Name), at(running, p.Name), at(next, p.Name)
		if b.IsValid() {
			x.section(key, restart, a, b, b)
		} else {
			x.visit(key, restart, a, b)
		}
	}
	for _, p := range next.Interface().([]Port) {
		if a := at(running, p.Name); !a.IsValid() {
			x.visit(fmt.Sprintf("%s[%s]", key, p.Name), restart, a, at(next, p.Name))
		}
	}
}

// restartOf returns the reason for which a change of a row needs a restart, "" if a reload applies
// it. above is that of its section, which counts for a row that says nothing.
func restartOf(tag reflect.StructTag, above string) string {
	if tag.Get("reload") != "" {
		return ""
	}
	return cmp.Or(tag.Get("restart"), above)
}

// RestartReason returns why a change of the key needs a restart of gleamd; "" if a reload
// applies it.
func RestartReason(key string) string {
	c := Default()
	for _, s := range c.Compare(c, c) {
		if s.Key == key {
			return s.Restart
		}
	}
	return unknownReason
}

// KeyLine returns the line of a file in which a port has its name, for a key such as
// ports[p1], or that of group_prefixes; 0 if the file has none.
func KeyLine(path, key string) (line int) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	d := &decoder{file: path} // its errors are those of Load
	root, _ := d.document(data)
	d.mapping(value{node: root}, field{key, func(v value) { line = v.line }}, field{"ports", func(list value) {
		d.list(list, func(p value) {
			d.mapping(p, field{"name", func(v value) {
				if name, ok := d.str(v); ok && key == "ports["+name+"]" {
					line = v.line
				}
			}})
		})
	}})
	return line
}
