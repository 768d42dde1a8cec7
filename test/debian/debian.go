// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package debian makes small Debians in folders, and runs commands in them.
package debian

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// Root makes a minimal Debian of this machine's release and apt sources, with packages more, in
// a folder that users other than root can enter. It is removed after the test.
func Root(t *testing.T, packages ...string) string {
	t.Helper()
	labtest.Needs(t, "mmdebstrap")
	root := Folder(t)
	c := exec.Command("mmdebstrap", "--quiet", "--variant=minbase", "--include="+strings.Join(packages, ","), release(t), root, "-")
	c.Stdin = sources(t)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("mmdebstrap: %v\n%s", err, out)
	}
	return root
}

// Folder makes a folder that users other than root can enter, as those of t.TempDir are not.
func Folder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "gleam-debian")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

// sources returns this machine's apt sources of Debian.
func sources(t *testing.T) *bytes.Buffer {
	t.Helper()
	out, err := exec.Command("apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT) # $(ORIGIN)", "Created-By: Packages").Output()
	if err != nil {
		t.Fatalf("read the apt sources: %v", err)
	}
	var sources bytes.Buffer
	for line := range strings.Lines(string(out)) {
		if source, ok := strings.CutSuffix(strings.TrimSpace(line), " # Debian"); ok {
			fmt.Fprintln(&sources, source)
		}
	}
	if sources.Len() == 0 {
		t.Fatal("no apt source of Debian on this machine; type: apt-get update")
	}
	return &sources
}

func release(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// Script returns lines of a shell in a new mount and process namespace, after which root is
// its /, with /proc, /sys, /dev and an empty /run, and folders of this machine at the
// places that binds names them for. A bind that begins with "ro:" cannot be written to. With a base that
// is another root, the machine begins as base is, and root has what differs. The shell's next command has to be exec.
func Script(root, base string, binds map[string]string) string {
	var s strings.Builder
	s.WriteString("set -e; mount --make-rprivate /\n")
	if base == "" {
		fmt.Fprintf(&s, "mount --bind '%s' '%[1]s'; cd '%[1]s'\n", root)
	} else {
		fmt.Fprintf(&s, "cd '%s'; mkdir -p upper work root; mount -t overlay overlay -o 'lowerdir=%s,upperdir=upper,workdir=work' root; cd root\n", root, base)
	}
	s.WriteString("mount -t proc proc proc; mount -t sysfs sysfs sys; mount -t bpf bpf sys/fs/bpf; mount --rbind /dev dev; mount -t tmpfs -o mode=755 tmpfs run\n")
	for _, place := range slices.Sorted(maps.Keys(binds)) {
		from, ro := strings.CutPrefix(binds[place], "ro:")
		fmt.Fprintf(&s, "mkdir -p .'%s'; mount --bind '%s' .'%[1]s'\n", place, from)
		if ro {
			fmt.Fprintf(&s, "mount -o remount,bind,ro .'%s'\n", place)
		}
	}
	s.WriteString("mkdir -p mnt; pivot_root . mnt; cd /; umount -l mnt\n")
	return s.String()
}

// Command runs a script, as Script has it, in namespaces of mounts and processes that end with
// it; prefix are words of a command that runs it.
func Command(script string, prefix ...string) *exec.Cmd {
	words := append(prefix, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script)
	return exec.Command(words[0], words[1:]...)
}
