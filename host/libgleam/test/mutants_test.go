// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var tryMutants = flag.Bool("mutants", false, "plant mistakes in the C sources, one at a time: TestMutants")

// folderVariable names a folder that has other sources of the library than ours.
const folderVariable = "GLEAM_LIBGLEAM"

// libraryFolder is the folder of libgleam whose sources are tested.
func libraryFolder() string {
	if dir := os.Getenv(folderVariable); dir != "" {
		return dir
	}
	return ".."
}

// mutant is a mistake in a source of the library, and the tests of which one must notice it.
type mutant struct {
	name, file, old, new, tests string
	says                        string // a part of the output of the test that fails
}

var mutants = []mutant{
	{"a field is written without the mutex", "loop.c", "pthread_mutex_lock(&g->mu);\n\tg->polling = false;", "g->polling = false;\n\tpthread_mutex_lock(&g->mu);", "TestThreads", ""},
	{"an eventfd stays open after exec", "loop.c", "g->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)", "g->wake = eventfd(0, EFD_NONBLOCK)", "TestFork", "the child has descriptors anon_inode:[eventfd]"},
	{"a socket stays open after exec", "udp.c", "SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK", "SOCK_DGRAM | SOCK_NONBLOCK", "TestFork", "the child has descriptors socket:"},
	{"a child of fork has groups with threads", "handle.c", "if (groups[i]->has_thread)", "if (groups[i]->destroyed)", "TestFork", ""},
	{"the records of the peers are not freed", "session.c", "free(g->peers);\n\tg->peers = NULL;", "g->peers = NULL;", "TestBlobFailures", ""},
	{"a blob is not authenticated", "blob.c", "if (!gl_equal(mac,", "if (n == 1 && !gl_equal(mac,", "TestBlobFailures", ""},
	{"a host has one process in groups", "udp.c", "setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&", "one &&", "TestBlobs", ""},
	{"a master does not renew", "master_time.c", "gl_backoff_start(&m->retry, now, m->cfg.retry_min, &m->random);\n\t\tgl_send_renew(m, now, o);", "gl_backoff_start(&m->retry, now, m->cfg.retry_min, &m->random);", "TestBlobs", ""},
	{"a newcomer that is removed stays", "session.c", "!g->mas.gone[i] : !failed)", "!g->mas.gone[i] : true)", "TestBlobs", ""},
	{"a member confirms the numbers of another queue pair", "session.c", ".sq_psn = g->self.sq_psn,", ".sq_psn = g->self.rq_psn + 1,", "TestBlobs", ""},
	{"a member does not say that it only receives", "session.c", "g->self.receive_only = g->flags & GLEAM_RECEIVE_ONLY;", "", "TestGroup", "host 3 is registered as"},
	{"the exchange does not pass on who only receives", "message.c", `r->receive_only ? ",\"receive_only\":true" : ""`, `""`, "TestGroup", "host 3 is registered as"},
	{"a blob does not say that its host only receives", "change.c", "x.receive_only = g->flags & GLEAM_RECEIVE_ONLY;", "", "TestBlobs", "of three members the last receives only"},
	{"the events of a group that is destroyed are not freed", "api.c", "g->first = w->next;\n\t\tg->num_events--;\n\t\tfree(w);", "g->first = w->next;\n\t\tg->num_events--;", "TestBlobFailures", "LeakSanitizer"},
	{"a short key is taken", "attr.c", "a->key_len < GL_MIN_KEY ||", "", "TestArguments", ""},
	{"a program of another release is served", "attr.c", "a->size != sizeof *a", "a->size == 0", "TestArguments", ""},
}

// TestMutants: the tests of the library notice the mistakes that are planted in its sources: races,
// leaks of memory and of descriptors, and wrong behaviour.
func TestMutants(t *testing.T) {
	if !*tryMutants {
		t.Skip("it takes minutes: make mutants-libgleam")
	}
	programs(t)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS("..")); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "src", m.file)
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(b), m.old); n != 1 {
				t.Fatalf("%s has its old text %d times, and must have it once: bring the mutant up to date", m.file, n)
			}
			if err := os.WriteFile(file, []byte(strings.Replace(string(b), m.old, m.new, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			c := exec.Command(os.Args[0], "-test.count=1", "-test.failfast", "-test.run", "^("+m.tests+")$")
			c.Env = append(os.Environ(), folderVariable+"="+dir)
			out, err := c.CombinedOutput()
			switch said := string(out); {
			case err == nil:
				t.Errorf("no test notices it:\n%s", said)
			case !strings.Contains(said, "--- FAIL: Test"):
				t.Errorf("it does not compile, or nothing ran:\n%s", said)
			case !strings.Contains(said, m.says):
				t.Errorf("it is noticed by another failure than %q:\n%s", m.says, said)
			default:
				_, why, _ := strings.Cut(said, "--- FAIL: ")
				t.Logf("%.400s", why)
			}
		})
	}
}
