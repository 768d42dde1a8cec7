// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/gleam-rdma/gleam/api"
)

// TestReloadOfRootsKey: a gleamd that has given up its privileges reloads its configuration beside
// a key that root alone may read, as README makes it. A key that has changed since, or a new one, is
// refused with the command that lets gleamd read it.
func TestReloadOfRootsKey(t *testing.T) {
	p := startProcess(t)
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, p.Output())
	}
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(p.file)
	write := func(name, secret string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure := func(keys, more string) {
		t.Helper()
		p.rewrite(t, strings.Replace(string(text), "insecure: true", "keys: ["+keys+"]", 1)+more)
	}
	const first, second = "{id: 1, secret_file: gleam.key}", "{id: 2, secret_file: second.key}"
	write("gleam.key", "7f3a91c4d2e8065b4c19aa07e35d88f16b20cd9e417af35502d6b8e1943c7a0d")
	configure(first, "")
	p.restart(t)
	reload := func() string {
		t.Helper()
		x, err := p.client.Reload(t.Context(), api.Reload{})
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(x.Keys, x.Applied)
	}
	if got := reload(); got != "[1] []" {
		t.Errorf("nothing has changed: %s", got)
	}
	configure(first, "psn_probe: 20ms\nunconfirmed_moves: follow\n")
	if got := reload(); !strings.HasPrefix(got, "[1]") {
		t.Errorf("another key of the configuration has changed: %s", got)
	}
	command := regexp.MustCompile(`run: (chgrp .*)`)
	refused := func(what, file string) {
		t.Helper()
		said := reload()
		m := command.FindStringSubmatch(said)
		if m == nil || !strings.Contains(said, file) {
			t.Fatalf("%s: %s", what, said)
		}
		line, _, _ := strings.Cut(m[1], ";")
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	write("second.key", "0d7f3a91c4d2e8065b4c19aa07e35d88f16b20cd9e417af35502d6b8e1943c7a")
	configure(first+", "+second, "")
	refused("a new key", "second.key")
	if got := reload(); !strings.HasPrefix(got, "[1 2]") {
		t.Errorf("after the command: %s", got)
	}
	write("gleam.key", "7a0d7f3a91c4d2e8065b4c19aa07e35d88f16b20cd9e417af35502d6b8e1943c")
	refused("a key that has changed", "gleam.key")
	if got := reload(); !strings.HasPrefix(got, "[1 2] [envelope.keys") {
		t.Errorf("after the command: %s", got)
	}
	if err := os.Chown(p.file, 0, 0); err != nil {
		t.Fatal(err)
	}
	refused("the configuration itself", p.file)
	if got := reload(); !strings.HasPrefix(got, "[1 2]") {
		t.Errorf("after the command: %s", got)
	}
}
