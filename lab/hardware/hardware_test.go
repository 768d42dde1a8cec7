// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/labtest"
)

var programs = labtest.Programs{Packages: []string{"../../cmd/gleam", "../../cmd/gleam-lab", "../../cmd/gleamd"}}

func TestMain(m *testing.M) { os.Exit(programs.Run(m)) }

// site is a switch with gleamd and three hosts, and a folder for archives.
type site struct {
	*testbed.Testbed
	t   *testing.T
	dir string
	key []string // flags
}

func newSite(t *testing.T) *site {
	t.Helper()
	labtest.Require(t)
	s := &site{t: t, dir: t.TempDir()}
	run := filepath.Join(t.TempDir(), "gleam") // gleamd's user enters it
	if err := os.Mkdir(run, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := run; dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b, err := testbed.Build(t.Context(), testbed.Config{Dir: run, Star: lab.StarConfig{Hosts: 3, MTU: testbed.PortMTU(4096)}, Gleamd: programs.Path(t, "gleamd")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	s.Testbed = b
	file := filepath.Join(s.dir, "group.key")
	if err := os.WriteFile(file, []byte(hex.EncodeToString(b.Key)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.key = []string{"--key-file", file, "--backend", "soft"}
	return s
}

// start runs gleam hardware in a namespace, which writes the archive of that name.
func (s *site) start(at *lab.Namespace, name string, args ...string) *lab.Process {
	s.t.Helper()
	args = append([]string{"hardware"}, args...)
	inside := []string{"-m", "sh", "-c", `mount -t sysfs sysfs /sys && exec "$0" "$@"`, programs.Path(s.t, "gleam")} // /sys is that of the namespace
	p, err := at.Start(exec.Command("unshare", append(append(inside, args...), "--out", s.archive(name))...))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = p.Stop(5 * time.Second) })
	return p
}

func (s *site) archive(name string) string { return filepath.Join(s.dir, name+".tar.gz") }

// end waits for the end of a process, and returns its exit code.
func (s *site) end(p *lab.Process) int {
	s.t.Helper()
	select {
	case <-p.Done():
	case <-time.After(2 * time.Minute):
		s.t.Fatalf("still running\n%s", p.Output())
	}
	var exit *exec.ExitError
	switch err := p.Wait(); {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil:
		s.t.Fatal(err)
	}
	return 0
}

// ready waits until a receiver waits for the source.
func (s *site) ready(p *lab.Process) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(p.Output(), "ready: "); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not ready\n%s", p.Output())
		}
	}
}

// read returns the files of an archive with its steps, and checks what all archives keep to.
func (s *site) read(name string) (files map[string][]byte, all []Step, machines []checks.Description) {
	s.t.Helper()
	files, err := read(s.archive(name))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(files[stepsFile], &all); err != nil {
		s.t.Fatalf("%s: %v\n%s", name, err, files[stepsFile])
	}
	if machines, err = checks.ParseDescriptions(string(files[machinesFile])); err != nil {
		s.t.Fatal(err)
	}
	for file, b := range files {
		for _, hidden := range []string{hex.EncodeToString(s.Key), "10.77.", "fd77:", "02:67:6c", s.dir} {
			if bytes.Contains(b, []byte(hidden)) {
				s.t.Errorf("%s: %s has %s:\n%s", name, file, hidden, b)
			}
		}
	}
	return files, all, machines
}

// states are the steps as NAME=STATE.
func states(all []Step) (list []string) {
	for i := range all {
		list = append(list, all[i].Name+"="+all[i].State)
	}
	return list
}

