// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
)

// KeyState is one key of two configurations that a reload compares.
type KeyState struct {
	Key     string // "ports[p1].rate"; a port that only one of both has is "ports[p1]"
	Changed bool
	Restart string // why a reload does not apply a change of it; "" if it does
}

// Compare compares every key of c, the configuration in use, with next. A port is the
// same one if it has the same name. Keys that hold secrets are compared whole, as
// envelope.keys. start is the configuration that gleamd was started with.
func (c *Config) Compare(next, start *Config) (states []KeyState) {
	compare(&states, "", reflect.ValueOf(*c), reflect.ValueOf(*next))
	for i := range states {
		if s := &states[i]; s.Changed && next.exceeds(start, s.Key) {
			s.Restart = sizedReason
		}
	}
	return states
}

// exceeds reports whether a key that sizes tables is larger in c than at the start.
func (c *Config) exceeds(start *Config, key string) bool {
	if !slices.Contains(sized, key) {
		return false
	}
	a, b := reflect.ValueOf(*c), reflect.ValueOf(*start)
	for name := range strings.SplitSeq(key, ".") {
		a, b = fieldOf(a, name), fieldOf(b, name)
	}
	return a.Int() > b.Int()
}

// fieldOf returns the field of a section that has a key.
func fieldOf(v reflect.Value, key string) reflect.Value {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("yaml") == key {
			return v.Field(i)
		}
	}
	panic("config: there is no key " + key)
}

func compare(states *[]KeyState, key string, a, b reflect.Value) {
	switch {
	case a.Type() == reflect.TypeFor[[]Port]():
		comparePorts(states, key, a.Interface().([]Port), b.Interface().([]Port))
	case isSection(a.Type()):
		for i := range a.NumField() {
			compare(states, join(key, a.Type().Field(i).Tag.Get("yaml")), a.Field(i), b.Field(i))
		}
	default:
		*states = append(*states, KeyState{key, !reflect.DeepEqual(a.Interface(), b.Interface()), RestartReason(key)})
	}
}

func comparePorts(states *[]KeyState, key string, a, b []Port) {
	at := func(list []Port, name string) int {
		return slices.IndexFunc(list, func(p Port) bool { return p.Name == name })
	}
	for i := range a {
		name := fmt.Sprintf("%s[%s]", key, a[i].Name)
		if j := at(b, a[i].Name); j >= 0 {
			compare(states, name, reflect.ValueOf(a[i]), reflect.ValueOf(b[j]))
		} else {
			*states = append(*states, KeyState{name, true, RestartReason(key)})
		}
	}
	for j := range b {
		if at(a, b[j].Name) < 0 {
			*states = append(*states, KeyState{fmt.Sprintf("%s[%s]", key, b[j].Name), true, RestartReason(key)})
		}
	}
}

// RestartReason returns why a change of the key needs a restart of gleamd; "" if a reload
// applies it. The most specific entry of the table reloads counts.
func RestartReason(key string) string {
	best := -1
	key = strings.ReplaceAll(wildcard(key), "[]", "")
	for i, r := range reloads {
		if (key == r.key || strings.HasPrefix(key, r.key+".")) && (best < 0 || len(r.key) > len(reloads[best].key)) {
			best = i
		}
	}
	if best < 0 {
		return "no reload applies it"
	}
	return reloads[best].restart
}

// KeepUntilRestart gives c, which was just read, the values of running for all keys whose
// changes need a restart: c is then what is in effect after a reload. start is the
// configuration that gleamd was started with.
func (c *Config) KeepUntilRestart(running, start *Config) {
	for _, key := range sized {
		if !c.exceeds(start, key) {
			continue
		}
		to, from := reflect.ValueOf(c).Elem(), reflect.ValueOf(running).Elem()
		for name := range strings.SplitSeq(key, ".") {
			to, from = fieldOf(to, name), fieldOf(from, name)
		}
		to.Set(from)
	}
	keep("", reflect.ValueOf(c).Elem(), reflect.ValueOf(running).Elem())
}

func keep(key string, to, from reflect.Value) {
	switch {
	case to.Type() == reflect.TypeFor[[]Port]():
		keepPorts(key, to, from)
	case isSection(to.Type()):
		for i := range to.NumField() {
			keep(join(key, to.Type().Field(i).Tag.Get("yaml")), to.Field(i), from.Field(i))
		}
	case RestartReason(key) != "":
		to.Set(from)
	}
}

// keepPorts is keep for the ports: those that both have, each key of them, and the list
// itself if it is not reloaded.
func keepPorts(key string, to, from reflect.Value) {
	if RestartReason(key) != "" {
		to.Set(from)
		return
	}
	for i := range to.Len() {
		for j := range from.Len() {
			if p := to.Index(i); p.Interface().(Port).Name == from.Index(j).Interface().(Port).Name {
				keep(key, p, from.Index(j))
			}
		}
	}
}

// isSection reports whether t is a struct whose fields are keys.
func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[Config]().PkgPath() && t.NumField() > 0 && t.Field(0).Tag.Get("yaml") != ""
}

// KeyLine returns the line of a file in which a port has its name, for a key such as
// ports[p1], or that of group_prefixes; 0 if the file has none.
func KeyLine(path, key string) (line int) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	d := &decoder{file: path, known: make(map[string]bool)} // its errors are those of Load
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
