// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/test/apitest"
	"github.com/gleam-rdma/gleam/test/certs"
)

// serve answers from b on a socket of its own until the test ends.
func serve(t *testing.T, b api.Backend) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "gleamd.sock")
	ln, err := api.Listen(socket, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- api.Serve(ctx, ln, b, api.Version{Version: "v1.2.3", Commit: "0123456789ab", Go: "go1.26", Platform: "linux/arm64", Started: time.Unix(1.8e9, 0), Pid: 42}, api.Access{})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return socket
}

// run executes a command line and returns its output and its exit code.
func run(t *testing.T, socket string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return runAt(t, 0, socket, args...)
}

// terminal is an output of some columns.
type terminal struct {
	bytes.Buffer
	columns int
}

func (t *terminal) Columns() int { return t.columns }

// runAt is run at a terminal of some columns; 0: none.
func runAt(t *testing.T, columns int, socket string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	out := terminal{columns: columns}
	var msg bytes.Buffer
	env := &cli.Env{Stdout: &out, Stderr: &msg, Socket: socket, Build: api.Version{Version: "v1.2.4", Commit: "ba9876543210+dirty", Go: "go1.27", Platform: "linux/amd64"}}
	code = cli.Run(t.Context(), env, args)
	return out.String(), msg.String(), code
}

// TestTranscripts runs the command lines in testdata, each file against a switch of its
// own. `gleam` is followed by its arguments in the lines below it; no-daemon makes it
// call a socket that does not exist, terminal gives it 80 columns.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		socket := serve(t, apitest.Switch())
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s := socket
			if d.HasArg("no-daemon") {
				s = filepath.Join(filepath.Dir(socket), "none.sock")
			}
			columns := 0
			if d.HasArg("terminal") {
				columns = 80
			}
			stdout, stderr, code := runAt(t, columns, s, strings.Fields(d.Input)...)
			var b strings.Builder
			for line := range strings.Lines(stdout) {
				b.WriteString(strings.TrimRight(line, " \n") + "\n")
			}
			for line := range strings.Lines(stderr) {
				fmt.Fprintf(&b, "stderr: %s", line)
			}
			fmt.Fprintf(&b, "exit %d\n", code)
			return strings.ReplaceAll(b.String(), s, "SOCKET")
		})
	})
}

// TestJSONIsTheAPIs reads every read's JSON back.
func TestJSONIsTheAPIs(t *testing.T) {
	b := apitest.Switch()
	socket := serve(t, b)
	for _, tt := range []struct {
		args string
		want any
	}{
		{"group list", b.GroupList},
		{"group show 10.77.254.1", b.GroupList[0]},
		{"group show fd77::6c65:1", b.GroupList[1]},
		{"group list --ended", b.GoneList},
		{"group show 10.77.254.7 --ended", b.GoneList[1]},
		{"port list", b.PortList},
		{"topology", b.Switches},
		{"stats", *b.Totals},
		{"events", b.EventList},
	} {
		stdout, stderr, code := run(t, socket, append(strings.Fields(tt.args), "-o", "json")...)
		got := reflect.New(reflect.TypeOf(tt.want))
		if err := json.Unmarshal([]byte(stdout), got.Interface()); err != nil || code != 0 || stderr != "" {
			t.Errorf("%s: %v, exit %d, %s", tt.args, err, code, stderr)
		}
		if !reflect.DeepEqual(got.Elem().Interface(), tt.want) {
			t.Errorf("%s: got %s", tt.args, stdout)
		}
	}
}

