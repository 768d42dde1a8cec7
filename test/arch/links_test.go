// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// daemonLinks are the modules that gleamd is made of, besides its own and the standard library.
var daemonLinks = []string{
	"github.com/beorn7/perks", "github.com/cespare/xxhash/v2", "github.com/cilium/ebpf", "github.com/coreos/go-systemd/v22", "github.com/gaissmai/bart",
	"github.com/goccy/go-yaml", "github.com/munnerz/goautoneg", "github.com/prometheus/client_golang", "github.com/prometheus/client_model",
	"github.com/prometheus/common", "github.com/prometheus/procfs", "github.com/safchain/ethtool", "github.com/spf13/cobra", "github.com/spf13/pflag",
	"github.com/vishvananda/netlink", "github.com/vishvananda/netns", "go.uber.org/multierr", "go.uber.org/zap", "golang.org/x/net", "golang.org/x/sys",
	"google.golang.org/protobuf",
}

// notOfDaemon are the parts of this module that a daemon needs nothing of.
var notOfDaemon = []string{"internal/cli", "lab", "test/model", "internal/cli/terminal", "cmd/commands", "host", "docs", "test", "examples"}

// TestDaemonLinks checks that gleamd links what a daemon needs alone: commands, their
// libraries and the documents are in gleam.
func TestDaemonLinks(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}} {{.Module.Path}}{{end}}", "./cmd/gleamd")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		path, of, ok := strings.Cut(strings.TrimSpace(line), " ")
		switch own, is := strings.CutPrefix(path, module+"/"); {
		case !ok:
		case is && slices.ContainsFunc(notOfDaemon, func(dir string) bool { return own == dir || strings.HasPrefix(own, dir+"/") }):
			t.Errorf("gleamd links %s, which is no part of a daemon", own)
		case of != module && !slices.Contains(daemonLinks, of):
			t.Errorf("gleamd links %s of module %s: daemonLinks does not have it", path, of)
		}
	}
}
