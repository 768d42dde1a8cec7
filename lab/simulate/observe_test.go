// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/rocev2"
)

const observed = `topology: {kind: leaf-spine, leaves: 4, spines: 2, hosts_per_leaf: 4}
phases:
  - name: one
    programs: [{program: hpl, algorithm: group, bytes: 1MiB, ranks: 16}, {program: incast, bytes: 256KiB, hosts: 4}]
  - name: two
    programs: [{program: hpl, algorithm: 1ring, bytes: 256KiB, ranks: 16}]
`

// TestObservation: captures have whole frames in the order of time, tables have the rate of the link, and
// both are the same for any number of partitions.
func TestObservation(t *testing.T) {
	name := file(t, "observed.yaml", observed)
	var first []byte
	for _, partitions := range []string{"1", "4"} {
		dir := t.TempDir()
		at := func(n string) string { return filepath.Join(dir, n) }
		_, errs, code := command(t.Context(), t, "run", name, "--partitions", partitions, "--pcap", "h1="+at("h1"), "--pcap", "l2:h6="+at("l2"), "--samples", at("csv"), "--sample-ports", "h1,l1:h2", "--sample-every", "5us")
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		var all []byte
		for _, n := range []string{"h1", "l2", "csv"} {
			b, err := os.ReadFile(at(n))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b...)
		}
		if first == nil {
			first = all
			checkCapture(t, at("h1"), 256)
			checkCapture(t, at("l2"), 256)
			checkSamples(t, at("csv"))
		} else if !bytes.Equal(first, all) {
			t.Errorf("%s partitions: other files than with one", partitions)
		}
	}
	for want, args := range map[string][]string{
		"a switch has several; want l1:NEIGHBOUR": {"--pcap", "l1=x"},
		`l1 has no link to "h9"`:                  {"--pcap", "l1:h9=x"},
		"no host and no switch has this name":     {"--pcap", "q=x"},
		"want PORT=FILE":                          {"--pcap", "h1"},
		"belong together":                         {"--samples", "x"},
		"want a time such as 10us":                {"--samples", "x", "--sample-ports", "h1", "--sample-every", "0"},
		"want 64 or more":                         {"--pcap", "h1=x", "--snap-length", "1"},
	} {
		for i := range args {
			if args[i] == "x" || strings.HasSuffix(args[i], "=x") {
				args[i] = strings.TrimSuffix(args[i], "x") + filepath.Join(t.TempDir(), "x")
			}
		}
		if _, errs, code := command(t.Context(), t, append([]string{"run", name}, args...)...); code != cli.ExitUsage || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d, %s; want %q", args, code, errs, want)
		}
	}
	if _, errs, code := command(t.Context(), t, "run", file(t, "study.yaml", study), "--pcap", "h1="+filepath.Join(t.TempDir(), "x")); code != cli.ExitUsage || !strings.Contains(errs, "of one point, and the file has 6") {
		t.Errorf("several points: exit code %d, %s", code, errs)
	}
}

// checkCapture reads the capture in a file, and fails if it has fewer than least packets.
func checkCapture(t *testing.T, name string, least int) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	var last time.Time
	n, pause := 0, time.Duration(0)
	for ; ; n++ {
		data, ci, err := r.ReadPacketData()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		var f rocev2.Frame
		if why := rocev2.Decode(data, &f); why != rocev2.OK || f.Kind != rocev2.KindRoCE && f.Kind != rocev2.KindUDP || f.Kind == rocev2.KindRoCE && !f.VerifyICRC() {
			t.Fatalf("%s: packet %d: %v", name, n, why)
		}
		if n > 0 {
			pause = max(pause, ci.Timestamp.Sub(last))
			if ci.Timestamp.Before(last) {
				t.Fatalf("%s: packet %d is at %v, after %v", name, n, ci.Timestamp, last)
			}
		}
		last = ci.Timestamp
	}
	if i, err := r.Interface(0); err != nil || n < least || pause < 500*time.Microsecond || i.Name == "" {
		t.Errorf("%s: %d packets, longest pause %v, interface %+v, error %v: want %d packets, the second phase a millisecond after the first", name, n, pause, i, err, least)
	}
}

func checkSamples(t *testing.T, name string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil || len(lines) < 10 {
		t.Fatalf("%d lines, error %v", len(lines), err)
	}
	full := 0
	for _, l := range lines[1:] {
		rate, err := strconv.ParseFloat(l[3], 64)
		if err != nil || rate > 200.1 || l[1] != "h1" && l[1] != "l1:h2" {
			t.Errorf("%v", l)
		}
		if rate > 199.9 {
			full++
		}
	}
	if full < 5 {
		t.Errorf("%d samples at the link's rate", full)
	}
}
