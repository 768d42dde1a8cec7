// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Who may change the folders that a sender copies has it read nothing but the files that were
// listed: not what a symbolic link in the place of a file or a folder leads to, not another
// file, and it waits for no pipe.
func TestListedFileIsReplaced(t *testing.T) {
	for _, c := range []struct {
		name    string
		replace func(folder, file, secret string) error
		want    string
	}{
		{"by a symbolic link", func(_, file, secret string) error { return os.Symlink(secret, file) }, "a symbolic link has taken its place"},
		{"by a symbolic link to a file beside it", func(_, file, _ string) error { return os.Symlink("other", file) }, "a symbolic link has taken its place"},
		{"by a pipe", func(_, file, _ string) error { return unix.Mkfifo(file, 0o600) }, "is another file"},
		{"by another file", func(_, file, secret string) error { return os.Link(secret, file) }, "is another file"},
		{"by a directory", func(_, file, _ string) error { return os.Mkdir(file, 0o700) }, "is another file"},
		{"with its folder, by a symbolic link", func(folder, _, secret string) error {
			return errors.Join(os.RemoveAll(folder), os.Symlink(filepath.Dir(secret), folder))
		}, "a symbolic link has taken its place"},
		{"by nothing", func(_, _, _ string) error { return nil }, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := t.TempDir()
			folder := filepath.Join(top, "tree", "folder")
			file := filepath.Join(folder, "file")
			secret := filepath.Join(top, "private", "file")
			for _, d := range []string{folder, filepath.Dir(secret)} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			fill(t, file, minChunk, 0o644)
			fill(t, filepath.Join(folder, "other"), minChunk, 0o644)
			text := bytes.Repeat([]byte("secret! "), minChunk/8)
			if err := os.WriteFile(secret, text, 0o600); err != nil {
				t.Fatal(err)
			}
			i, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(secret, i.ModTime(), i.ModTime()); err != nil {
				t.Fatal(err)
			}
			s, err := gather([]string{filepath.Join(top, "tree")}, minChunk, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			if err := errors.Join(os.Rename(file, filepath.Join(top, "old")), c.replace(folder, file, secret)); err != nil {
				t.Fatal(err)
			}
			b, done := make([]byte, minChunk), make(chan error, 1)
			go func() {
				_, err := s.r.read(0, b)
				done <- err
			}()
			select {
			case err = <-done:
			case <-time.After(5 * time.Second):
				t.Fatal("the sender waits")
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file) {
				t.Errorf("%v, want %q and the file's name", err, c.want)
			}
			if bytes.Contains(b, []byte("secret")) {
				t.Error("the bytes of another file are read")
			}
			if err := s.changed(); err == nil {
				t.Error("the copy is said to be complete")
			}
		})
	}
}

// What is named may be a symbolic link; pipes, sockets and links below it are skipped.
func TestListing(t *testing.T) {
	top := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(top, "real"), 0o755), os.Symlink("real", filepath.Join(top, "named")),
		os.Symlink("/etc", filepath.Join(top, "real", "link")), unix.Mkfifo(filepath.Join(top, "real", "pipe"), 0o600),
		os.Symlink("real/file", filepath.Join(top, "name"))); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(top, "real", "file"), 10, 0o640)
	var skipped []string
	s, err := gather([]string{filepath.Join(top, "named"), filepath.Join(top, "name"), filepath.Join(top, "real", "pipe")}, minChunk, func(text string) { skipped = append(skipped, text) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	var paths []string
	for _, e := range s.m.entries {
		paths = append(paths, e.path())
	}
	if fmt.Sprint(paths) != "[named named/file name]" || len(skipped) != 3 {
		t.Errorf("%v are copied, and %q", paths, skipped)
	}
	if err := s.changed(); err != nil {
		t.Error(err)
	}
}

// A copy that breaks off leaves no directory without its own permissions, neither new ones
// nor those that were there.
func TestBrokenCopyLeavesPermissions(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "there"), 0o755), os.Mkdir(filepath.Join(dir, "closed"), 0o500)); err != nil {
		t.Fatal(err)
	}
	addr, said := receiving(t, dir)
	l := loopback()
	id, err := l.identity()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := id.Dial(t.Context(), addr, use)
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(conn)
	defer w.close()
	var list bytes.Buffer
	modes := map[string]fs.FileMode{"there": 0o755, "new": 0o751, "new/below": 0o555, "closed": 0o500}
	for _, name := range []string{"there", "new", "new/below", "closed"} {
		_ = json.NewEncoder(&list).Encode(&entry{Path: []byte(name), Dir: true, Mode: uint32(modes[name])})
	}
	_ = json.NewEncoder(&list).Encode(&entry{Path: []byte("new/below/file"), Mode: 0o644, Size: 3})
	h, _ := json.Marshal(&hello{Chunk: minChunk, Window: 2, Key: make([]byte, keySize)})
	for _, f := range []frame{{frameHello, h}, {frameEntries, list.Bytes()}, {frameListed, nil}, {frameRight, []byte{0}}} {
		if err := w.send(f.kind, f.data); err != nil {
			t.Fatal(err)
		}
	}
	for kind := byte(0); kind != frameMissing; {
		if kind, _, err = w.receive(); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, extra fs.FileMode) {
		t.Helper()
		for name, want := range modes {
			if i, err := os.Stat(filepath.Join(dir, name)); err != nil || i.Mode().Perm() != want|extra {
				t.Errorf("%s %s has %v, want %v: %v", when, name, i.Mode(), want|extra, err)
			}
		}
	}
	check("meanwhile", 0o700)
	w.close()
	for end := time.Now().Add(10 * time.Second); !strings.Contains(said(), "closed the connection"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the receiver goes on:\n%s", said())
		}
	}
	check("afterwards", 0)
}

