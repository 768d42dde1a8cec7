// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fresh

// start is how targets are started, in a machine of its own.
type start struct {
	lines string
	// With runs they run, with less to do where all takes long. Without it GLEAM_START is 1 for
	// them (scripts/test, scripts/need, test/rxe/run.sh): what they need is installed, its programs are started, tests are
	// built and listed, the virtual machine boots.
	runs bool
	// The quick form is without it: it needs Go alone, or what another line or a part of .ci/run needs too, or takes long.
	long bool
	// The quick form has it in each run; a third of its other lines.
	always bool
}

var starts = []start{
	{lines: "make test", long: true},
	{lines: "make check", long: true},
	{lines: "make help build demo ARGS='--size 1MiB'", runs: true, always: true},
	{lines: "make build; make install DESTDIR=/tmp/to; make uninstall DESTDIR=/tmp/to", runs: true},
	{lines: "make libgleam; make install-libgleam DESTDIR=/tmp/to; make uninstall-libgleam DESTDIR=/tmp/to; make clean", runs: true},
	{lines: "make generate-check", runs: true, long: true},
	{lines: "make generate", runs: true, long: true},
	{lines: "make static", runs: true, long: true},
	{lines: "make deb", runs: true, long: true},
	{lines: "make deb ARCH=arm64", runs: true, long: true},
	{lines: "make test-deb KEEP=1", long: true},
	{lines: "make site", runs: true},
	{lines: "make test-docs"},
	{lines: "make test-workers", long: true},
	{lines: "make test-fast", long: true},
	{lines: "make test-trees", long: true},
	{lines: "make test-restarts", long: true},
	{lines: "make test-blame", long: true},
	{lines: "make test-libgleam", long: true},
	{lines: "make mutants-libgleam", long: true},
	{lines: "make test-web"},
	{lines: "make screens", long: true},
	{lines: "make test-metrics"},
	{lines: "make test-torch", long: true},
	{lines: "make test-wireshark"},
	{lines: "make test-block"},
	{lines: "make soak-block", long: true},
	{lines: "make test-arm64", long: true},
	{lines: "make soak-workers", long: true},
	{lines: "make chaos", long: true},
	{lines: "make floods", long: true},
	{lines: "make test-rxe; make test-cm; make examples; make cm-compare", long: true}, // they differ by the cases alone
	{lines: "make test-nics", long: true},
	{lines: "make test-kernels", long: true},
	{lines: "make test-mpi", long: true},
	{lines: "make test-hpl", long: true},
	{lines: "make reproducible", runs: true, long: true},
	{lines: "make sbom", runs: true, long: true},
	{lines: "make fuzz FUZZTIME=1x PKGS=./envelope/hello", runs: true, long: true},
	{lines: "make mutants ARGS='-run R14'", runs: true, long: true},
	{lines: "make mutation ARGS='-every 300' PACKAGES=host/rc/dcqcn", runs: true, long: true},
	{lines: "make model MODEL=quick", runs: true, long: true},
	{lines: "make soak CHECKS=1", runs: true, long: true},
	{lines: "make personalities", runs: true, long: true},
	{lines: "make random-trees RUNS=1", runs: true, long: true},
	{lines: "make bench ARGS='--help'", runs: true, long: true},
	{lines: "make microbench BENCH=./rocev2", runs: true, long: true},
	{lines: "make sim-paper ARGS='--help'", runs: true, long: true},
	{lines: "make sim-bench ROUNDS=1", runs: true, long: true},
}
