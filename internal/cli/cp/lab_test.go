// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/bedtest"
	"github.com/gleam-rdma/gleam/test/labtest"
)

var programs = labtest.Programs{Packages: []string{"../../../cmd/gleamd", "../../../cmd/gleam"}}

func TestMain(m *testing.M) { os.Exit(programs.Run(m)) }

var groupIP = netip.MustParseAddr("10.77.254.1")

// rig is a switch, a sender's host and those of receivers.
type rig struct {
	*testbed.Testbed
	t   *testing.T
	key string // file
}

// newRig makes one whose hosts have links of 200 Mbit/s, for what they send.
func newRig(t *testing.T, hosts int) *rig {
	t.Helper()
	bed := bedtest.Star(t, testbed.Config{Gleamd: programs.Path(t, "gleamd"), Star: lab.StarConfig{Hosts: hosts, Rate: 200_000_000}})
	r := &rig{Testbed: bed, t: t, key: filepath.Join(t.TempDir(), "key")}
	if err := os.WriteFile(r.key, []byte(hex.EncodeToString(bed.Key)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) local() Local {
	l := DefaultLocal()
	l.Host.Auth = r.Key.Auth()
	return l
}

// receiver starts `gleam cp --receive` at a host.
func (r *rig) receiver(host int, dir string) *lab.Process {
	r.t.Helper()
	c := exec.Command(programs.Path(r.t, "gleam"), "cp", "--receive", dir, "--key-file", r.key)
	p, err := r.Star.Hosts[host].NS.Start(c)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = p.Stop(time.Second) })
	return p
}

// options are those of a copy of files to receivers at hosts 1 to n.
func (r *rig) options(n int, files ...string) *SendOptions {
	o := DefaultSendOptions()
	o.Local, o.Files = r.local(), files
	o.GroupIP = groupIP
	o.Say = func(text string) { r.t.Log(text) }
	for _, h := range r.Star.Hosts[1 : n+1] {
		o.Hosts = append(o.Hosts, h.IPv4.String())
	}
	return &o
}

func (r *rig) send(ctx context.Context, o *SendOptions) (res *Result, err error) {
	e := r.Star.Hosts[0].NS.Do(func() error { res, err = Send(ctx, o); return nil })
	if e != nil {
		r.t.Fatal(e)
	}
	return res, err
}

// fill writes a file of random bytes.
func fill(t *testing.T, name string, size int, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	src := rand.NewChaCha8([32]byte{byte(size), byte(len(name))})
	_, _ = io.ReadFull(src, b)
	old := time.Now().Add(-1000 * time.Hour)
	for _, err := range []error{os.WriteFile(name, b, 0o600), os.Chmod(name, mode), os.Chtimes(name, old, old)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// tree makes a directory with files of many sizes, and returns its name.
func tree(t *testing.T, chunk int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	for i, size := range []int{0, 1, chunk - 1, chunk, chunk + 1, 5*chunk + 17} {
		fill(t, filepath.Join(dir, "sizes", string(rune('a'+i))), size, 0o640)
	}
	fill(t, filepath.Join(dir, "bin", "run"), 100, 0o755)
	fill(t, filepath.Join(dir, "odd \xff name"), 3, 0o600)
	for _, err := range []error{os.Mkdir(filepath.Join(dir, "empty"), 0o700), os.Chmod(filepath.Join(dir, "sizes"), 0o555)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "sizes"), 0o755) })
	return dir
}