// In a directory that others may write to, files that they have put where unfinished ones are
// are not written to, and keep nobody from copying.
func TestUnfinishedFileOfAStranger(t *testing.T) {
	src := filepath.Join(t.TempDir(), "file")
	fill(t, src, 3*minChunk, 0o644)
	own := filepath.Join(t.TempDir(), "own")
	fill(t, own, 10, 0o600)
	whole, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func(part string) error{
		"another user's file": func(part string) error {
			if os.Geteuid() != 0 {
				t.Skip("needs root, to make a file of another user")
			}
			return errors.Join(os.WriteFile(part, whole[:minChunk], 0o666), os.Chown(part, 4711, 4711), os.Chmod(part, 0o666))
		},
		"another name of a file":    func(part string) error { return os.Link(own, part) },
		"a symbolic link":           func(part string) error { return os.Symlink(own, part) },
		"a symbolic link to nobody": func(part string) error { return os.Symlink("nobody", part) },
		"a pipe":                    func(part string) error { return unix.Mkfifo(part, 0o666) },
		"a directory":               func(part string) error { return os.Mkdir(part, 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o1777); err != nil {
				t.Fatal(err)
			}
			part := filepath.Join(dir, partName("file"))
			if err := plant(part); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(part)
			if err != nil {
				t.Fatal(err)
			}
			addr, _ := receiving(t, dir)
			o := DefaultSendOptions()
			o.Local, o.Files, o.Hosts, o.Chunk, o.Timeout = loopback(), []string{src}, []string{addr}, minChunk, 5*time.Second
			if _, err := Send(t.Context(), &o); err != nil {
				t.Fatal(err)
			}
			same(t, src, filepath.Join(dir, "file"))
			after, err := os.Lstat(part)
			if err != nil || !os.SameFile(before, after) || after.Size() != before.Size() || after.Mode() != before.Mode() {
				t.Errorf("the stranger's file is touched: %v", err)
			}
			if b, err := os.ReadFile(own); err != nil || len(b) != 10 {
				t.Errorf("the file that is led to has %d bytes, %v", len(b), err)
			}
			if i, err := os.Stat(filepath.Join(dir, "file")); err != nil || os.SameFile(i, before) {
				t.Errorf("the copy is the stranger's file: %v", err)
			}
		})
	}
}

// Names, and reasons of others, control no terminal.
func TestDisplayIsClean(t *testing.T) {
	const evil = "a\x1b]0;evil\a\x1b[2J\u009b2J\nb"
	var out bytes.Buffer
	d := newDisplay(&out)
	d.terminal = true
	d.say(evil + " is skipped")
	d.show([]Status{{Host: evil, Error: evil}})
	d.say("x")
	text := strings.NewReplacer("\x1b[1A", "", "\x1b[J", "").Replace(out.String()) // its own
	if strings.ContainsAny(text, "\x1b\a\u009b") || strings.Count(text, "\n") != 4 || !strings.Contains(text, `a\u001b]0;evil`) {
		t.Errorf("%q", text)
	}
	if s := printable(evil); strings.ContainsAny(s, "\x1b\a\u009b\n") {
		t.Errorf("%q", s)
	}
}

// Wrong ways to read and write files where others have rights.
var _ = []mutant.Mutant{
	mutant.New("a symbolic link of the source is followed", "cp", mutant.In((beneath).open,
		"Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS",
		"Resolve: unix.RESOLVE_BENEATH")),
	mutant.New("a pipe of the source is waited for", "cp", mutant.In((beneath).read,
		"unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY",
		"unix.O_RDONLY|unix.O_NOCTTY")),
	mutant.New("any regular file is the one that was listed", "cp", mutant.In((*origin).open,
		"is != o.inode || !i.Mode().IsRegular()",
		"false && is != o.inode || !i.Mode().IsRegular()")),
	mutant.New("the unfinished file of anybody is taken", "cp", mutant.In(ours,
		"i.Mode().IsRegular() && int(st.Uid) == os.Geteuid() && st.Nlink == 1",
		"i.Mode().IsRegular() && st.Nlink == 1")),
	mutant.New("an unfinished file may have other names", "cp", mutant.In(ours,
		"i.Mode().IsRegular() && int(st.Uid) == os.Geteuid() && st.Nlink == 1",
		"i.Mode().IsRegular() && int(st.Uid) == os.Geteuid()")),
	mutant.New("a broken copy leaves its directories open to their owner", "cp", mutant.In((*store).settle,
		"err = errors.Join(err, s.permit(e, fs.FileMode(e.Mode)))",
		"_ = e")),
}
