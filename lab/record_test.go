// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRecordsAreNotBelieved: a record decides what is unmounted and killed, so a record
// that names objects of another lab is refused.
func TestRecordsAreNotBelieved(t *testing.T) {
	for _, tt := range []struct{ name, record, want string }{
		{"good", `{"name":"x","owner":{"pid":1,"start":2},"namespaces":["x-h1"]}`, ""},
		{"no JSON", `{"name":`, "remove it by hand"},
		{"empty", ``, "remove it by hand"},
		{"another's name", `{"name":"y"}`, "do not belong"},
		{"another's namespace", `{"name":"x","namespaces":["y-h1"]}`, "do not belong"},
		{"outside the folder", `{"name":"x","namespaces":["x-/../../../etc"]}`, "do not belong"},
		{"bad name", `{"name":"../x"}`, "do not belong"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lab-x.json")
			if err := os.WriteFile(path, []byte(tt.record), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := readRecord(path)
			if tt.want == "" {
				if err != nil || r.Owner.PID != 1 || r.Owner.Start != 2 {
					t.Errorf("got %+v, %v", r, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want it to name the file and %q", err, tt.want)
			}
		})
	}
}

// TestKillSparesReusedIDs: the same id with another start time is another
// process.
func TestKillSparesReusedIDs(t *testing.T) {
	cmd := exec.Command("sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	id, err := identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	other := id
	other.Start++
	if other.alive() || !id.alive() {
		t.Error("alive does not look at the start time")
	}
	if err := other.kill(time.Second); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
		t.Fatal("killed a process that has the id only")
	default:
	}
	if err := id.kill(time.Second); err != nil {
		t.Error(err)
	}
	var exit *exec.ExitError
	if err := <-ended; !errors.As(err, &exit) || exit.String() != "signal: terminated" {
		t.Errorf("ended with %v", err)
	}
	if id.alive() || id.kill(time.Second) != nil {
		t.Error("a process that has ended is alive, or cannot be killed again")
	}
}

// TestIdentifyOddNames: the command's name in /proc/PID/stat may hold spaces and
// parentheses.
func TestIdentifyOddNames(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(t.TempDir(), "a) S 1 (b")
	data, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(odd, data, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(odd, "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	id, err := identify(cmd.Process.Pid)
	if err != nil || id.Start < self.Start || id.Start > self.Start+100*3600 {
		t.Errorf("got %+v, %v; this process started at %d", id, err, self.Start)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var tl outputTail
	for range 3 {
		if n, err := tl.Write([]byte(strings.Repeat("a", outputCap/2))); n != outputCap/2 || err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := tl.Write([]byte("end")); err != nil {
		t.Fatal(err)
	}
	if s := tl.String(); len(s) != outputCap || !strings.HasSuffix(s, "aend") {
		t.Errorf("%d bytes, ending in %q", len(s), s[len(s)-5:])
	}
}