// same compares two trees: names, bytes, permissions, times.
func same(t *testing.T, want, got string) {
	t.Helper()
	count := func(dir string) (n int) {
		_ = filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { n++; return nil })
		return n
	}
	if a, b := count(want), count(got); a != b {
		t.Errorf("%s has %d files and directories, want %d", got, b, a)
	}
	err := filepath.WalkDir(want, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(want, path)
		copied := filepath.Join(got, rel)
		a, err := d.Info()
		if err != nil {
			return err
		}
		b, err := os.Lstat(copied)
		if err != nil {
			return err
		}
		if a.Mode() != b.Mode() || !a.ModTime().Equal(b.ModTime()) {
			t.Errorf("%s: %v %v, want %v %v", copied, b.Mode(), b.ModTime(), a.Mode(), a.ModTime())
		}
		if d.IsDir() {
			return nil
		}
		x, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		y, err := os.ReadFile(copied)
		if err != nil {
			return err
		}
		if !bytes.Equal(x, y) {
			t.Errorf("%s has other bytes", copied)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A directory goes to three hosts by one group, each byte once; the same command again
// sends nothing.
func TestGroup(t *testing.T) {
	r := newRig(t, 4)
	dir := tree(t, 256<<10)
	var to []string
	for i := range 3 {
		to = append(to, t.TempDir())
		r.receiver(i+1, to[i])
	}
	o := r.options(3, dir)
	res, err := r.send(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if res.Group != res.Bytes || res.TCP != 0 {
		t.Errorf("%d bytes by the group and %d by TCP, want %d and 0", res.Group, res.TCP, res.Bytes)
	}
	for _, d := range to {
		same(t, dir, filepath.Join(d, "tree"))
	}
	if res, err = r.send(t.Context(), o); err != nil || res.Group != 0 || res.TCP != 0 {
		t.Errorf("again: %v, %+v", err, res)
	}
}

// Of three receivers one is killed in the middle, and starts again: it gets the rest by
// TCP, and the others have all by the group. One has a part of the file from a copy that
// was interrupted, which is not sent again when it is alone.
func TestKilledAndResumed(t *testing.T) {
	r := newRig(t, 4)
	file := filepath.Join(t.TempDir(), "file")
	const size = 24 << 20
	fill(t, file, size, 0o644)
	to := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	var processes []*lab.Process
	for i, d := range to {
		processes = append(processes, r.receiver(i+1, d))
	}
	at := func(o *SendOptions, host int, share float64, do func()) {
		var once sync.Once
		o.Progress = func(list []Status) {
			if float64(list[host].Bytes) > share*size {
				once.Do(do)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := r.options(1, file)
	at(o, 0, 0.2, cancel)
	res, err := r.send(ctx, o)
	if err == nil {
		t.Fatal("the copy was not interrupted")
	}
	had := res.Hosts[0].Bytes
	o.Progress = nil
	if res, err = r.send(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if most := size - had; res.Group > most || had == 0 {
		t.Errorf("%d bytes were there, and %d were sent again", had, res.Group)
	}
	if err := os.Remove(filepath.Join(to[0], "file")); err != nil {
		t.Fatal(err)
	}
	o = r.options(3, file)
	at(o, 1, 0.2, func() {
		if err := processes[1].Signal(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		<-processes[1].Done()
		r.receiver(2, to[1])
	})
	if res, err = r.send(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if res.Group != size || res.TCP == 0 || res.TCP >= size {
		t.Errorf("%d bytes by the group, %d by TCP, of %d", res.Group, res.TCP, size)
	}
	for _, d := range to {
		same(t, file, filepath.Join(d, "file"))
	}
}

// A receiver that holds up the others leaves the group, and gets the rest by TCP.
func TestSlow(t *testing.T) {
	r := newRig(t, 4)
	file := filepath.Join(t.TempDir(), "file")
	const size = 8 << 20
	fill(t, file, size, 0o644)
	to := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	r.receiver(1, to[0])
	r.receiver(2, to[1])
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	slow := &ReceiveOptions{Local: r.local(), Dir: to[2], Address: ":18517", Say: func(string) {}}
	chunks := 0
	slow.onChunk = func() {
		if chunks++; chunks < 20 {
			time.Sleep(100 * time.Millisecond)
		}
	}
	go func() {
		defer close(ended)
		_ = r.Star.Hosts[3].NS.Do(func() error { return Receive(ctx, slow) })
	}()
	defer func() { cancel(); <-ended }()
	o := r.options(3, file)
	o.Window, o.Slow = 4, 500*time.Millisecond
	res, err := r.send(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if res.Group != size || res.TCP == 0 || res.TCP >= size {
		t.Errorf("%d bytes by the group, %d by TCP, of %d", res.Group, res.TCP, size)
	}
	for _, d := range to {
		same(t, file, filepath.Join(d, "file"))
	}
}
