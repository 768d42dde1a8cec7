// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Oldest is the oldest Linux that gleamd runs on, OldestFastPath that of the fast path, as
// major and minor number.
var (
	Oldest         = Version{5, 10}
	OldestFastPath = Version{5, 18}
	OldestClones   = Version{6, 6}
)

// Version is the version of a kernel.
type Version struct{ major, minor int }

// String implements fmt.Stringer.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.major, v.minor) }

// After reports whether v is after that of a release, such as 6.1.0-13-amd64. No version is
// after a release that cannot be read.
func (v Version) After(release string) bool {
	var x, y int
	if n, _ := fmt.Sscanf(release, "%d.%d", &x, &y); n != 2 {
		return false
	}
	return x < v.major || x == v.major && y < v.minor
}

// Release returns that of the kernel that runs; empty if it does not say.
func Release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// HasBTF reports whether the kernel describes its types, which programs attached to its
// functions need. root is the folder with /sys.
func HasBTF(root string) bool {
	_, err := os.Stat(filepath.Join(root, "/sys/kernel/btf/vmlinux"))
	return err == nil
}

// HugePagesFile has the setting of transparent huge pages.
const HugePagesFile = "/sys/kernel/mm/transparent_hugepage/enabled"

// HugePages returns the setting of transparent huge pages: always, madvise or never; empty:
// this kernel has none. gleamd uses them with always and madvise. root is the folder with /sys.
func HugePages(root string) string {
	_, rest, _ := strings.Cut(read(root, HugePagesFile), "[")
	setting, _, _ := strings.Cut(rest, "]")
	return setting
}

// read returns a file of /proc or /sys without white space at its ends; empty: it is not there.
func read(root, path string) string {
	b, err := os.ReadFile(filepath.Join("/", root, path))
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}
