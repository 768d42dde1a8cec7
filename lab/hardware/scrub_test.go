// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
)

// Addresses of hosts, their names and paths become numbered names, the same thing the same name. R_Keys and
// secrets go in any case. What only looks like an address stays.
func TestScrub(t *testing.T) {
	s := newScrubber()
	s.hosts([]string{"node7.example", "10.0.0.9"})
	s.file("/home/me/group.key", "KEY_FILE")
	s.file("key", "KEY_FILE")
	for _, c := range []struct{ text, want, open string }{
		{"10.0.0.1 and 10.0.0.2:4791, again 10.0.0.1.", "ip-1 and ip-2:4791, again ip-1.", ""},
		{"at 02:67:6C:01:00:01, 02:67:6c:01:00:01", "at mac-1, mac-1", ""},
		{"enx0c42a1036f54 is up", "mac-2 is up", ""},
		{"[fd77::1]:18515, fe80::1%eth0: no; 10.0.0.1/16", "[ip-3]:18515, ip-4%eth0: no; ip-1/16", ""},
		{"GID 0000:0000:0000:0000:0000:ffff:0a00:0001", "GID ip-1", ""},
		{"pci/0000:3b:00.0 at 12:34:56, 127.0.0.1, ::1, 0.0.0.0, a::b", "pci/0000:3b:00.0 at 12:34:56, 127.0.0.1, ::1, 0.0.0.0, ip-5", ""},
		{"6.12.0, 22.31.1014, 300.1.2.3", "6.12.0, 22.31.1014, 300.1.2.3", ""},
		{`node7.example, "/home/me/group.key", --key-file key`, `receiver-1, "KEY_FILE", --key-file key`, ""},
		{`{"rkey":"0x1a2b","n":1} R_Key 0x1a2b, secret: hex:00ff`, `{"rkey":"0","n":1} R_Key 0, secret: 0`, `{"rkey":"0","n":1} R_Key 0, secret: 0`},
	} {
		if c.open == "" {
			c.open = c.text
		}
		if got, open := s.text(c.text), (*scrubber)(nil).text(c.text); got != c.want || open != c.open {
			t.Errorf("%s:\n%s\n%s", c.text, got, open)
		}
	}
}

// RDMA devices are read from the kernel's files.
func TestRNICs(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"fw_ver": "22.31.1014\n", "node_type": "1: CA", "board_id": "MT_0000000359", "ports/1/state": "4: ACTIVE", "ports/1/rate": "100 Gb/sec (4X EDR)",
		"ports/1/gid_attrs/ndevs/0": "eth0", "ports/1/gid_attrs/types/0": "IB/RoCE v1", "ports/1/gid_attrs/ndevs/1": "eth0", "ports/1/gid_attrs/types/1": "RoCE v2",
		"device/driver/module": "",
	} {
		path = filepath.Join(root, infiniband, "mlx5_0", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m := &checks.Machine{Root: root}
	got := readRNICs(m, "")
	if len(got) != 1 || got[0].Firmware != "22.31.1014" || got[0].Board != "MT_0000000359" || got[0].State != "4: ACTIVE" || !slices.Equal(got[0].Interfaces, []string{"eth0"}) || !slices.Equal(got[0].GIDTypes, []string{"IB/RoCE v1", "RoCE v2"}) {
		t.Errorf("%+v", got)
	}
	soft := filepath.Join(root, infiniband, "rxe0/parent")
	if err := errors.Join(os.MkdirAll(filepath.Dir(soft), 0o755), os.WriteFile(soft, []byte("eth0"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if x := readRNICs(m, "rxe0"); len(x) != 1 || x[0].Driver != "rdma_rxe" {
		t.Errorf("%+v", x)
	}
	if other := readRNICs(m, "mlx5_1"); len(other) > 0 {
		t.Errorf("%+v", other)
	}
	r := record{role: roleSource, kernel: "6.12", rnics: got, steps: []Step{{Name: "a|b", State: Failed}, {Name: "c", State: NotRun}, {Name: "d", State: Passed}}}
	if row := r.row(); row != "| MT_0000000359 | driver 22.31.1014 | 6.12 | source: **not** a\\|b; d | 0001-01-01 |\n" {
		t.Errorf("%s", row)
	}
}

// What makes no sense on the command line is refused, with the reason.
func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"box":  "name the interfaces",
		"show": "name one archive",
		"host": "either --listen, at a receiver, or --group",
		"host --listen --group 10.0.0.1 --key-file k":               "either --listen, at a receiver, or --group",
		"host --group 224.0.0.1 --key-file k h":                     "is not the address of a group",
		"host --group 10.0.0.1 --key-file k":                        "name the receivers",
		"host --group 10.0.0.1 h":                                   "--key-file is missing",
		"host --group 10.0.0.1 --key-file k h:18530":                "--port is that of all",
		"host --listen=10.0.0.1:5 --key-file k":                     "--port is that of all",
		"host --listen=node7 --key-file k":                          "is not an IP address",
		"host --listen --key-file k 10.0.0.1 10.0.0.2":              "takes no arguments",
		"host --listen --key-file k --seconds 0":                    "--seconds 0",
		"host --listen --key-file k --wait 0s":                      "--wait 0s",
		"host --listen --key-file k --port 65535":                   "--port 65535",
		"host --listen --key-file k --backend soft --device mlx5_0": "--device names an RDMA device",
		"host --listen --key-file k --backend tcp":                  "--backend",
	} {
		var errs bytes.Buffer
		code := cli.RunLab(t.Context(), &cli.Env{Stdout: &errs, Stderr: &errs}, append([]string{"hardware"}, strings.Fields(args)...), Command)
		if code != cli.ExitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit code %d, %s", args, code, errs.String())
		}
	}
}

// A file that is no archive, or whose facts cannot be read, is not shown.
func TestNoArchive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.tar.gz")
	if err := os.WriteFile(file, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := read(file); err == nil {
		t.Error("text is read as an archive")
	}
	r := record{role: roleBox, nics: []NIC{{Description: &checks.Description{Name: "x\ny", Facts: map[string]string{"mtu": "1500"}}}}}
	if err := r.write(file); err != nil {
		t.Fatal(err)
	}
	if _, err := read(file); err == nil || !strings.Contains(err.Error(), `machines.txt: x: "y"`) {
		t.Errorf("%v", err)
	}
}