// TestRegisterSendsWhatWasSaid: every flag and field arrives.
func TestRegisterSendsWhatWasSaid(t *testing.T) {
	b := &apitest.Backend{}
	socket := serve(t, b)
	_, stderr, code := run(t, socket, "group", "register", "--group", "fd77::6c65:9", "--qpn", "0xABCDE", "--pmtu=2048", "--policy", "quorum:2",
		"--replace", "--dead-after", "250ms", "--lag-psns", "0x40", "--lag-time=2s", "--sender-timeout", "15", "--sender-retries", "6",
		"--window", "va=0x1000,len=4096,rkey=0xffffffff",
		"--member", "ip=fd77::1,qpn=17,sq-psn=0xFFFFFF,rq-psn=0010,va=0xfffffffffffff000,len=0x1000,rkey=7",
		"--member", "qpn=0x12, rq-psn=0, sq-psn=1, ip=fd77::2, rkey=8, len=8192, va=0",
		"--member", "ip=fd77::3,qpn=16777214,sq-psn=2,rq-psn=3")
	if code != 0 {
		t.Fatal(stderr)
	}
	var want api.Register
	err := json.Unmarshal([]byte(`{"group":"fd77::6c65:9","qpn":703710,"path_mtu":2048,"policy":"quorum:2","replace":true,"dead_after_ms":250,"lag_psns":64,"lag_ms":2000,"sender_timeout":15,"sender_retries":6,
		"window":{"va":4096,"len":4096,"rkey":4294967295},"members":[
		{"ip":"fd77::1","qpn":17,"sq_psn":16777215,"rq_psn":10,"window":{"va":18446744073709547520,"len":4096,"rkey":7}},
		{"ip":"fd77::2","qpn":18,"sq_psn":1,"rq_psn":0,"window":{"va":0,"len":8192,"rkey":8}},
		{"ip":"fd77::3","qpn":16777214,"sq_psn":2,"rq_psn":3}]}`), &want)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Registered(); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("the backend got %+v\nwant %+v", got, want)
	}
}

func TestErrorsShowNoRKey(t *testing.T) {
	for _, args := range []string{
		"--window va=0,len=0,rkey=0xC0FFEE --member ip=10.0.0.1,qpn=17,sq-psn=0,rq-psn=0",
		"--member ip=10.0.0.1,qpn=1,sq-psn=0,rq-psn=0,va=0,len=1,rkey=0xC0FFEE --member ip=10.0.0.2,qpn=17,sq-psn=0,rq-psn=0",
		"--member ip=10.0.0.1,qpn=x,sq-psn=0,rq-psn=0,va=0,len=1,rkey=0xC0FFEE",
		"--member rkey=0xC0FFEE,va=0,len=1",
	} {
		_, stderr, code := run(t, "/nowhere", append([]string{"group", "register", "--group", "10.0.0.9"}, strings.Fields(args)...)...)
		if code != cli.ExitUsage || strings.Contains(strings.ToUpper(stderr), "C0FFEE") {
			t.Errorf("%s: exit %d, %s", args, code, stderr)
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		stdout, stderr, code := run(t, "/nowhere", "completion", shell)
		if code != 0 || stderr != "" || !strings.Contains(stdout, "gleam") || len(stdout) < 1000 {
			t.Errorf("%s: exit %d, %d bytes, %s", shell, code, len(stdout), stderr)
		}
	}
}

// TestDaemonThatDoesNotAnswer: a command gives up when its context does.
func TestDaemonThatDoesNotAnswer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s.sock")
	ln, err := net.Listen("unix", socket) // never accepts
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var out, msg bytes.Buffer
	code := cli.Run(ctx, &cli.Env{Stdout: &out, Stderr: &msg, Socket: socket}, []string{"stats"})
	if code != cli.ExitFailed || !strings.Contains(msg.String(), "did not answer in time") {
		t.Errorf("exit %d, %s", code, msg.String())
	}
}

// TestFollow: existing events come at once, and a cancelled context ends it without an
// error.
func TestFollow(t *testing.T) {
	b := apitest.Switch()
	socket := serve(t, b)
	for _, format := range []string{"table", "json"} {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		code := make(chan int)
		go func() {
			code <- cli.Run(ctx, &cli.Env{Stdout: w, Stderr: io.Discard, Socket: socket}, []string{"events", "-f", "-o", format})
		}()
		lines := bufio.NewScanner(r)
		for _, want := range []string{"registered", "silent"} {
			if !lines.Scan() || !strings.Contains(lines.Text(), want) {
				t.Errorf("%s: got %q, want %s", format, lines.Text(), want)
			}
			if v := (api.Event{}); format == "json" && json.Unmarshal(lines.Bytes(), &v) != nil {
				t.Errorf("%q is no JSON", lines.Text())
			}
		}
		cancel()
		if c := <-code; c != 0 {
			t.Errorf("exit %d", c)
		}
	}
}

