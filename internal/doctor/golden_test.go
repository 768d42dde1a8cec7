// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
	"github.com/gleam-rdma/gleam/test/apitest"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

// golden compares an output with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %v; go test ./internal/doctor -run Golden -rewrite writes it anew. Now it is:\n%s", file, err, got)
	}
}

// sick is a switch with all that gleamd itself can say is wrong.
func sick() *apitest.Backend {
	psn := api.PSN(0x40)
	addr := netip.MustParseAddr
	return &apitest.Backend{
		GroupList: []api.Group{
			{
				IP: addr("10.77.254.1"), Epoch: 3, Policy: "evict", State: "running", Source: addr("10.77.0.1"), AckPSN: 0x80, NextPSN: 0xc1, WaitsFor: addr("10.77.0.3"), StallSeconds: 4.25, PMTU: 1024, Master: "10.77.0.1:40000",
				Members: []api.Member{
					{IP: addr("10.77.0.1"), Role: "source", Live: true, Port: "p1"}, {IP: addr("10.77.0.2"), Role: "receiver", Live: true, Port: "p2"},
					{IP: addr("10.77.0.3"), Role: "receiver", Live: true, Port: "p3", Diagnosis: "its answers do not fit its registration: rq_psn is likely one too low"},
				},
				Former: []api.FormerMember{{IP: addr("10.77.0.4"), QPN: 0x11, PSN: &psn, Reason: "silent for 100 ms", Time: time.Now().Add(-time.Hour)}},
			},
			{IP: addr("10.77.254.3"), State: "running", SlowedBy: addr("10.77.0.2"), SlowCause: api.SlowLoss, Members: []api.Member{
				{IP: addr("10.77.0.2"), Role: "receiver", Live: true, Port: "p2", Slow: api.SlowLoss, Cost: &api.Cost{NAKs: 21, Repaired: 143, Waited: 1.2}},
				{IP: addr("10.77.0.5"), Role: "receiver", Live: true, Port: "p2", Slow: api.SlowNotReady, Cost: &api.Cost{RNRNAKs: 9, Waited: 0.4}},
			}},
			{IP: addr("10.77.254.2"), State: "failed", Failure: "10.77.0.2 has answered with NAK 0x62", MTUText: "packets of up to 1088 bytes do not fit port p2, whose MTU is 900: longer copies to 10.77.0.2 are dropped (frame_too_long)"},
		},
		PortList: []api.Port{
			{Name: "p1", State: api.PortOpen, Up: true, XDPMode: "native", Driver: "veth", XDP: map[string]uint64{"drop_guard_arp": 12}, Guard: map[string]api.GuardDrop{"drop_guard_arp": {MAC: "02:00:00:00:77:01", Time: time.Now()}}}, {Name: "p2", State: api.PortOpen, XDPMode: "generic", Driver: "e1000"}, {Name: "p3", State: "refused", Reason: "not an Ethernet interface"},
		},
		Switches: api.Topology{Switch: "00000000000000a1", Neighbours: []api.NeighbourSwitch{{Number: 1, Port: "p1", Switch: "00000000000000b2", State: api.LinkDown, Reason: "no hello for 300 ms", Age: 42}}},
		Totals:   &api.Stats{Control: api.Control{State: &api.StateFile{Failing: "no space left on device", Waiting: true}}},
	}
}

// serve answers for a backend on a socket.
func serve(t *testing.T, b api.Backend) *api.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s.sock")
	ln, err := api.Listen(socket, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx, ln, b, api.Version{Version: "v1.2.3"}, api.Access{}) }()
	c := api.Dial(socket)
	t.Cleanup(func() {
		c.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c
}

// What gleamd says is wrong becomes findings, in text of 80 columns and in JSON.
func TestGolden(t *testing.T) {
	m := &machine{&checks.Machine{Root: t.TempDir()}}
	r, err := m.examine(t.Context(), SwitchOptions{Client: serve(t, sick()), Remote: true})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if len(strings.TrimRight(line, "\n")) > columns && !strings.Contains(line, "repair") {
			t.Errorf("longer than %d columns: %s", columns, line)
		}
	}
	golden(t, "report.txt", b.Bytes())
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", append(text, '\n'))
	if r.ExitCode() != ExitErrors {
		t.Errorf("exit code %d", r.ExitCode())
	}
}

// A member that was removed lately is a warning.
func TestRemovedMember(t *testing.T) {
	psn, now := api.PSN(7), time.Now()
	g := &api.Group{Former: []api.FormerMember{
		{IP: netip.MustParseAddr("10.0.0.1"), PSN: &psn, Reason: "silent", Time: now.Add(-time.Minute)}, {IP: netip.MustParseAddr("10.0.0.2"), Reason: "left", Time: now},
		{IP: netip.MustParseAddr("10.0.0.3"), PSN: &psn, Reason: "silent", Time: now.Add(-2 * watch.Lately)},
	}}
	if found := former(g, now); len(found) != 1 || found[0].Member != g.Former[0].IP || found[0].Severity != Warning || !strings.HasSuffix(found[0].Text, ": silent") {
		t.Errorf("%+v", found)
	}
}

// A port that is down, or was so lately, is named with the members behind it.
func TestPortDown(t *testing.T) {
	now := time.Now()
	before := func(d time.Duration) *time.Time { return new(now.Add(-d)) }
	var groups []api.Group
	for i := range byte(5) {
		groups = append(groups, api.Group{Members: []api.Member{{IP: netip.AddrFrom4([4]byte{10, 0, 0, i}), Port: "p1"}, {IP: netip.AddrFrom4([4]byte{10, 0, 0, 9}), Port: "p2"}}})
	}
	for _, c := range []struct {
		port     api.Port
		severity Severity
		text     string
	}{
		{api.Port{Name: "p1", Up: true}, "", ""},
		{api.Port{Name: "p1", Up: true, Downs: 2, LastDown: before(2 * watch.Lately)}, "", ""},
		{api.Port{Name: "p1", Up: true, Downs: 2, LastDown: before(time.Minute)}, Warning, "2 times since gleamd started; members behind it: 10.0.0.0, 10.0.0.1, 10.0.0.2 and more"},
		{api.Port{Name: "p2", Downs: 1, LastDown: before(3 * time.Second)}, Error, "it is down for 3s; members behind it: 10.0.0.9"},
		{api.Port{Name: "p3"}, Error, "it is down"},
	} {
		f, ok := downFinding(&c.port, groups, now)
		if ok != (c.text != "") || f.Severity != c.severity || !strings.HasSuffix(f.Text, c.text) || ok && f.Port != c.port.Name {
			t.Errorf("%+v: %+v, %v", c.port, f, ok)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct{ errors, warnings, want int }{{0, 0, 0}, {0, 1, 1}, {1, 0, 2}, {1, 1, 2}} {
		if got := (&Report{Errors: c.errors, Warnings: c.warnings}).ExitCode(); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// FuzzAnswer reads what a host may answer to ICMP requests.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 42, 0, 1}, false)
	f.Add([]byte{14, 0, 0, 0, 0, 42, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3}, false)
	f.Add([]byte{129, 0, 0, 0, 0, 42, 0, 1}, true)
	p := &pinger{id: 42}
	f.Fuzz(func(t *testing.T, b []byte, six bool) {
		protocol := 1
		if six {
			protocol = 58
		}
		a, ok := p.parse(b, protocol, time.Unix(1e9, 0))
		if ok && (a.seq < 0 || a.seq > 0xffff || a.skew > 24*time.Hour || a.skew < -24*time.Hour) {
			t.Errorf("%x: %+v", b, a)
		}
	})
}
