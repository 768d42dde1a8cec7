# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0

GO       ?= go
FUZZTIME ?= 30s
CHECKS   ?= 3000
ARGS     ?=
PKGS     ?= ./...
DESTDIR  ?=
PREFIX   ?= /usr/local
CONFDIR  := /etc/gleam
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# A source package has debian/commit, and no repository.
COMMIT   ?= $(shell cat debian/commit 2>/dev/null || git describe --match= --always --abbrev=12 --dirty=+dirty 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X github.com/gleam-rdma/gleam/api.release=$(VERSION) -X github.com/gleam-rdma/gleam/api.commit=$(COMMIT)
BENCH    := ./rocev2 ./mcast ./host/rc ./dataplane/... ./internal/control

export GO
# What one checkout has compiled serves every other: without it the folder is a part of what the build cache goes by.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell $(GO) env GOFLAGS 2>/dev/null)) -trimpath)
.DEFAULT_GOAL := help
.PHONY: help reproducible sbom test-fast test-trees test-rxe libgleam install-libgleam uninstall-libgleam mutants-libgleam build install uninstall demo check test static generate generate-check fuzz mutants mutation model soak soak-workers chaos random-trees floods test-workers bench microbench sim-paper sim-bench clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

build: ## bin/gleamd, bin/gleam and bin/gleam-lab: static, pure Go
	CGO_ENABLED=0 $(GO) build -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/ ./cmd/gleamd ./cmd/gleam ./cmd/gleam-lab

install: ## bin/gleamd, bin/gleam, bin/gleam-lab, a systemd unit and the user gleam; below DESTDIR/PREFIX (/usr/local), configuration in DESTDIR/etc/gleam
	@for p in gleamd gleam gleam-lab; do [ -x bin/$$p ] || { echo "there is no bin/$$p yet; type: make build" >&2; exit 1; }; done
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)$(PREFIX)/lib/sysusers.d $(DESTDIR)$(CONFDIR)
	install -m 755 bin/gleamd bin/gleam bin/gleam-lab $(DESTDIR)$(PREFIX)/bin
	sed 's|@PREFIX@|$(PREFIX)|' config/gleamd.service.in > $(DESTDIR)$(PREFIX)/lib/systemd/system/gleamd.service
	install -m 644 config/gleam.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/gleam.conf
	@if [ -z "$(DESTDIR)" ]; then scripts/system-user; fi
	install -m 644 config/reference.yaml $(DESTDIR)$(CONFDIR)/reference.yaml
	@if [ -e $(DESTDIR)$(CONFDIR)/gleamd.yaml ]; then echo "$(DESTDIR)$(CONFDIR)/gleamd.yaml is there already, and stays as it is"; \
	else set -x; install -m 644 config/gleamd.yaml $(DESTDIR)$(CONFDIR)/gleamd.yaml; fi

uninstall: ## what install has installed, but not the user gleam, nor gleamd.yaml and keys in /etc/gleam
	rm -f $(DESTDIR)$(PREFIX)/bin/gleamd $(DESTDIR)$(PREFIX)/bin/gleam $(DESTDIR)$(PREFIX)/bin/gleam-lab $(DESTDIR)$(PREFIX)/lib/systemd/system/gleamd.service \
		$(DESTDIR)$(PREFIX)/lib/sysusers.d/gleam.conf $(DESTDIR)$(CONFDIR)/reference.yaml

libgleam: ## host/libgleam/build/libgleam.so.1: groups for programs in C (gcc)
	@scripts/need libgleam-build
	$(MAKE) -C host/libgleam

install-libgleam: ## install libgleam.so, libgleam-tls.so, gleam.h, gleam.pc, gleam(3) and pygleam below DESTDIR/PREFIX (/usr/local)
	$(MAKE) -C host/libgleam install

uninstall-libgleam: ## remove what install-libgleam has installed
	$(MAKE) -C host/libgleam uninstall

.PHONY: deb site test-docs
site: ## bin/site: the documents as a static site with a search, which loads nothing from elsewhere
	@scripts/site/build bin/site