// TestInterrupted: the end of a command's context by cancellation, as by Ctrl-C, is
// reported in a word; only other errors are added.
func TestInterrupted(t *testing.T) {
	for _, c := range []struct {
		name string
		err  func(context.Context) error
		want string
	}{
		{"cause", func(ctx context.Context) error { return fmt.Errorf("h2 joins: %w", context.Cause(ctx)) }, "gleam: interrupted\n"},
		{"canceled", func(ctx context.Context) error { return fmt.Errorf("poll: %w", ctx.Err()) }, "gleam: interrupted\n"},
		{"and a failure", func(ctx context.Context) error {
			return errors.Join(errors.Join(fmt.Errorf("poll: %w", ctx.Err()), errors.New("lab x is left")), errors.New("busy"))
		}, "gleam: interrupted\ngleam: lab x is left\ngleam: busy\n"},
		{"a failure that does not say why", func(context.Context) error { return errors.New("gleamd has ended") }, "gleam: interrupted\ngleam: gleamd has ended\n"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var out, msg bytes.Buffer
		code := cli.Run(ctx, &cli.Env{Stdout: &out, Stderr: &msg}, []string{"wait"}, func(*cli.Env) *cobra.Command {
			return &cobra.Command{Use: "wait", RunE: func(cmd *cobra.Command, _ []string) error {
				cancel()
				return c.err(cmd.Context())
			}}
		})
		if code != cli.ExitInterrupted || msg.String() != c.want || out.String() != "" {
			t.Errorf("%s: exit %d, %q, want %q", c.name, code, msg.String(), c.want)
		}
	}
}

// TestInterruptedQuestion: Ctrl-C while gleamd does not answer.
func TestInterruptedQuestion(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s.sock")
	ln, err := net.Listen("unix", socket) // never accepts
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	var out, msg bytes.Buffer
	code := cli.Run(ctx, &cli.Env{Stdout: &out, Stderr: &msg, Socket: socket}, []string{"group", "list"})
	if code != cli.ExitInterrupted || msg.String() != "gleam: interrupted\n" {
		t.Errorf("exit %d, %q", code, msg.String())
	}
}

// A switch is asked over TCP, or not, and then the reason is told.
func TestAddress(t *testing.T) {
	ca := certs.New(t)
	r, err := api.NewRemote(ca.Files(certs.Want{Name: "switch", Server: netip.MustParseAddr("127.0.0.1")}), nil, func(string, net.Addr, error, uint64) {})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := api.ListenTCP(t.Context(), "api.listen", netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx, ln, apitest.Switch(), api.Version{Version: "v1"}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	certificate, key := ca.Issue(certs.Want{Name: "reader", Client: true})
	to, files := []string{"group", "list", "--address", ln.Addr().String()}, []string{"--certificate", certificate, "--key", key, "--ca", ca.File}
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{append(to, files...), cli.ExitOK, "10.77.254.1"},
		{append(append(to, files...), "--key", "/nowhere"), cli.ExitFailed, "/nowhere: no such file or directory: name the files by --certificate, --key and --ca"},
		{append(append(to, files...), "--address", "10.0.0.1"), cli.ExitFailed, "want host and port"},
		{append(append([]string{"group", "delete", "10.77.254.1"}, to[2:]...), files...), cli.ExitFailed, `certificate "reader" may not change here`},
	} {
		stdout, stderr, code := run(t, "none", tt.args...)
		if code != tt.code || !strings.Contains(stdout+stderr, tt.says) {
			t.Errorf("%v: exit %d, %s%s", tt.args, code, stdout, stderr)
		}
	}
}

// Times in transcripts are of a zone of their own.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("test", int((2 * time.Hour).Seconds()))
	os.Exit(m.Run())
}
