// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"go/ast"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/certs"
)

// Every field of a configuration is one key, which has a text, one value for reference.yaml and
// bounds where it is a number, and of which it is decided whether a reload applies it.
func TestRowsAreComplete(t *testing.T) {
	sections := declared(t)
	count := 0
	var visit func(section reflect.Type, at string, explained bool)
	visit = func(section reflect.Type, at string, explained bool) {
		rows := sections[section.Name()]
		if len(rows) != section.NumField() {
			t.Fatalf("%s has %d rows and %d fields", section, len(rows), section.NumField())
		}
		names := make(map[string]bool)
		for i, r := range rows {
			field := section.Field(i)
			key, typ := join(at, r.name), field.Type
			if names[r.name] || r.name == "" {
				t.Errorf("%s stands twice, or is no key", key)
			}
			names[r.name] = true
			if typ.Kind() == reflect.Slice {
				typ = typ.Elem()
			}
			if isSection(typ) {
				visit(typ, key, explained || r.doc != nil)
			} else {
				count++
				values := 0
				for _, tag := range []string{"default", "required", "example"} {
					if r.tag.Get(tag) != "" {
						values++
					}
				}
				if values != 1 {
					t.Errorf("%s has %d of default, required and example", key, values)
				}
				_, bounded := r.tag.Lookup("range")
				if number := typ.Kind() == reflect.Int || typ.Kind() == reflect.Uint16 || typ == reflect.TypeFor[time.Duration](); bounded != number {
					t.Errorf("%s: bounds %v", key, bounded)
				}
			}
			if !explained && r.doc == nil {
				t.Errorf("%s has no text, nor has its section", key)
			}
			if r.tag.Get("reload") != "" && r.tag.Get("restart") != "" {
				t.Errorf("%s: reload and restart", key)
			}
		}
	}
	visit(reflect.TypeFor[Config](), "", false)
	if count < 80 {
		t.Errorf("there are %d keys", count)
	}
	c := Default()
	c.Ports = []Port{DefaultPort()}
	for _, s := range c.Compare(c, c) {
		if s.Restart == unknownReason {
			t.Errorf("%s: neither reload nor restart says whether a reload applies it", s.Key)
		}
	}
}

// The constants of a type are words of its choices.
func TestConstantsAreChoices(t *testing.T) {
	choices := make(map[string][]string)
	everyRow(t, func(_ string, field reflect.StructField) {
		typ := field.Type
		if typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		choices[typ.Name()] = append(choices[typ.Name()], words(field.Tag)...)
	})
	found := 0
	_, files := sources(t)
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				if id, ok := spec.Type.(*ast.Ident); ok && choices[id.Name] != nil {
					found++
					if text := spec.Values[0].(*ast.BasicLit).Value; !slices.Contains(choices[id.Name], strings.Trim(text, `"`)) {
						t.Errorf("%s %s is no word of %v", id.Name, text, choices[id.Name])
					}
				}
			}
			return true
		})
	}
	if found < 12 {
		t.Errorf("there are %d constants", found)
	}
}

// words returns the words of a choice.
func words(tag reflect.StructTag) []string {
	if tag.Get("choice") == "" {
		return nil
	}
	return strings.Split(tag.Get("choice"), ", ")
}

// everyRow calls visit with the field of each key that is no section, and its path as in errors.
func everyRow(t *testing.T, visit func(key string, field reflect.StructField)) {
	t.Helper()
	var walk func(section reflect.Type, at string)
	walk = func(section reflect.Type, at string) {
		for i := range section.NumField() {
			f := section.Field(i)
			key := join(at, f.Tag.Get("yaml"))
			switch {
			case isSection(f.Type):
				walk(f.Type, key)
			case f.Type.Kind() == reflect.Slice && isSection(f.Type.Elem()):
				walk(f.Type.Elem(), key+"[0]")
			default:
				visit(key, f)
			}
		}
	}
	walk(reflect.TypeFor[Config](), "")
}

