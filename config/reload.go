// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
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
// envelope.keys.
func (c *Config) Compare(next *Config) (states []KeyState) {
	compare(&states, "", reflect.ValueOf(*c), reflect.ValueOf(*next))
	return states
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
// changes need a restart: c is then what is in effect after a reload.
func (c *Config) KeepUntilRestart(running *Config) {
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