test-docs: ## every command of README and docs that a lab can run, those that take minutes too (root)
	@scripts/test docs

deb: ## bin/deb: Debian packages gleamd, gleam, gleam-lab, libgleam1, libgleam-dev and python3-gleam, which lintian has nothing to say about; ARCH=arm64: bin/deb-arm64, by a cross compiler
	@ARCH=$(ARCH) scripts/deb

.PHONY: test-deb test-fresh test-arm64
test-deb: ## the packages installed, upgraded while a group sends, killed by the watchdog, purged, in a Debian with systemd (root; BASE=FOLDER: of the version before)
	@[ -n "$(KEEP)" ] || ARCH= scripts/deb
	@GLEAM_DEB=$(CURDIR)/bin/deb GLEAM_DEB_BEFORE=$(BASE) GLEAM_DEB_ROOT=$(ROOT) scripts/test deb

test-fresh: ## README's two commands, and each other target, in a Debian with git, make and Go alone (root; FORM=quick: the targets alone; FORM=long: all that each does, a day; ARGS='-run Targets/make_soak')
	@GLEAM_FRESH=$(or $(FORM),whole) scripts/test fresh $(ARGS)

test-arm64: ## the tests of core, rings and state files as programs for arm64, emulated (PKGS='./host/rc')
	@scripts/test arm64 $(if $(filter-out ./...,$(PKGS)),$(PKGS))

reproducible: ## build here, and in another folder with an empty cache, and compare the bytes
	@scripts/reproducible

sbom: build ## bin/gleam.cdx.json: what the programs are made of, as CycloneDX
	$(GO) run ./scripts/sbom $(VERSION) bin/gleamd bin/gleam bin/gleam-lab > bin/gleam.cdx.json

demo: build ## set up a lab, send a file to three receivers, verify, clean up (root; ARGS='--members 8')
	@GLEAM_GOAL=demo scripts/as-root bin/gleam demo $(ARGS)

check: static generate-check ## formatting, vet, staticcheck, BPF object, and what can be tested without root
	@scripts/test unit

test: ## everything the project promises (root for the privileged tests)
	@scripts/as-root true
	@$(MAKE) --no-print-directory static generate-check build
	@scripts/test all
	@scripts/test timing
	@test/rxe/run.sh --also-mpi

test-workers: ## the privileged tests of the switch with several workers (root; WORKERS=3)
	@scripts/test workers

test-fast: ## the privileged tests of switch, trees, demo and restarts with the fast path on (root; FAST=require)
	@scripts/test fast

.PHONY: test-blame
test-blame: ## whom the switch names when one of three receivers is slow: faults by loads, RUNS (20) of each cell, a table (root; CELLS='loss 1')
	@GLEAM_BLAME_RUNS=$(or $(RUNS),20) GLEAM_BLAME_CELLS='$(CELLS)' scripts/test blame

.PHONY: test-restarts
test-restarts: ## situations by ways in which gleamd ends (SIGTERM, kill -9, state files that fail), beside a hostile host (root; ARGS=--long: again and again for RESTARTS (20m))
	@GLEAM_RESTART_MATRIX=$(if $(findstring --long,$(ARGS)),$(or $(RESTARTS),20m),0s) scripts/test restarts

test-trees: ## groups over a fat-tree of 20 switches, static routes and BGP, with losses (root)
	@scripts/test trees

test-rxe: ## the switch against the kernel's soft-RoCE, in an emulated machine (ARGS='--long'; --here on a machine that has rxe)
	@test/rxe/run.sh $(ARGS)

.PHONY: test-nics
test-nics: ## gleamd at emulated NICs (virtio-net, vmxnet3, e1000e, igb), whose links, queues and MTUs change, in the machine of test-rxe (root for taps; ARGS=--quick)
	@test/nics/run.sh $(ARGS)

.PHONY: test-kernels
test-kernels: ## an older kernel takes the XDP programs, and they work there: Linux 6.1 in QEMU
	@test/kernels/run.sh

