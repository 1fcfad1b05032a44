#!/usr/bin/python3
"""The Debian packages: built, installed, tried, removed, in a system of their own.

The system is a copy-on-write view of this machine's, in a mount namespace: dpkg writes
nothing that outlives the test.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile

import uwtest

TOP = uwtest.TOP
t = uwtest.Tap()

if os.geteuid() != 0:
    uwtest.skip_all("root is needed to install packages in a mount namespace")
for tool in ("dpkg-buildpackage", "dh", "lintian"):
    if not shutil.which(tool):
        uwtest.skip_all(f"{tool}: not installed (tools/setup deb)")

# Inside of the namespace: $1 is where the packages lie.
INSIDE = r"""
set -eu
mount -t tmpfs tmpfs "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$2/upper,workdir=$2/work" "$2/root"
mount -t proc proc "$2/root/proc"
mount --rbind /dev "$2/root/dev"
mount -t tmpfs tmpfs "$2/root/run"
mount -t tmpfs tmpfs "$2/root/tmp"
mkdir "$2/root/packages"
find "$1" -maxdepth 1 -name "*.deb" ! -name "*-dbgsym_*" -exec cp {} "$2/root/packages" \;
chroot "$2/root" /bin/sh -eux -c "$3"
"""
INSIDE_S = 300    # 10 s on an idle machine, up to 50 s beside other tests


def inside(debs, script):
    with tempfile.TemporaryDirectory(prefix="uw-deb-") as tmp:
        try:
            return subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", INSIDE, "sh",
                                   str(debs), tmp, script],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSIDE_S)
        except subprocess.TimeoutExpired as e:
            shown = ((e.stdout or b"") + (e.stderr or b"")).decode(errors="replace")    # the shell's trace ends in what hangs
            t.ok(False, f"the packages are tried within {INSIDE_S} s", shown[-4000:])
            t.done()


if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
    uwtest.skip_all("unshare --mount is not allowed here")

# The compiler yields to the tests beside: a session of its own, as low as can be (sched(7), autogroups).
# Packaging is tried here: the optimized build is the plain one of `make check`.
LOW = ["sh", "-c", 'echo 19 2>/dev/null >/proc/self/autogroup; exec nice -n 19 "$@"', "low"]

with tempfile.TemporaryDirectory(prefix="uw-build-") as tmp:
    p = subprocess.run([*LOW, str(TOP / "tools/deb"), tmp], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       timeout=1700, start_new_session=True,
                       env={**os.environ, "DEB_BUILD_OPTIONS": "noopt", "DEB_CFLAGS_APPEND": "-g1"})
    if not t.ok(p.returncode == 0, "the packages build", p.stdout[-3000:] + p.stderr[-3000:]):
        t.done()
    debs = pathlib.Path(tmp)
    names = sorted(f.name.split("_")[0] for f in debs.glob("*.deb"))
    t.equal([n for n in names if not n.endswith("-dbgsym")],
            ["libunderwatt-dev", "libunderwatt0", "underwatt", "underwatt-sim", "underwatt-slurm"], "five packages")

    p = subprocess.run([*LOW, "lintian", "--fail-on", "error,warning", "--tag-display-limit", "0", *debs.glob("*.changes")],
                       capture_output=True, text=True, timeout=600)
    t.ok(p.returncode == 0, "lintian has nothing to say", p.stdout[-3000:] + p.stderr[-1000:])
    p = subprocess.run(["dpkg-deb", "--contents", *debs.glob("underwatt_*.deb")], capture_output=True, text=True)
    t.ok(all(f"./usr/share/doc/underwatt/{name}\n" in p.stdout for name in ("signals.md", "design/launches.md", "openapi.yaml")),
         "the pages that man pages cite are in the package", p.stdout[-3000:] + p.stderr)

    p = inside(debs, r"""
        export DEBIAN_FRONTEND=noninteractive
        dpkg -i /packages/underwatt_*.deb /packages/libunderwatt*.deb /packages/underwatt-sim_*.deb >/tmp/dpkg.log 2>&1 \
            || { cat /tmp/dpkg.log; exit 1; }
        dpkg -i --force-depends /packages/underwatt-slurm_*.deb >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log; exit 1; }
        echo "version: $(underwatt --version)"
        echo "plugin: $(nm -D --defined-only /usr/lib/*/slurm-wlm/spank_underwatt.so | cut -d' ' -f3 | tr '\n' ' ')"
        underwatt-sim --state /tmp/world start --board v100 --count 2 >/dev/null
        echo "boards: $(underwatt-sim --state /tmp/world exec -- underwatt list | grep -c V100)"
        underwatt-sim --state /tmp/world exec -- underwatt run --local --cap 60% --gpus 0 --quiet --count-launches -- \
            sh -c 'test -r "$CUDA_INJECTION64_PATH" && echo "injects: yes"' || true
        underwatt-sim --state /tmp/world stop >/dev/null
        printf '#include <underwatt/underwatt.h>\n#include <stdio.h>\nint main(void){puts(uw_version());return 0;}\n' >/tmp/x.c
        cc /tmp/x.c -o /tmp/x $(pkg-config --cflags --libs underwatt) && echo "library: $(/tmp/x)"
        man -w underwatt >/dev/null 2>&1 || ls /usr/share/man/man1/underwatt.1.gz >/dev/null
        [ -e /etc/underwatt/underwattd.yaml ] && underwattd --check /etc/underwatt/underwattd.yaml
        ls /lib/systemd/system/underwatt* 2>/dev/null | sed 's/^/unit: /'
        getent passwd underwatt | sed 's/^/user: /' || true
        dpkg --purge underwatt-slurm underwatt-sim libunderwatt-dev underwatt libunderwatt0 >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log; exit 1; }
        for f in /usr/bin/underwatt* /usr/sbin/underwatt* /lib/systemd/system/underwatt* /etc/underwatt /usr/lib/*/underwatt /usr/lib/*/slurm-wlm/spank_underwatt.so; do
            [ -e "$f" ] && echo "left: $f"
        done
        echo done
        """)
    out = p.stdout
    t.ok(p.returncode == 0 and out.rstrip().endswith("done"), "they install, work and can be removed",
         out[-3000:] + p.stderr[-2000:])
    t.ok("version: underwatt 0.1.0" in out, "underwatt runs", out)
    t.ok("plugin: plugin_name plugin_type plugin_version slurm_spank_init slurm_spank_init_post_opt slurm_spank_job_epilog slurm_spank_job_prolog spank_plugin_version" in out,
         "Slurm's plugin shows what Slurm looks up, and no more", out)
    t.ok("boards: 2" in out, "the packaged simulator shows boards to the packaged command", out)
    t.ok("injects: yes" in out, "the packaged command finds the packaged injection library", out + p.stderr)
    t.ok("library: 0.1.0" in out, "a program builds against the packaged library", out)
    t.ok("left: " not in out, "nothing is left after purge", out)
t.done()
