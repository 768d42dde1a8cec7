// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// TestCPlusPlus: a member in C++ by gleam.hpp, with a master in C.
func TestCPlusPlus(t *testing.T) {
	w := newWorld(t, 2)
	labtest.Needs(t, "g++")
	out, err := exec.Command("g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I..",
		"-o", w.dir+"/participant-cpp", "testdata/participant.cpp", "-L"+w.dir+"/sanitized", "-lgleam", "-Wl,-rpath,"+w.dir+"/sanitized").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m := w.master(t, rightKey, "10.77.254.1", 1, 20000, false)
	x := w.startProgram(t, "participant-cpp", 1, w.ip(1, false), "0x21", rightKey, w.exchange(false))
	x.expect("refused -22 ", "attr.members is 0")
	x.expect("peer 10.77.254.1")
	x.expect("registered 2 members")
	x.expect("event 1 joined")
	x.expect("gone")
	m.expect("peer")
	m.expect("registered")
	m.expect("event joined |")
	m.expect("event left 10.77.0.2|")
	x.end()
	m.end()
}

const python = "/usr/bin/python3" // Debian's

// TestPython: a member in Python by pygleam, with a master in C. Its memory is that of a numpy
// array, or of an array of the standard library, not a copy.
func TestPython(t *testing.T) {
	for kind, name := range map[string]string{"numpy": "ndarray", "array": "array"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, 2)
			labtest.Needs(t, python)
			if kind == "numpy" {
				labtest.Needs(t, "/usr/lib/python3/dist-packages/numpy")
			}
			script, err := filepath.Abs("testdata/participant.py")
			if err != nil {
				t.Fatal(err)
			}
			folder, err := filepath.Abs("../python")
			if err != nil {
				t.Fatal(err)
			}
			m := w.master(t, rightKey, "10.77.254.1", 1, 20000, false)
			c := exec.Command(python, "-B", script, kind, w.ip(1, false), "0x21", rightKey, w.exchange(false))
			c.Env = append(os.Environ(), "PYTHONPATH="+folder, "PYGLEAM_LIBRARY="+w.dir+"/libgleam.so.1")
			x := w.startCommand(t, c, 1)
			x.expect("memory " + name + " 1048576 42")
			x.expect("refused True")
			x.expect("refused True")
			x.expect("refused [Errno 22] ", "attr.key_len is 5")
			x.expect("peer 10.77.254.1 0x4711")
			x.expect("registered 2 True")
			x.expect("event Event(kind=1, ", "joined")
			x.expect("gone")
			m.expect("peer")
			m.expect("registered")
			m.expect("event joined |")
			m.expect("event left 10.77.0.2|")
			x.end()
			m.end()
		})
	}
}

// TestRDMACMHeader: gleam_cm.h compiles against librdmacm, in C and in C++.
func TestRDMACMHeader(t *testing.T) {
	labtest.Needs(t, "/usr/include/rdma/rdma_cma.h")
	for _, c := range [][]string{{"gcc", "-std=c11", "-x", "c"}, {"g++", "-std=c++17", "-x", "c++"}} {
		source := t.TempDir() + "/x"
		text := "#include \"gleam_cm.h\"\nint f(struct rdma_cm_id *i, struct rdma_conn_param *p, struct gleam_cm_attr *a);\n" +
			"int f(struct rdma_cm_id *i, struct rdma_conn_param *p, struct gleam_cm_attr *a) { return gleam_cm_connect(i, p, a); }\n"
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args := append(c[1:], "-Wall", "-Wextra", "-Werror", "-I..", "-c", "-o", source+".o", source)
		if out, err := exec.Command(c[0], args...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}
