// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fresh

// starts are how the targets are started, each in a machine of its own: those that take
// seconds are run, and so are others with less to do. With GLEAM_START=1 (scripts/test,
// scripts/need, test/rxe/run.sh) what a part needs is installed, its programs are started, its tests are built and
// listed, and its virtual machine boots.
var starts = []string{
	"make help build sbom",
	"make demo ARGS='--size 1MiB'",
	"make build; make install DESTDIR=/tmp/to; make uninstall DESTDIR=/tmp/to",
	"make libgleam; make install-libgleam DESTDIR=/tmp/to; make uninstall-libgleam DESTDIR=/tmp/to; make clean",
	"make generate",
	"make generate-check",
	"make static",
	"GLEAM_START=1 make check",
	"GLEAM_START=1 make test",
	"make reproducible",
	"make deb",
	"make deb ARCH=arm64",
	"make site",
	"GLEAM_START=1 make test-deb KEEP=1",
	"GLEAM_START=1 make test-docs",
	"GLEAM_START=1 make test-workers",
	"GLEAM_START=1 make test-fast",
	"GLEAM_START=1 make test-trees",
	"GLEAM_START=1 make test-libgleam",
	"GLEAM_START=1 make mutants-libgleam",
	"GLEAM_START=1 make test-web",
	"GLEAM_START=1 make screens",
	"GLEAM_START=1 make test-metrics",
	"GLEAM_START=1 make test-wireshark",
	"GLEAM_START=1 make test-block",
	"GLEAM_START=1 make soak-block",
	"GLEAM_START=1 make test-arm64",
	"GLEAM_START=1 make soak-workers",
	"GLEAM_START=1 make soak-trees",
	"GLEAM_START=1 make floods",
	"GLEAM_START=1 make test-rxe; GLEAM_START=1 make test-cm; GLEAM_START=1 make examples; GLEAM_START=1 make cm-compare",
	"GLEAM_START=1 make test-mpi",
	"GLEAM_START=1 make test-hpl",
	"make fuzz FUZZTIME=1x PKGS=./internal/hello",
	"make mutants ARGS='-run R14'",
	"make mutation ARGS='-every 300' PACKAGES=internal/dcqcn",
	"make model MODEL=quick",
	"make soak CHECKS=1",
	"make random-trees RUNS=1",
	"make bench ARGS='--help'",
	"make microbench BENCH=./internal/rocev2",
	"make sim-paper ARGS='--help'",
	"make sim-bench ROUNDS=1",
}
