// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/test/apitest"
)

// controls sets the title of a terminal, clears it, and turns the direction of text.
const controls = "\x1b]0;evil\a\x1b[2J\u009b2J\u202e\r"

// infect puts controls into all strings below v.
func infect(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + controls)
		return 1
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Kind() == reflect.Pointer {
			return infect(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			n += infect(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				n += infect(v.Field(i))
			}
		}
	}
	return n
}

// Whatever text a switch has of hosts, of other switches and of the kernel, no command prints
// anything by it that controls a terminal, as a table, as data or in an error.
func TestTextOfOthersControlsNothing(t *testing.T) {
	b := apitest.Switch()
	group := b.GroupList[0].IP.String()
	n := 0
	for _, x := range []any{&b.GroupList, &b.GoneList, &b.PortList, &b.Switches, &b.EventList} {
		n += infect(reflect.ValueOf(x).Elem())
	}
	if n < 50 {
		t.Fatalf("only %d texts are infected", n)
	}
	socket := serve(t, b)
	shown := 0
	check := func(command, out string) {
		t.Helper()
		if i := strings.IndexFunc(out, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }); i >= 0 {
			t.Errorf("%s prints %q", command, out[max(0, i-20):min(len(out), i+20)])
		}
		shown += strings.Count(out, "evil")
	}
	for _, command := range []string{"group list", "group list --gone", "group show " + group, "port list", "port show p1", "topology", "events", "stats", "version", "explain ack " + group} {
		for _, format := range []string{"table", "wide", "json", "yaml"} {
			line := command + " -o " + format
			out, msg, _ := run(t, socket, strings.Fields(line)...)
			check(line, out+msg)
		}
	}
	if shown < 20 {
		t.Errorf("the texts are shown %d times", shown)
	}
	b.Fail = errors.New("no" + controls)
	out, msg, code := run(t, socket, "group", "list")
	if check("an error", out+msg); code != cli.ExitFailed || !strings.Contains(msg, `no\u001b]0;evil`) {
		t.Errorf("exit %d, %s", code, msg)
	}
	out, msg, _ = run(t, socket, fmt.Sprintf("group%s", controls))
	check("a usage error", out+msg)
}
