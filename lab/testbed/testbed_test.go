// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

func TestUMEMFrames(t *testing.T) {
	for ports := 2; ports <= 128; ports++ {
		if n := umemFrames(ports, 1024); n < 1024*ports || n&(n-1) != 0 {
			t.Errorf("%d frames for %d ports", n, ports)
		}
	}
}

// gleamd builds the daemon.
func gleamd(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gleamd")
	if err := labtest.Build(path, "../../cmd/gleamd"); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBuild(t *testing.T) {
	labtest.Require(t)
	dir := t.TempDir()
	stale := filepath.Join(dir, "run-999999999")
	if err := os.Mkdir(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := Build(t.Context(), Config{
		Dir: dir, Star: lab.StarConfig{Hosts: 2}, Gleamd: gleamd(t), More: "log: {level: debug}\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	ports, err := s.Client.Ports(t.Context())
	if err != nil || len(ports) != 2 {
		t.Errorf("%d ports, %v", len(ports), err)
	}
	if _, err := os.Stat(stale); err == nil {
		t.Error("what another run has left is still there")
	}
	config, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("run-%d", os.Getpid()), "gleamd.yaml"))
	if err != nil || !strings.Contains(string(config), "level: debug") {
		t.Errorf("configuration: %v\n%s", err, config)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Gleamd.Process.Done():
	default:
		t.Error("gleamd still runs")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// A daemon that refuses its configuration is an error with what it said, and
// nothing is left.
func TestBuildFails(t *testing.T) {
	labtest.Require(t)
	dir := t.TempDir()
	c := Config{Dir: dir, Star: lab.StarConfig{Hosts: 1}, Gleamd: gleamd(t), More: "nonsense: 1\n"}
	if _, err := Build(t.Context(), c); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("%v, want what gleamd said", err)
	}
	c.Gleamd = filepath.Join(dir, "missing")
	if _, err := Build(t.Context(), c); err == nil || !strings.Contains(err.Error(), c.Gleamd) {
		t.Errorf("%v, want the path", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v %v", left, err)
	}
}