// fileOf returns a file that has one key.
func fileOf(key, text string) string {
	for _, name := range slices.Backward(strings.Split(key, ".")) {
		if name, ok := strings.CutSuffix(name, "[0]"); ok {
			text = name + ": [{" + text + "}]"
		} else if strings.Contains(text, ":") {
			text = name + ": {" + text + "}"
		} else {
			text = name + ": " + text
		}
	}
	return text
}

// Numbers and durations are taken from the least to the greatest of their row, and no others.
func TestRanges(t *testing.T) {
	everyRow(t, func(key string, f reflect.StructField) {
		low, high, ok := strings.Cut(f.Tag.Get("range"), " ")
		if !ok {
			return
		}
		duration := f.Type == reflect.TypeFor[time.Duration]()
		beside := func(text string, by int64) string {
			if duration {
				d, err := time.ParseDuration(text)
				if err != nil {
					t.Fatalf("%s: %v", key, err)
				}
				return (d + time.Duration(by)).String()
			}
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			return strconv.FormatInt(n+by, 10)
		}
		refusal := fmt.Sprintf("want a number from %s to %s", low, high)
		if duration {
			refusal = fmt.Sprintf("want a duration from %s to %s", beside(low, 0), beside(high, 0))
		}
		for text, fits := range map[string]bool{low: true, high: true, beside(low, -1): false, beside(high, 1): false} {
			where := "f:1: " + key + ": "
			if f.Type.Kind() == reflect.Slice && f.Tag.Get("kind") != "cpus" {
				text, where = "["+text+"]", "f:1: "+key+"[0]: "
			}
			_, err := Parse("f", []byte(fileOf(key, text)))
			refused := strings.Contains(err.Error(), where) && strings.Contains(err.Error(), ": want a ")
			if refused == fits || refused && !strings.Contains(err.Error(), refusal) {
				t.Errorf("%s: %v", fileOf(key, text), err)
			}
		}
	})
}

