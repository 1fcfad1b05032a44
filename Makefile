# The front door.  Meson builds; this installs what is missing and says what it does.
#
#   make demo    one training job three ways on a simulated node, in under 90 s
#   make check   every test; ends with N passed, N failed, N skipped
#   make help    the rest

BUILD ?= build
SETUP = tools/setup
# Configuration lies in /etc, except where everything lies in a prefix of its own.
INTO = $(or $(PREFIX),/usr/local)
ETC = $(or $(SYSCONFDIR),$(if $(filter /usr /usr/local,$(INTO)),/etc,$(INTO)/etc))
DIRS = --prefix=$(INTO) --sysconfdir=$(ETC)

all: build

help:
	@echo "make demo      run one training job three ways on a simulated node and compare"
	@echo "make check     unit, contract, system, simulation, Python and lint: 15 minutes on 2 processors"
	@echo "make check-sanitizers  unit tests and simulations again, under AddressSanitizer, UBSan and ThreadSanitizer"
	@echo "make check-clients  the real Zeus, zeusd, nvtop and nvidia-ml-py on simulated boards; builds them"
	@echo "make check-python  of these, those of the Python package"
	@echo "make check-frameworks  PyTorch, Transformers, Lightning and Keras train on simulated boards; installs them, 6 GB"
	@echo "make check-zeus  Zeus' own tests and examples on Underwatt; the same packages"
	@echo "make check-slurm  a Slurm cluster of simulated nodes, as root; installs its packages"
	@echo "make quick     unit tests, and lint of what changed (under a minute)"
	@echo "make build     build into $(BUILD)/"
	@echo "make coverage  lines of base, core and plant that unit tests run, at least 90 %"
	@echo "make bench     the benchmarks, as JSON in $(BUILD)/bench-results/"
	@echo "make real      read a real NVIDIA board for four minutes (nothing is set), into $(BUILD)/real-results/"
	@echo "make fuzz      fuzz each parser for FUZZ_SECONDS (default 60) seconds, caps and claims at random"
	@echo "make soak      before a release, hours: every search, 100,000 random schedules, the analyzer"
	@echo "make mutants   put 22 past defects back, one at a time: the tests must find each"
	@echo "make format    let clang-format write the C files"
	@echo "make deb       Debian packages, in build-deb/"
	@echo "make install   install (DESTDIR, PREFIX and SYSCONFDIR are honoured)"
	@echo "make uninstall remove what make install has written; settings stay"
	@echo "make clean     remove the build directories"

$(BUILD)/build.ninja:
	@$(SETUP) build
	@if [ "$$CI" = true ]; then werror=true; else werror=false; fi; \
	    meson setup $(BUILD) -Dwerror=$$werror $(DIRS) >$(BUILD).log 2>&1 \
	    || { cat $(BUILD).log; exit 1; }; mv $(BUILD).log $(BUILD)/setup.log

build: $(BUILD)/build.ninja
	@$(SETUP) build
	@echo "building into $(BUILD)/"
	@ninja -C $(BUILD) --quiet

demo: build
	@tools/demo $(BUILD)

check:
	@$(SETUP) build check deb
	@tools/check

check-sanitizers:
	@$(SETUP) build check
	@tools/check asan tsan

check-clients:
	@$(SETUP) build check
	@tools/check clients

check-python:
	@$(SETUP) build check
	@tools/check python

check-frameworks:
	@$(SETUP) build check
	@tools/check frameworks

check-zeus:
	@$(SETUP) build check
	@tools/check zeus

check-slurm:
	@$(SETUP) build check slurm
	@tools/check slurm

quick: build
	@$(SETUP) check
	@tools/quick $(BUILD)

coverage:
	@$(SETUP) build check
	@tools/coverage

bench: build
	@tools/bench $(BUILD)

real: build
	@UNDERWATT_BUILD=$(abspath $(BUILD)) bench/real/session.py $(BUILD)/real-results || [ $$? -eq 77 ]

fuzz:
	@$(SETUP) build check
	@tools/fuzz

soak: build
	@$(SETUP) check
	@tools/soak $(BUILD)

mutants:
	@$(SETUP) build check
	@tools/mutants

format:
	@find include src tests bench -name '*.[ch]' -print0 | xargs -0 clang-format -i

deb:
	@$(SETUP) build deb
	@tools/deb

install: build
	@if [ -n "$(PREFIX)$(SYSCONFDIR)" ]; then meson configure $(BUILD) $(DIRS) && ninja -C $(BUILD) --quiet; fi
	@meson install -C $(BUILD) --no-rebuild

# Settings stay: they are not in Meson's list of installed files.
uninstall:
	@[ -f $(BUILD)/meson-logs/install-log.txt ] || { echo "make uninstall: nothing was installed from $(BUILD)" >&2; exit 1; }
	@tools/uninstall $(BUILD)/meson-logs/install-log.txt "$(DESTDIR)"

clean:
	rm -rf build build-check build-asan build-tsan build-fuzz build-random build-coverage build-mutants

.PHONY: all help build demo check check-sanitizers check-clients check-python check-frameworks check-zeus check-slurm quick coverage bench real fuzz soak mutants format deb install uninstall clean
