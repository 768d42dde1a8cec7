// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/bedtest"
	"github.com/gleam-rdma/gleam/test/labtest"
)

var programs = labtest.Programs{Packages: []string{"../../cmd/gleamd"}}

func TestMain(m *testing.M) {
	resolveWait = 500 * time.Millisecond
	os.Exit(programs.Run(m))
}

var labGroup = netip.MustParseAddr("10.77.254.1")

// ward is a switch with hosts, of which three are members of a group, and what is looked at.
type ward struct {
	*lab.Star
	client *api.Client
	config string
	key    []byte // the key of groups
}

// newWard makes one, whose members have no queue pairs. more are lines of gleamd's configuration.
func newWard(t *testing.T, more string) *ward {
	t.Helper()
	return newWardOf(t, lab.StarConfig{Hosts: 3}, more)
}

func newWardOf(t *testing.T, star lab.StarConfig, more string) *ward {
	t.Helper()
	labtest.Needs(t, "ethtool", "bridge", "ip", "nft")
	dir := t.TempDir()
	b := bedtest.Star(t, testbed.Config{Dir: dir, Star: star, Gleamd: programs.Path(t, "gleamd"), More: "psn_probe: 0s\n" + more})
	w := &ward{b.Star, b.Client, filepath.Join(dir, fmt.Sprintf("run-%d", os.Getpid()), "gleamd.yaml"), b.Key}
	g := &api.Register{Group: labGroup, QPN: 0x10, PMTU: 1024, Policy: "strict"}
	for i, h := range b.Star.Hosts {
		g.Members = append(g.Members, api.RegisterMember{IP: h.IPv4, QPN: api.QPN(0x11 + i)})
	}
	if err := b.Client.Register(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	return w
}

// sh types a line at the switch ("") or at a host.
func (w *ward) sh(t *testing.T, at, line string) {
	t.Helper()
	ns := w.Switch
	for i := range w.Hosts {
		if at == "at host "+w.Hosts[i].IPv4.String() {
			ns = w.Hosts[i].NS
		}
	}
	err := ns.Do(func() error {
		out, err := exec.Command("sh", "-c", line).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, out)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// look examines the switch.
func (w *ward) look(t *testing.T) (r *Report) {
	t.Helper()
	err := w.Switch.Do(func() (err error) {
		r, err = Switch(t.Context(), SwitchOptions{Config: w.config, Client: w.client})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// findings are those of a check that say a text.
func findings(r *Report, check, text string) []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Check != check || !strings.Contains(f.where()+f.Text, text) })
}

// remedied looks again until a finding is gone.
func remedied(t *testing.T, look func(*testing.T) *Report, check, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		left := findings(look(t), check, text)
		if len(left) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after the remedy there is still: %+v", left)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// fault is something that is made wrong in a lab.
type fault struct {
	name     string
	at       string // "" or "at host IP"
	plant    string
	check    string
	text     string // what the finding says
	severity Severity
	mends    string // what stands for placeholders in the command, as old=new
}

// find plants a fault, expects its finding with cost and command, runs the command and expects
// the finding to be gone.
func (w *ward) find(t *testing.T, f fault, look func(*testing.T) *Report) {
	t.Helper()
	if before := findings(look(t), f.check, f.text); len(before) > 0 {
		t.Fatalf("before the fault there is: %+v", before)
	}
	w.sh(t, f.at, f.plant)
	r := look(t)
	checked(t, r)
	found := findings(r, f.check, f.text)
	if len(found) != 1 || found[0].Severity != f.severity || found[0].Cost == "" || found[0].Command == "" {
		t.Fatalf("%d findings of %s that say %q, want one with a cost and a command: %+v", len(found), f.check, f.text, r.Findings)
	}
	if want := map[Severity]int{Error: ExitErrors, Warning: max(ExitWarnings, r.ExitCode())}[f.severity]; r.ExitCode() != want {
		t.Errorf("exit code %d, want %d", r.ExitCode(), want)
	}
	line, at := found[0].Command, found[0].At
	if old, now, ok := strings.Cut(f.mends, "="); ok {
		line = strings.ReplaceAll(line, old, now)
	}
	if at == "" {
		at = f.at
	} else if at == "at the switch" {
		at = ""
	}
	w.sh(t, at, line)
	remedied(t, look, f.check, f.text)
}

// Each fault of a running switch is found, and its remedy ends it.
func TestFaultsOfARunningSwitch(t *testing.T) {
	w := newWard(t, "")
	if r := w.look(t); r.Errors > 0 || r.Warnings > 0 {
		t.Fatalf("findings without a fault: %+v", r.Findings)
	}
	h2, h3 := "at host 10.77.0.2", w.Hosts[2]
	for _, f := range []fault{
		{name: "a port's MTU", plant: "ip link set p2 mtu 1000", check: "mtu", text: "port p2: its MTU of 1000", severity: Warning},
		{name: "a port is down", plant: "ip link set p3 down", check: "links", text: "port p3: port is down", severity: Warning},
		{name: "a host's MTU", at: h2, plant: "ip link set eth0 mtu 1000", check: "path-mtu", text: "group 10.77.254.1: member 10.77.0.2: packets of 1088 bytes", severity: Error},
		{name: "a wrong neighbour entry", plant: "ip neighbour replace 10.77.0.3 lladdr 02:00:00:00:00:99 dev br0 nud permanent protocol static", check: "neighbours", text: "member 10.77.0.3: the kernel has it at 02:00:00:00:00:99", severity: Error},
		{
			name: "a wrong forwarding entry", check: "neighbours", text: "member 10.77.0.3: bridge br0 has its MAC address", severity: Error,
			// gleamd puts its entry back, unless the neighbour entry is another's.
			plant: fmt.Sprintf("ip neighbour replace 10.77.0.3 lladdr 02:00:00:00:00:99 dev br0 nud permanent protocol static; bridge fdb del %[1]s dev p3 master; bridge fdb replace %[1]s dev p1 master static", h3.MAC),
		},
		{name: "a firewall", plant: "nft add table ip filter && nft add chain ip filter FORWARD '{ type filter hook forward priority filter; policy drop; }' && echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables", check: "forwarding", text: "chain FORWARD of table filter (ip) has the policy drop", severity: Error},
		{name: "an address of a group", plant: "ip address add 10.77.254.9/16 dev br0", check: "group-prefixes", text: "address 10.77.254.9 of br0 is inside", severity: Warning},
		{name: "a folder that all may write to", plant: "chmod go+w " + filepath.Dir(w.config), check: "key-files", text: "may replace files in", severity: Error},
		{name: "a configuration with a secret that all may read", plant: "chmod o+r " + w.config, check: "config", text: "envelope.keys[0].secret: stands in a file that may be read or changed by others", severity: Error},
		{name: "no route", plant: "ip address flush dev br0", check: "routes", text: "port p1: no route leads through p1 or br0", severity: Warning, mends: "ADDRESS/LENGTH=10.77.255.254/16"},
	} {
		t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) { w.find(t, f, w.look) })
	}
}

// A port that its bridge blocks is no fault: the report has a note, and the API the state.
func TestBlockedPort(t *testing.T) {
	w := newWard(t, "")
	w.sh(t, "", "bridge link set dev p3 state 0")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		ports, err := w.client.Ports(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(ports, func(p api.Port) bool { return p.Name == "p3" }); ports[i].Blocked && !ports[i].Up && ports[i].Downs == 0 {
			break
		}
		<-time.After(50 * time.Millisecond)
	}
	r := w.look(t)
	checked(t, r)
	if found := findings(r, "links", ""); len(found) != 1 || found[0].Severity != Note || !strings.HasPrefix(found[0].Text, "blocked by the bridge") || found[0].Port != "p3" {
		t.Errorf("%+v", found)
	}
	if found := findings(r, "ports", ""); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// XDP in generic mode is found, with the key that causes it.
func TestGenericMode(t *testing.T) {
	w := newWard(t, "xdp: {mode: generic}\n")
	found := findings(w.look(t), "xdp-mode", "XDP runs in generic mode")
	if len(found) != 3 || found[0].Remedy != "xdp: {mode: auto} at this port in "+w.config+", and a reload" || found[0].Cost == "" {
		t.Fatalf("%+v", found)
	}
	// The remedy.
	w = newWard(t, "xdp: {mode: auto}\n")
	if found := findings(w.look(t), "xdp-mode", ""); len(found) != 0 {
		t.Fatalf("%+v", found)
	}
}

// A peer without GRO keeps a port off the fast path.
func TestFastPathPeer(t *testing.T) {
	w := newWard(t, "fast_path: auto\n")
	found := findings(w.look(t), "fast-path", "port p2: ")
	if len(found) != 1 || found[0].Cost == "" || !strings.Contains(found[0].Remedy+found[0].Text, "gro on") {
		t.Fatalf("%+v", found)
	}
	for _, h := range w.Hosts {
		w.sh(t, "at host "+h.IPv4.String(), "ethtool -K eth0 gro on")
	}
	remedied(t, w.look, "fast-path", "")
}