.PHONY: test-cm
test-cm: ## programs that join by RDMA-CM, with the kernel's communication manager, in the machine of test-rxe
	@test/rxe/run.sh --run RDMA-CM --long $(ARGS)

.PHONY: test-mpi
test-mpi: ## MPI_Bcast of programs for Open MPI and MPICH by groups, in a machine of its own
	@test/rxe/run.sh --mpi $(ARGS)

.PHONY: test-hpl
test-hpl: ## HPL, built from Debian's sources, with panel broadcast and row swap by groups; ARGS=--long measures them
	@test/rxe/run.sh --hpl $(ARGS)

.PHONY: examples
examples: ## the programs of examples, with the kernel's soft-RoCE and gleamd, in the machine of test-rxe
	@test/rxe/run.sh --run '^example' $(ARGS)

.PHONY: test-libgleam
test-libgleam: ## libgleam from C under ASan, UBSan, ThreadSanitizer and valgrind, its symbols by abidiff, C++ and Python with numpy (root)
	@scripts/test libgleam

.PHONY: test-web test-wireshark test-block soak-block screens
screens: ## docs/screens and the screens in docs/WEB.md, from labs (root)
	@mkdir -p docs/screens
	@GLEAM_SHOTS=$(CURDIR)/docs/screens scripts/test screens

test-web: ## the live page, and the search of the documents' site, in a headless Chromium (root; GLEAM_SHOTS=DIR writes pictures of the page there)
	@scripts/test web

.PHONY: test-torch
test-torch: ## torch.distributed by groups, with Debian's torch: bytes, speed beside Gloo, KILLS (30) ranks killed at random that come back (root; GLEAM_SEED=n to repeat; FORM=quick: bytes and kills alone)
	@GLEAM_KILLS=$(or $(KILLS),30) GLEAM_FORM=$(FORM) scripts/test torch $(ARGS)
	@scripts/test torch-docs

.PHONY: test-metrics
test-metrics: ## Debian's Prometheus scrapes a lab's switch, a member is killed, the alert fires (root)
	@scripts/test metrics

test-wireshark: ## traces of the switch and the Wireshark dissector, read by tshark (root)
	@scripts/test wireshark

test-block: ## the replicated block device of lab/block: kills against a model, wrong files, other NBD clients (root)
	@scripts/test block

soak-block: ## its kills against the model, KILLS (300) of each kind of device (root; GLEAM_SEED=n to repeat)
	@GLEAM_KILLS=$(or $(KILLS),300) scripts/test soak-block

.PHONY: cm-compare
cm-compare: ## ib_send_bw -R to three servers by a group against three clients in turn: a table
	@test/rxe/run.sh --run 'clients in turn' --long $(ARGS)

static:
	@unformatted=$$($$($(GO) env GOROOT)/bin/gofmt -l $$($(GO) list -f '{{.Dir}}' ./...)); \
	if [ -n "$$unformatted" ]; then echo "not formatted; type: gofmt -w" $$unformatted >&2; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags record ./dataplane
	$(GO) tool staticcheck ./...
	@if scripts/need static; then \
		echo "$(GO) vet -tags verbs ./host/endpoint/... ./internal/cli/perf ./test/rxe/..."; $(GO) vet -tags verbs ./host/endpoint/... ./internal/cli/perf ./test/rxe/...; \
	else echo "NOTE: no libibverbs-dev, so what needs the build tag verbs was NOT looked at" >&2; [ "$$GLEAM_REQUIRE_ROOT" != 1 ]; fi

generate: ## rebuild the encodings of states and the committed BPF objects (clang-14, installed if it can be)
	$(GO) run ./test/statecode
	@scripts/need generate
	$(GO) generate ./bpf ./bpf/fastpath ./lab/bench/switchbench

generate-check:
	@scripts/generate-check

fuzz: ## run every fuzz target for FUZZTIME (30s), of PKGS (all)
	@scripts/fuzz $(FUZZTIME) $(PKGS)

mutants: ## plant small mistakes in the core, one at a time, and see a test notice each (ARGS='-run R14')
	@$(GO) run ./test/mutation $(ARGS)

