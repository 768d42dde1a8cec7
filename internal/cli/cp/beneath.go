// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// beneath is a folder, as a file system whose files are reached through no symbolic link and
// no "..", whatever others do to the folders in it meanwhile. It implements fs.FS.
type beneath struct{ dir *os.File }

// openBeneath opens the folder at a path. Symbolic links on the way to it are followed.
func openBeneath(at string) (beneath, error) {
	fd, err := unix.Open(at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return beneath{}, &fs.PathError{Op: "open", Path: at, Err: err}
	}
	return beneath{os.NewFile(uintptr(fd), at)}, nil
}

// read opens a file for reading. A pipe does not block.
func (b beneath) read(name string) (*os.File, error) {
	return b.open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
}

// open opens a file by its slash-separated name.
func (b beneath) open(name string, flags uint64) (*os.File, error) {
	at := filepath.Join(b.dir.Name(), name)
	for {
		fd, err := unix.Openat2(int(b.dir.Fd()), name, &unix.OpenHow{
			Flags:   flags | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), at), nil
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN): // a rename elsewhere
			continue
		case errors.Is(err, unix.ENOSYS):
			err = errors.New("this needs openat2 of Linux 5.6")
		case errors.Is(err, unix.ELOOP):
			err = errors.New("a symbolic link has taken its place, or that of a folder above it")
		}
		return nil, &fs.PathError{Op: "open", Path: at, Err: err}
	}
}

// Open implements fs.FS.
func (b beneath) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return b.read(name)
}

// Stat implements fs.StatFS.
func (b beneath) Stat(name string) (fs.FileInfo, error) {
	i, _, err := b.lstat(name)
	return i, err
}

// lstat describes a file without opening it for reading. A symbolic link is one.
func (b beneath) lstat(name string) (fs.FileInfo, inode, error) {
	f, err := b.open(name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return nil, inode{}, err
	}
	defer f.Close()
	return describe(f)
}

// inode identifies a file as long as it exists.
type inode struct{ dev, ino uint64 }

// describe describes an open file.
func describe(f *os.File) (fs.FileInfo, inode, error) {
	i, err := f.Stat()
	if err != nil {
		return nil, inode{}, err
	}
	return i, inodeOf(i), nil
}

// origin is where a listed file is.
type origin struct {
	in   beneath
	name string
	inode
}

func (o *origin) path() string { return filepath.Join(o.in.dir.Name(), o.name) }

// open opens the file for reading, if it is the regular file that was listed.
func (o *origin) open() (*os.File, error) {
	f, err := o.in.read(o.name)
	if err != nil {
		return nil, err
	}
	i, is, err := describe(f)
	if err == nil && (is != o.inode || !i.Mode().IsRegular()) {
		err = o.replaced()
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func (o *origin) replaced() error {
	return fmt.Errorf("%s is another file than the one that was listed: copy it again", o.path())
}

// inodeOf returns which file i describes.
func inodeOf(i fs.FileInfo) inode {
	st := i.Sys().(*syscall.Stat_t) // that of Linux
	return inode{st.Dev, st.Ino}
}
