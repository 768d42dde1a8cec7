// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

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

	"github.com/gleam-rdma/gleam/host/endpoint/verbs"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/cli/port"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, text, want)
	}
}

// What is printed, column by column.
func TestColumns(t *testing.T) {
	group := netip.MustParseAddr("10.77.254.1")
	bw := &SendOptions{Params: Defaults(WriteBW), Local: Local{Backend: port.Soft}, GroupIP: group, Receivers: []string{"a", "b"}}
	bwResult := &Result{Params: bw.Params, Backend: port.Soft, Receivers: 2, Group: &group, Sizes: []*Size{
		{
			Bytes: 2, Iterations: 5000, Seconds: 0.05, All: Figures{Bandwidth: bandwidth(2, 150_000, 100_000)},
			Receivers:       []ReceiverResult{{"10.77.0.2", Figures{Bandwidth: bandwidth(2, 0, 100_000)}}, {"10.77.0.3", Figures{Bandwidth: bandwidth(2, 0, 99_000)}}},
			SenderLinkBytes: 400_000,
		},
		{
			Bytes: 8 << 20, Iterations: 64, Seconds: 2, All: Figures{Bandwidth: bandwidth(8<<20, 1600, 1550.5)},
			Receivers:       []ReceiverResult{{"10.77.0.2", Figures{Bandwidth: bandwidth(8<<20, 0, 32)}}, {"fd77::1234:5678", Figures{Bandwidth: bandwidth(8<<20, 0, 32)}}},
			SenderLinkBytes: 560_000_000, Retransmitted: 17,
		},
	}}
	lat := &SendOptions{Params: Defaults(SendLat), Local: Local{Backend: port.Soft}, Receivers: []string{"a"}}
	lat.Mode, lat.Verify = Unicasts, true
	figures := Figures{Latency: &Latency{Min: 1.02, Max: 123456.7, Typical: 31.5, Avg: 40.123, Stdev: 9.87, P99: 999.999, P999: 12345.678}}
	latResult := &Result{Params: lat.Params, Backend: port.Soft, Receivers: 1, Sizes: []*Size{{
		Bytes: 2, Iterations: 1000, Seconds: 0.05, All: figures, Completion: &figures,
		Receivers: []ReceiverResult{{"10.77.0.2", figures}}, SenderLinkBytes: 80_000,
	}}}
	chain := &SendOptions{Params: Defaults(SendBW), Local: Local{Backend: port.Soft}, Receivers: []string{"a"}}
	chain.Mode = Chain
	writes := &SendOptions{Params: Defaults(Replicate), Local: Local{Backend: port.Soft}, Receivers: []string{"a", "b", "c"}}
	writes.Mode = Unicasts
	done := Figures{Latency: figures.Latency, Writes: &Writes{IOPS: 12345.67, MBs: 101.1}, Bandwidth: bandwidth(8192, 13000, 12345.67)}
	writesResult := &Result{Params: writes.Params, Sizes: []*Size{{Bytes: 8192, Iterations: 5000, Seconds: 0.4, All: done, SenderLinkBytes: 130_000_000}}}
	for _, c := range []struct {
		name string
		o    *SendOptions
		r    *Result
	}{{"replicate", writes, writesResult}, {"bw", bw, bwResult}, {"lat", lat, latResult}, {"chain", chain, &Result{}}} {
		var b bytes.Buffer
		tab := &table{w: &b}
		tab.begin(c.o)
		for _, z := range c.r.Sizes {
			tab.size(z)
		}
		tab.end(c.r)
		golden(t, c.name+".txt", b.String())
	}
	var b bytes.Buffer
	if err := cli.WriteJSON(&b, latResult); err != nil {
		t.Fatal(err)
	}
	golden(t, "lat.json", b.String())
	var back Result
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || back.Sizes[0].All.P99 != 999.999 {
		t.Errorf("%v, %+v", err, back)
	}
}

// gleam runs a command line that must not get as far as the network.
func gleam(t *testing.T, args ...string) (code int, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var out, msg bytes.Buffer
	code = cli.Run(ctx, &cli.Env{Stdout: &out, Stderr: &msg}, append([]string{"perf"}, args...), Command)
	if code == cli.ExitUsage && out.Len() > 0 {
		t.Errorf("%q: data on standard output: %s", args, out.String())
	}
	return code, msg.String()
}

