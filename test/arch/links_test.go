// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// daemonLinks are the modules that gleamd is made of, besides its own and the standard library.
var daemonLinks = []string{
	"github.com/cilium/ebpf", "github.com/coreos/go-systemd/v22", "github.com/gaissmai/bart", "github.com/goccy/go-yaml", "github.com/safchain/ethtool",
	"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/vishvananda/netlink", "github.com/vishvananda/netns", "go.uber.org/multierr",
	"go.uber.org/zap", "golang.org/x/net", "golang.org/x/sys",
}

// Parts of this module that programs need nothing of: a daemon no commands, and a user of a switch no lab.
var (
	notOfDaemon = []string{"internal/cli", "lab", "cmd/commands", "host", "docs", "test"}
	notOfGleam  = []string{"lab", "test"}
)

// maxDaemon is the most bytes that gleamd may have, as make build makes it: what it has, and a few per cent.
const maxDaemon = 17_000_000

// TestDaemonLinks checks that gleamd links what a daemon needs alone: commands, their
// libraries and the documents are in gleam.
func TestDaemonLinks(t *testing.T) {
	for path, of := range linked(t, "./cmd/gleamd") {
		if own, is := strings.CutPrefix(path, module+"/"); is && within(own, notOfDaemon) {
			t.Errorf("gleamd links %s, which is no part of a daemon", own)
		} else if of != module && !slices.Contains(daemonLinks, of) {
			t.Errorf("gleamd links %s of module %s: daemonLinks does not have it", path, of)
		}
	}
	if len(daemonLinks) > 20 {
		t.Errorf("gleamd is made of %d modules", len(daemonLinks))
	}
	// A library that looks up methods by name has the linker keep all methods of everything.
	program := filepath.Join(t.TempDir(), "gleamd")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", program, "./cmd/gleamd")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if i, err := os.Stat(program); err != nil || i.Size() > maxDaemon {
		t.Errorf("gleamd has %d bytes, want at most %d: %v", i.Size(), maxDaemon, err)
	}
}

// TestGleamLinks checks that the lab, the simulator and their plots are in gleam-lab alone.
func TestGleamLinks(t *testing.T) {
	for path, of := range linked(t, "./cmd/gleam") {
		if own, is := strings.CutPrefix(path, module+"/"); is && within(own, notOfGleam) || strings.HasPrefix(of, "gonum.org/") {
			t.Errorf("gleam links %s, which is for gleam-lab", path)
		}
	}
}

func within(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
}

// linked returns the packages that a program is made of, without the standard library's, with their modules.
func linked(t *testing.T, program string) map[string]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}} {{.Module.Path}}{{end}}", program)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	list := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		if path, of, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			list[path] = of
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s is made of nothing", program)
	}
	return list
}