// A box, a source and two receivers on veth report what is there and what works, in archives whose facts the parser
// of machines.txt reads. When a receiver does not wait, the source names it, with the command to type there.
func TestHardwareOnVeth(t *testing.T) {
	s := newSite(t)
	const group = "10.77.254.1"
	code := s.end(s.start(s.Star.Switch, "box", append([]string{"box", "--socket", s.Socket(), "--config", s.Gleamd.File()}, s.Star.Ports...)...))
	files, all, machines := s.read("box")
	if got := states(all); !slices.Equal(got, []string{"gleamd --check=passed", "versions=passed", "doctor=passed"}) || code != 0 {
		t.Errorf("box: exit code %d, %v\n%s", code, got, files[stepsFile])
	}
	if len(machines) != 3 || machines[0].Facts["driver"] != "veth" || machines[0].Facts["bridge"] != "yes" || machines[0].Facts["mtu"] != "4248" || machines[0].Facts["program"] != "native" || machines[0].Facts["queues"] == "0" {
		t.Errorf("box: %v", machines)
	}
	var doctor struct{ Gleamd string }
	if err := json.Unmarshal(files[doctorFile], &doctor); err != nil || doctor.Gleamd == "" {
		t.Errorf("box: %v, %s", err, files[doctorFile])
	}
	row, _, _ := strings.Cut(string(files[reportFile]), "\n")
	if cells := strings.Split(row, " | "); len(cells) != 5 || !strings.HasPrefix(cells[0], "| veth") || cells[2] != machines[0].Name[strings.LastIndexByte(machines[0].Name, ' ')+1:] || cells[3] != "box: XDP: native buffers; gleamd --check; doctor" {
		t.Errorf("box: %s", row)
	}

	listen := append([]string{"host", "--listen"}, s.key...)
	source := append([]string{"host", "--group", group, "--seconds", "0.3"}, append(s.key, "10.77.0.2", "10.77.0.3")...)
	r2, r3 := s.start(s.Star.Hosts[1].NS, "r2", listen...), s.start(s.Star.Hosts[2].NS, "r3", append(listen, "10.77.0.3")...)
	s.ready(r2)
	s.ready(r3)
	p := s.start(s.Star.Hosts[0].NS, "source", source...)
	code = s.end(p)
	files, all, machines = s.read("source")
	want := []string{"versions=passed", "doctor=passed", "write-bw, path MTU 1024=passed", "write-bw, path MTU 4096=passed", "send-bw=passed", "write-lat=passed",
		otherSource + "=passed", stopped + "=passed", "write-lat without a group, ip-2=passed", "write-lat without a group, ip-3=passed"}
	if got := states(all); !slices.Equal(got, want) || code != 0 {
		t.Errorf("source: exit code %d, %v\n%s", code, got, p.Output())
	}
	for i := range all {
		if n := all[i].numbers(); (strings.Contains(all[i].Name, "-bw") || all[i].Name == otherSource || all[i].Name == stopped) != strings.Contains(n, "MiB/s") || strings.Contains(all[i].Name, "-lat") != strings.Contains(n, "µs") {
			t.Errorf("%s: %q", all[i].Name, n)
		} else if n != "" && !strings.Contains(string(files[reportFile]), n) {
			t.Errorf("the report lacks %q", n)
		}
	}
	if len(machines) != 1 || machines[0].Facts["driver"] != "veth" || files[doctorFile] == nil {
		t.Errorf("source: %v", machines)
	}
	if len(all) == len(want) {
		turns, evicted := all[6].measured().Turns, all[7].measured()
		if len(turns) < 4 || turns[0].Source == "ip-2" || turns[1].Source != "ip-2" || turns[2].Source != "ip-3" || turns[3] != turns[0] {
			t.Errorf("sources by turn: %v", turns)
		}
		if !slices.Equal(evicted.Evicted, []string{"ip-2"}) || evicted.Pause < 0.2 || evicted.Pause > 2 { // 268 ms of silence
			t.Errorf("evicted %v, a pause of %v s", evicted.Evicted, evicted.Pause)
		}
	}
	for name, r := range map[string]*lab.Process{"r2": r2, "r3": r3} {
		code := s.end(r)
		if _, all, _ := s.read(name); code != 0 || len(all) < 8 || slices.ContainsFunc(all[len(all)-7:], func(x Step) bool { return x.State != Passed }) {
			t.Errorf("%s: exit code %d, %v\n%s", name, code, states(all), r.Output())
		}
	}

	// A source with another MTU, and a receiver that does not wait.
	link, err := s.Star.Hosts[0].NS.Handle().LinkByName("eth0")
	if err == nil {
		err = s.Star.Hosts[0].NS.Handle().LinkSetMTU(link, 1500)
	}
	if err != nil {
		t.Fatal(err)
	}
	r2 = s.start(s.Star.Hosts[1].NS, "r2", listen...)
	s.ready(r2)
	p = s.start(s.Star.Hosts[0].NS, "source", append(source, "--addresses")...)
	code = s.end(p)
	lines := strings.Split(strings.TrimSpace(p.Output()), "\n")
	last := lines[len(lines)-1]
	if code != cli.ExitFailed || !strings.HasPrefix(last, "gleam: write-bw, path MTU 1024: connect to the receiver at 10.77.0.3:18530: ") || !strings.Contains(last, "next, type: gleam hardware host --listen ") || !strings.HasSuffix(last, "(at the host 10.77.0.3, which does not wait for the source)") {
		t.Errorf("exit code %d\n%s", code, p.Output())
	}
	open, err := read(s.archive("source"))
	if err != nil || !bytes.Contains(open[stepsFile], []byte("10.77.0.3")) || bytes.Contains(open[stepsFile], []byte(hex.EncodeToString(s.Key))) {
		t.Errorf("%v\n%s", err, open[stepsFile])
	}
	if n := strings.Count(string(open[reportFile]), "**not** "); n != 1 {
		t.Errorf("%d things do not work:\n%s", n, open[reportFile])
	}
	if !strings.Contains(string(open[reportFile]), "path MTU 4096 wants an MTU of") || !strings.Contains(string(open[reportFile]), "**not** write-bw, path MTU 1024") {
		t.Errorf("%s", open[reportFile])
	}
	if s.end(r2) != 0 { // the receiver that waits has no failure
		t.Errorf("%s", r2.Output())
	}
	// A source that does not come; a switch whose gleamd does not run, with a configuration that is not there.
	p = s.start(s.Star.Hosts[2].NS, "late", append(listen, "10.77.0.3", "--wait", "1s")...)
	if code := s.end(p); code != cli.ExitFailed || !strings.Contains(p.Output(), "gleam: write-lat without a group: no source came within 1s; next, type: gleam hardware host --group GROUP --key-file ") {
		t.Errorf("exit code %d\n%s", code, p.Output())
	}
	p = s.start(s.Star.Switch, "stopped", "box", "--socket", "/nowhere.sock", "--config", "/nowhere.yaml", "p2")
	code = s.end(p)
	if _, all, machines := s.read("stopped"); code != cli.ExitFailed || !slices.Equal(states(all), []string{"gleamd --check=failed", "versions=passed", "doctor=not run"}) || len(machines) != 1 || !strings.Contains(p.Output(), "next, type: gleamd --check --config /nowhere.yaml") {
		t.Errorf("exit code %d, %v\n%s", code, machines, p.Output())
	}
	p = s.start(s.Star.Hosts[2].NS, "interrupted", append(listen, "10.77.0.3")...)
	s.ready(p)
	if err := p.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := s.end(p); code != cli.ExitInterrupted {
		t.Errorf("interrupted: exit code %d\n%s", code, p.Output())
	}
	// A gleam without verbs: make build makes one.
	r2, r3 = s.start(s.Star.Hosts[1].NS, "r2", listen...), s.start(s.Star.Hosts[2].NS, "r3", listen...)
	s.ready(r2)
	s.ready(r3)
	code = s.end(s.start(s.Star.Hosts[0].NS, "verbs", append(source, "--backend", "verbs")...))
	if _, all, _ := s.read("verbs"); code != cli.ExitFailed || all[1].State != Failed || !strings.Contains(all[1].Next, "rdma link add") || all[2].State != Failed || !strings.HasPrefix(all[2].Next, "CGO_ENABLED=1 go build -tags verbs ") {
		t.Errorf("exit code %d, %+v", code, all)
	}
	for _, r := range []*lab.Process{r2, r3} {
		if code := s.end(r); code != cli.ExitFailed || !strings.Contains(r.Output(), "gleam: write-lat without a group: the source has left: ") {
			t.Errorf("exit code %d\n%s", code, r.Output())
		}
	}
	// What gleam doctor finds at a host is named with the repair.
	if err := s.Star.Hosts[1].NS.SetDown("eth0"); err != nil {
		t.Fatal(err)
	}
	p = s.start(s.Star.Hosts[1].NS, "down", append(listen, "--interface", "eth0", "--wait", "1s")...)
	if code := s.end(p); code != cli.ExitFailed || !strings.Contains(p.Output(), "gleam: doctor: interface: ") || !strings.Contains(p.Output(), "next, type: ip link set eth0 up") {
		t.Errorf("exit code %d\n%s", code, p.Output())
	}
	var shown bytes.Buffer
	if code := cli.RunLab(t.Context(), &cli.Env{Stdout: &shown, Stderr: &shown}, []string{"hardware", "show", s.archive("source")}, Command); code != 0 || shown.String() != string(open[reportFile]) {
		t.Errorf("show: %d, %s", code, shown.String())
	}
}