// Every mistake on the command line is named, and is exit code 2.
func TestUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "which command?"},
		{"read-bw h", `has no command "read-bw"`},
		{"write-bw", "name the receivers"},
		{"write-bw h", "--mode group needs --group"},
		{"write-bw --group 10.77.254.1 --insecure h i h:18515", "receiver h:18515 is named twice"},
		{"write-bw --group 10.77.254.1 h", "--key-file"},
		{"write-bw --group ten h", `--group "ten" is not an IP address`},
		{"write-bw --group 10.77.254.1 --insecure --key-file k h", "either --key-file or --insecure"},
		{"write-bw --group 255.255.255.255 -q 2 --insecure h", "there are no 2 addresses"},
		{"write-bw --mode chain --group 10.77.254.1 h", "--group goes with --mode group"},
		{"write-bw --mode ring h", `--mode "ring": want one of`},
		{"write-bw --mode tree -s 0 h", "--size 0: want 1 byte"},
		{"write-bw -s 2G h", `"2G": want a number of bytes up to 1G`},
		{"write-bw -s 64KiB h", `"64KiB"`},
		{"write-bw -s -1 h", `"-1"`},
		{"write-bw --mode tree -n -1 h", "--iters -1"},
		{"write-bw --mode tree -D NaN h", "--duration NaN"},
		{"write-bw --mode tree -D 1 -a h", "not with --all"},
		{"write-bw --mode tree -D 1 -n 5 h", "either --iters or --duration"},
		{"write-bw --mode tree -m 1500 h", "--mtu 1500: want 256"},
		{"write-bw --mode tree -q 0 h", "--qps 0: want 1 to 64"},
		{"write-bw --mode tree -q 65 h", "--qps 65"},
		{"write-bw --mode tree -t 0 h", "--tx-depth 0"},
		{"write-bw --mode tree --chunk 1 h", "--chunk 1"},
		{"write-bw --mode tree --backend tcp h", `--backend "tcp"`},
		{"write-bw --mode tree --device rxe0 h", "--backend verbs"},
		{"write-bw --mode tree --timeout 0 h", "--timeout 0s"},
		{"write-bw --mode tree -u 32 h", "--qp-timeout 32"},
		{"write-bw --mode tree -o xml h", "want table, wide, json, yaml or jsonpath=QUERY"},
		{"write-bw --mode tree --rate 5 h", "want bits a second such as 100mbit"},
		{"write-bw --mode tree --rate 10mbit --backend verbs h", "--dcqcn and --rate are the soft backend's"},
		{"write-bw --mode tree --dcqcn --backend verbs h", "--dcqcn and --rate are the soft backend's"},
		{"replicate --mode tree --slots 31 h", "--slots 31: want 32 (--tx-depth) to 512"},
		{"replicate --mode tree --slots 513 h", "--slots 513: want 32 (--tx-depth) to 512"},
		{"write-bw --mode tree --slots 64 h", "--slots"},
		{"write-bw --listen a b", "takes no arguments"},
		{"write-bw --listen=:1 b", "takes no arguments"},
		{"write-bw --listen --group 10.77.254.1", "--group is for the sender only"},
		{"write-bw --listen -q 99", "--qps 99"},
		{"write-bw --listen", "name its file by --key-file, or say --insecure"},
		{"write-bw --mode unicasts h", "name its file by --key-file, or say --insecure"},
	} {
		code, msg := gleam(t, strings.Fields(c.args)...)
		if code != cli.ExitUsage || !strings.Contains(msg, c.want) || !strings.Contains(msg, "--help") {
			t.Errorf("%s: exit code %d, want %q in %s", c.args, code, c.want, msg)
		}
	}
}

// What is not the command line's fault is exit code 1.
func TestFailures(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"write-bw --group 10.77.254.1 --key-file /nowhere/key h", "--key-file /nowhere/key"},
		{"write-bw --insecure --listen=127.0.0.1:99999", "listen for the sender"},
		{"write-bw --insecure --listen 192.0.2.77:1", "listen for the sender"}, // the address with a space
	} {
		if code, msg := gleam(t, strings.Fields(c.args)...); code != cli.ExitFailed || !strings.Contains(msg, c.want) {
			t.Errorf("%s: exit code %d, want %q in %s", c.args, code, c.want, msg)
		}
	}
}

// A program without libibverbs says so, and how to get one with it.
func TestVerbsNotBuilt(t *testing.T) {
	if verbs.Built {
		t.Skip("this test is built with verbs")
	}
	_, err := openPort(&Local{Backend: port.Verbs}, &Params{}, netip.MustParseAddr("127.0.0.1"), false)
	if err == nil || !strings.Contains(err.Error(), "-tags verbs") {
		t.Error(err)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "4096": 4096, "64K": 65536, "64k": 65536, "8M": 8 << 20, "1G": 1 << 30} {
		var b bytesFlag
		if err := b.Set(text); err != nil || int(b) != want {
			t.Errorf("%s: %d, %v", text, b, err)
		}
	}
	for _, text := range []string{"", "K", "1KK", "2G", "1T", "1.5K", "-1", "0x10", "99999999999999999999"} {
		var b bytesFlag
		if err := b.Set(text); err == nil {
			t.Errorf("%q is taken for %d", text, b)
		}
	}
}

// A receiver's flags bind only if they were given.
func TestMismatch(t *testing.T) {
	own, sender := Defaults(WriteBW), Defaults(WriteBW)
	sender.Size, sender.Lanes, sender.Verify = 1, 2, true
	if err := mismatch(&own, &sender, []string{"listen", "key-file", "mode", "tx-depth"}); err != nil {
		t.Error(err)
	}
	for _, flag := range []string{"size", "qps", "verify"} {
		if err := mismatch(&own, &sender, []string{flag}); err == nil || !strings.HasPrefix(err.Error(), "--"+flag+":") {
			t.Errorf("%s: %v", flag, err)
		}
	}
	sender.Test = SendBW
	if err := mismatch(&own, &sender, nil); err == nil {
		t.Error("another test is no mismatch")
	}
}

func TestAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.1": "10.0.0.1:18515", "10.0.0.1:7": "10.0.0.1:7", "host": "host:18515", "fd77::2": "[fd77::2]:18515", "[fd77::2]": "[fd77::2]:18515",
		"[fd77::2]:7": "[fd77::2]:7", "": ":18515", ":7": ":7",
	} {
		if got := withPort(in, DefaultPort); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	list, err := groups(netip.MustParseAddr("10.77.254.255"), 2)
	if err != nil || len(list) != 2 || list[1].String() != "10.77.255.0" {
		t.Errorf("%v, %v", list, err)
	}
}
