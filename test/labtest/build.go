// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Build builds programs of this module into the folder or file to, as make build
// does: without cgo, which gleamd cannot be confined with.
func Build(to string, packages ...string) error {
	c := exec.Command("go", append([]string{"build", "-o", to}, packages...)...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build %v: %w\n%s", packages, err, out)
	}
	return nil
}

// Programs are programs that the tests of a package run. They are built once, in
// a folder that every user can execute them from.
type Programs struct {
	Packages []string               // folders of main packages; may be empty
	More     func(dir string) error // builds programs in other languages; may be nil

	once sync.Once
	dir  string
	err  error
}

// Run runs the tests of a package, from its TestMain, removes the programs after
// them, and returns the exit code. With FastPathEnv they fail if no packet took the fast path.
func (p *Programs) Run(m *testing.M) int {
	code := checkFast(m.Run())
	if p.dir != "" {
		_ = os.RemoveAll(p.dir)
	}
	return code
}

// Dir returns the folder of the programs.
func (p *Programs) Dir(t testing.TB) string {
	t.Helper()
	p.once.Do(func() {
		if p.dir, p.err = os.MkdirTemp("", "gleam-programs"); p.err != nil {
			return
		}
		p.err = os.Chmod(p.dir, 0o755)
		if p.err == nil && len(p.Packages) > 0 {
			p.err = Build(p.dir+"/", p.Packages...)
		}
		if p.err == nil && p.More != nil {
			p.err = p.More(p.dir)
		}
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.dir
}

// Path returns the file of a program.
func (p *Programs) Path(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(p.Dir(t), name)
}