// TestEveryKeyArrives sets every key to something other than its default, and fails for
// a field that has its default. Numbers, durations and choices follow from the rows.
func TestEveryKeyArrives(t *testing.T) {
	dir := t.TempDir()
	referenceIn(t, dir)
	ca := certs.New(t)
	certificate, private := ca.Issue(certs.Want{Name: "s", Server: netip.MustParseAddr("10.0.0.1")})
	texts := map[string]string{
		"name": "a", "queues": "[3, 1]", "rate": "20mbit", "pmax": "1", "addresses": "[10.0.0.1, 'fd00::/64']", "macs": `["02:00:00:00:00:0A"]`,
		"group_prefixes": "['fd00::/96']", "prefixes": `["fd00::ff00/120"]`, "roles": "[receive-only]", "secret": "hex:" + otherHex, "secret_file": "gleam.key", "token_file": "gleam.key",
		"switch.id": `"00000000000000fe"`, "switch.ports": "[a]", "socket": "/tmp/s", "metrics.socket": "true", "mode": "0602", "group": "wheel", "read_group": "adm",
		"listen": `"127.0.0.1:99"`, "advertise": `"10.0.0.2:98"`, "certificate": certificate, "key": private, "ca": ca.File, "operators": "[ann]", "names": "[Switch.example]",
		"user": "4711", "state": "/var/lib/g", "id": "7", "ntuple": "true", "cpu": "[1, 3, -1, -1]", "fast_path": "auto",
	}
	numbers := make(map[string]int64)
	text := func(key string, f reflect.StructField) string {
		name := f.Tag.Get("yaml")
		standard := f.Tag.Get("default")
		if text := cmp.Or(texts[key], texts[name]); text != "" && f.Tag.Get("choice") == "" || name == "roles" {
			return text
		}
		if d, err := time.ParseDuration(standard); err == nil && f.Type == reflect.TypeFor[time.Duration]() {
			numbers[key] = int64(d + time.Millisecond)
			return (d + time.Millisecond).String()
		}
		if n, err := strconv.ParseInt(standard, 10, 64); err == nil {
			if numbers[key] = n + 1; f.Tag.Get("kind") == "power" {
				numbers[key] = n / 2
			}
			return strconv.FormatInt(numbers[key], 10)
		}
		for _, word := range words(f.Tag) {
			if word != standard {
				return word
			}
		}
		return texts[name]
	}
	var file func(section reflect.Type, at string) string
	file = func(section reflect.Type, at string) string {
		var keys []string
		for i := range section.NumField() {
			f := section.Field(i)
			name := f.Tag.Get("yaml")
			key := join(at, name)
			switch {
			case key == "envelope.insecure" || key == "envelope.keys.secret" || key == "switch.keys.secret_file": // below
			case isSection(f.Type):
				keys = append(keys, name+": {"+file(f.Type, key)+"}")
			case f.Type.Kind() == reflect.Slice && isSection(f.Type.Elem()):
				keys = append(keys, name+": [{"+file(f.Type.Elem(), key)+"}]")
			default:
				keys = append(keys, name+": "+text(key, f))
			}
		}
		return strings.Join(keys, ", ")
	}
	source := "{" + file(reflect.TypeFor[Config](), "") + "}"
	got, err := Parse(filepath.Join(dir, "x.yaml"), []byte(source))
	if err != nil {
		t.Fatalf("%v\n%s", err, source)
	}
	var arrived func(got, standard reflect.Value, at string)
	arrived = func(got, standard reflect.Value, at string) {
		for i := range got.NumField() {
			f := got.Type().Field(i)
			key, got, standard := join(at, f.Tag.Get("yaml")), got.Field(i), standard.Field(i)
			switch n, isNumber := numbers[key]; {
			case key == "envelope.insecure" || key == "switch.keys.secret_file":
			case isSection(f.Type):
				arrived(got, standard, key)
			case f.Type.Kind() == reflect.Slice && isSection(f.Type.Elem()):
				fresh := reflect.New(f.Type.Elem()).Elem()
				setDefaults(fresh)
				arrived(got.Index(0), fresh, key)
			case isNumber && (got.CanInt() && got.Int() != n || got.CanUint() && got.Uint() != uint64(n)):
				t.Errorf("%s is %v, want %d", key, got, n)
			case reflect.DeepEqual(got.Interface(), standard.Interface()):
				t.Errorf("%s still has its default", key)
			}
		}
	}
	arrived(reflect.ValueOf(*got), reflect.ValueOf(*Default()), "")
	k, p := got.Envelope.Keys[0], got.Ports[0]
	if k.ID != 7 || k.SecretFile != filepath.Join(dir, "gleam.key") || !reflect.DeepEqual(k.Secret, mustSecret(t)) || !slices.Equal(k.Roles, []Role{RoleReceiveOnly}) || got.Switch.ID != 0xfe {
		t.Errorf("keys %+v, switch %+v", k, got.Switch)
	}
	if !slices.Equal(p.Queues, []int{1, 3}) || p.Rate != 20_000_000 || !slices.Equal(p.Allow.MACs, []MAC{{2, 5: 10}}) || len(p.Allow.Addresses) != 2 || p.Allow.Addresses[0].Bits() != 32 {
		t.Errorf("port %+v", p)
	}
	if a := got.API; a.Mode != 0o602 || a.Advertise != netip.MustParseAddrPort("10.0.0.2:98") || !slices.Equal(got.Web.Names, []string{"switch.example"}) || got.User != "4711" || !slices.Equal(got.Worker.CPUs, []int{1, 3, -1, -1}) {
		t.Errorf("%+v %+v user %s, CPUs %v", a, got.Web, got.User, got.Worker.CPUs)
	}
	insecure, err := Parse("x.yaml", []byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	if !insecure.Envelope.Insecure {
		t.Error("insecure: true did not arrive")
	}
}