mutants-libgleam: ## plant mistakes in the C sources of libgleam, and see a test notice each (root; ARGS='-run NAME')
	@GLEAM_GOAL=mutants-libgleam scripts/test mutants-libgleam -mutants $(ARGS)

mutation: ## mutants made from the syntax of the core's packages, and the part that the tests notice (PACKAGES=rocev2 ARGS='-every 10')
	@$(GO) run ./test/mutation/generate -least $(or $(LEAST),0) $(ARGS) $(or $(PACKAGES),rocev2 mcast envelope host/rc host/rc/dcqcn mcast/token dataplane dataplane/spsc dataplane/xsk internal/control internal/control/locate internal/control/location internal/control/fib internal/control/statefile internal/control/store envelope/hello host/endpoint/oob)

model: ## try everything that a small network can do to the switch (some minutes; MODEL=quick: some seconds)
	GLEAM_MODEL=$(or $(MODEL),full) $(GO) test -count=1 -timeout 60m -run '^TestModel$$' -v ./test/model ./mcast/token
	GLEAM_MODEL=$(or $(MODEL),full) $(GO) test -count=1 -timeout 60m -run '^TestModelOf' -parallel 16 ./internal/control
	GLEAM_MODEL=$(or $(MODEL),full) $(GO) test -count=1 -timeout 60m -run '^TestFalseCompletionsAreFound$$' -v ./test/mutation

soak: ## the random long runs of the core, CHECKS (3000) times each
	$(GO) test ./mcast ./host/rc -run 'Property|C72|Transfer|R110_TheLivingStay' -timeout 60m -rapid.checks=$(CHECKS)

soak-workers: ## random switches with 1 to 4 workers, then groups that come and go with data, for SOAK (2m) each, with the race detector (root)
	@GLEAM_SOAK=$(or $(SOAK),2m) scripts/test soak-workers

chaos: ## random groups in whole fabrics for CHAOS (30m): switches, links, hosts, clocks and disks fail, a stranger attacks, sources' completions are judged (root; GLEAM_SEED=n to repeat)
	@GLEAM_CHAOS=$(or $(CHAOS),30m) scripts/test chaos

random-trees: ## RUNS (5000) random trees of the core in virtual time, of a new multiplier: none is to stand still (docs/TREES.md)
	GLEAM_TREES="$${MULTIPLIER:-$$(date +%s)} 0 $(or $(RUNS),5000)" $(GO) test ./mcast -short -count=1 -timeout 24h -run '^Test(R89_|R90_MembersOf)TreesThatChange$$'

floods: ## goodput under attackers' floods beside that under harmless frames, medians, FLOODS (10s) of each (root)
	@GLEAM_FLOODS=$(or $(FLOODS),10s) scripts/test floods

.PHONY: personalities
personalities: ## sources and receivers that behave as RNICs are documented to, through the switch's workers in virtual time: a table of 240 cells
	GLEAM_PERSONALITIES=all $(GO) test ./dataplane -count=1 -timeout 30m -v -run '^TestPersonalities$$'

bench: build ## packets a second by the switch and by other means, side by side (root; ARGS='--quick'); with BASE=COMMIT, fails if a row is a quarter below that commit's
	@GLEAM_GOAL=bench scripts/as-root scripts/against "$(BASE)" bin/gleam bench switch $(ARGS)

sim-paper: build ## simulate the paper's results, and compare: docs/simulation/paper.md (ARGS='--scale 32' for less than all)
	bin/gleam sim paper --results $(or $(RESULTS),/tmp/gleam-sim-paper/$(VERSION)) --out docs/simulation $(ARGS)

sim-bench: build ## the simulator's speed, beside other simulators'; with BASE=COMMIT, fails if it is 10 % below that commit's
	scripts/sim-bench $(BASE)

microbench: ## Go benchmarks of the core and the data path, with allocations
	$(GO) test -run '^$$' -bench . -benchmem $(BENCH)

clean: ## remove what make made
	rm -rf bin host/libgleam/build
