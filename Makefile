# Aliases: the build is meson.build, the tests are tools/test.
BUILD  ?= build
PREFIX ?= /usr/local
# Meson asks dpkg-dev, which may not be there; then it takes lib64, where nothing on Debian looks.
libdir  = $(if $(wildcard /etc/debian_version),--libdir=lib/$(shell cc -print-multiarch))

.PHONY: all image run tour test test-ecosystem test-cluster test-docker bench bench-cluster fuzz soak wheel install format tidy clean help

all: $(BUILD)/build.ninja ## build: build/vial, build/vial-server, libvial.so
	@ninja -C $(BUILD) program

$(BUILD)/build.ninja:
	@tools/install-deps build
	@meson setup $(BUILD)

run: ## the daemon, warm, on 127.0.0.1:6000
	@tools/install-deps run
	@$(MAKE) --no-print-directory all
	@$(BUILD)/vial prepare
	@tools/build-environments || true # without the network there is no numpy, and all else
	@STATE_DIRECTORY=$(abspath $(BUILD))/state $(BUILD)/vial serve

tour: all ## a few minutes with `vial run`
	@tools/tour

test: ## all but the longest; ONLY="unit cli" for some stages
	@tools/install-deps test
	@tools/test $(ONLY)

test-ecosystem: all ## LangChain, smolagents, ruff, numpy's own tests, other Pythons; needs the network
	@tools/test-ecosystem

test-cluster: image ## Kubernetes, built once by Go (1.25 or later) from its modules: API server to kubelet
	@tools/install-deps cluster
	@ninja -C $(BUILD) --quiet cluster-drive
	@tests/cluster/run $(ONLY)

test-docker: image ## the Docker backend against an engine that is started for it, with the image of ours
	@tools/install-deps docker
	@tests/docker/run $(ONLY)

bench: ## cold starts beside plain python3, bubblewrap, crun and docker
	@tools/install-deps bench
	@$(MAKE) --no-print-directory all && ninja -C $(BUILD) --quiet bench-spawn bench-pool
	@tests/bench/run

bench-cluster: all ## what a dispatcher adds to steps and runs
	@tests/bench/cluster

fuzz: all ## libFuzzer on every parser, schemathesis on the whole; FUZZ_SECONDS=60 each
	@tools/install-deps fuzz
	@tools/fuzz
	@tools/fuzz-http

soak: all ## RUNS=5000 sandboxes, 20000 of a daemon, kills; then look for what is left
	@tools/soak $(RUNS)

wheel: ## the Python package with the programs in it: dist/
	@tools/install-deps wheel
	@tools/wheel

image: ## vial as a container image: build/image/vial.tar, for docker load and skopeo
	@tools/install-deps build image
	@$(MAKE) --no-print-directory all
	@tools/image

install: $(BUILD)/build.ninja ## DESTDIR= PREFIX=/usr/local
	@meson configure $(BUILD) --prefix=$(PREFIX) $(libdir)
	@ninja -C $(BUILD) program
	@meson install -C $(BUILD) --no-rebuild $(if $(DESTDIR),--destdir=$(abspath $(DESTDIR)))
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig

format: ## clang-format on the lines that differ from BASE=HEAD
	@git-clang-format --extensions c,h $(BASE)

tidy: ## clang-tidy over src/
	@tools/install-deps test
	@tools/test tidy_deep

clean: ## remove build*/
	@rm -rf build build-asan build-clang build-fuzz build-kernel

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile
