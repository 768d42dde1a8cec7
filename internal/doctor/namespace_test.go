// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// A gleamd in another network namespace is one finding, and not one of each interface that is not here.
func TestAnotherNamespace(t *testing.T) {
	// A process of its own: this one's namespace is that of its first thread, which may be the one that goes away.
	gleamd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := gleamd.Start(); err != nil {
		t.Fatal(err)
	}
	running := &Running{Pid: gleamd.Process.Pid, Ports: []api.Port{{Name: "p1", Ifindex: 7, State: api.PortOpen}}}
	cfg := config.Default()
	cfg.Ports = []config.Port{{Name: "p1"}}
	interfaces := func() (namespace, other []checks.Finding) {
		for _, f := range Start(cfg, running) {
			switch f.Check {
			case checks.CheckNamespace:
				namespace = append(namespace, f)
			case checks.CheckInterfaces, checks.CheckRoutes, checks.CheckPrefixes, checks.CheckLinks:
				other = append(other, f)
			}
		}
		return namespace, other
	}
	if namespace, other := interfaces(); len(namespace) != 0 || len(other) == 0 {
		t.Errorf("in its namespace: %+v, %+v", namespace, other)
	}
	labtest.Enter(t) // this thread alone
	namespace, other := interfaces()
	if len(namespace) != 1 || len(other) != 0 || !strings.HasPrefix(namespace[0].Command, "nsenter --net=/proc/") {
		t.Errorf("in another one: %+v, %+v", namespace, other)
	}
	running = nil
	if _, other := interfaces(); len(other) == 0 || !strings.HasSuffix(other[0].Text, ": there is none here but lo") {
		t.Errorf("without interfaces: %+v", other)
	}
}
