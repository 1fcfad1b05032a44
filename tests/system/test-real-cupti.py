#!/usr/bin/python3
"""libunderwatt-cuda.so with NVIDIA's own parts: libcuda 535 and CUPTI 11.8 of Debian's
non-free component, CUPTI 13 and the CUDA headers of the Python registry, on a machine
without a GPU.  Nothing is installed.

Without a driver CUPTI subscribes nobody, so what can be held here is: ids, names and
layouts are theirs; the real driver loads the library; a CUPTI that says no, or is not
there, harms nothing.  What CUPTI does on a GPU is not tested here.
"""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import uwtest

parts = sys.argv[1]
PAGE_END, SLOTS_AT = 4096 + 16384, 4096 + 256
ABSENT, ASIDE = 4, 5

if os.uname().machine != "x86_64":
    uwtest.skip_all("NVIDIA's parts are taken for x86_64")
debian = uwtest.debian_unpacked("non-free", "libcupti-dev", "libcupti11.8", "libcuda1")
if not debian:
    uwtest.skip_all("no libcupti11.8 and libcuda1 (Debian non-free is out of reach)")
python = uwtest.venv("nvidia-cuda-cupti==13.5.25", "nvidia-cuda-runtime==13.5.37",
                     "nvidia-cuda-runtime-cu11==11.8.89")
if not python:
    uwtest.skip_all("no nvidia-cuda-cupti 13 (the Python registry is out of reach)")
site = next(pathlib.Path(python).parents[1].glob("lib/python3*/site-packages/nvidia"))
debian_lib = debian / "usr/lib/x86_64-linux-gnu"
driver = debian_lib / "nvidia/current"
CUPTI = {"11.8": debian_lib / "libcupti.so.11.8", "13": site / "cu13/lib/libcupti.so.13"}
HEADERS = {"11.8": (debian / "usr/include", site / "cuda_runtime/include"),
           "13": (site / "cu13/include",)}
library = uwtest.BUILD / "src/cuda/libunderwatt-cuda.so"

t = uwtest.Tap()
tmp = pathlib.Path(tempfile.mkdtemp(prefix="uw-cupti-", dir="/dev/shm"))
tmp.chmod(0o777)
has_gpu = os.path.exists("/proc/driver/nvidia")
# As root the real driver makes device nodes even where there is no board.
nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}


def own(path):
    """A copy that nobody can reach, wherever the build lies."""
    copy = tmp / pathlib.Path(path).name
    if not copy.exists():
        shutil.copy(path, copy)
    return copy


def run(*args, cupti=None, **env):
    where = [str(tmp / "driver")] + ([str(tmp / f"cupti-{cupti}")] if cupti else [])
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("UNDERWATT", "CUDA_", "KINETO"))}
    return subprocess.run([own(parts), *args], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, cwd="/",
                          env={**clean, "LD_LIBRARY_PATH": ":".join(where), **env}, **nobody)


def new_page():
    p = run("page", str(tmp))
    return pathlib.Path(p.stdout.strip())


def slots(page):
    data = page.read_bytes()
    found = []
    for i in range(63):
        pid, since, state, version, result = struct.unpack_from("<QQIII", data, SLOTS_AT + 256 * i)
        if pid:
            found.append({"pid": pid, "state": state, "version": version, "result": result,
                          "counts": sum(struct.unpack_from("<24Q", data, SLOTS_AT + 256 * i + 64))})
    return found


CHECK = """
#define CUPTI_SUCCESS UW_SUCCESS
#define CUPTI_ERROR_INVALID_PARAMETER UW_INVALID_PARAMETER
#include "cuda/cupti.h"
#undef CUPTI_SUCCESS
#undef CUPTI_ERROR_INVALID_PARAMETER
#include <cuda.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
@PARAMS@
#define SAME(a, b) _Static_assert((a) == (b), #a " is " #b)
#define FIELD(ours, f, theirs, g) SAME(offsetof(struct ours, f), offsetof(theirs, g)); \\
    SAME(sizeof(((struct ours *)0)->f), sizeof(((theirs *)0)->g))
SAME((int)UW_SUCCESS, (int)CUPTI_SUCCESS);
SAME((int)UW_INVALID_PARAMETER, (int)CUPTI_ERROR_INVALID_PARAMETER);
SAME((int)CUPTI_DOMAIN_DRIVER_API, (int)CUPTI_CB_DOMAIN_DRIVER_API);
SAME((int)CUPTI_SITE_EXIT, (int)CUPTI_API_EXIT);
FIELD(cupti_call, site, CUpti_CallbackData, callbackSite);
FIELD(cupti_call, params, CUpti_CallbackData, functionParams);
FIELD(cupti_call, result, CUpti_CallbackData, functionReturnValue);
FIELD(cupti_call, context_uid, CUpti_CallbackData, contextUid);
SAME(sizeof(struct cupti_call), sizeof(CUpti_CallbackData));
SAME(sizeof(CUresult), sizeof(int32_t));
FIELD(cupti_kernel_params, stream, cuLaunchKernel_params, hStream);
FIELD(cupti_kernel_params, stream, cuLaunchKernel_ptsz_params, hStream);
FIELD(cupti_kernel_params, stream, cuLaunchCooperativeKernel_params, hStream);
FIELD(cupti_kernel_params, stream, cuLaunchCooperativeKernel_ptsz_params, hStream);
FIELD(cupti_kernel_ex_params, config, cuLaunchKernelEx_params, config);
FIELD(cupti_kernel_ex_params, config, cuLaunchKernelEx_ptsz_params, config);
FIELD(cupti_launch_config, stream, CUlaunchConfig, hStream);
FIELD(cupti_grid_async_params, stream, cuLaunchGridAsync_params, hStream);
FIELD(cupti_graph_params, stream, cuGraphLaunch_params, hStream);
FIELD(cupti_graph_params, stream, cuGraphLaunch_ptsz_params, hStream);
"""
SHARED = """
SAME(sizeof(struct cupti_subscriber_params), sizeof(CUpti_SubscriberParams));
FIELD(cupti_subscriber_params, name, CUpti_SubscriberParams, subscriberName);
FIELD(cupti_subscriber_params, old_name, CUpti_SubscriberParams, oldSubscriberName);
FIELD(cupti_subscriber_params, old_size, CUpti_SubscriberParams, oldSubscriberSize);
FIELD(cupti_subscriber_params, allow_others, CUpti_SubscriberParams, allowMultipleSubscribers);
"""


def layouts(version):
    ids = re.findall(r'X\((\w+),\s*"(\w+)"\)', (uwtest.TOP / "src/cuda/cupti.h").read_text())
    meta = (HEADERS[version][0] / "generated_cuda_meta.h").read_text()
    # the rest of that header wants types of the driver's own
    params = [re.search(rf"typedef struct {name}_st {{.*?}} {name};", meta, re.S).group(0)
              for name in sorted(set(re.findall(r"\bcu[A-Z]\w+_params\b", CHECK)))]
    text = CHECK.replace("@PARAMS@", "\n".join(params)) + (SHARED if version == "13" else "")
    text += "".join(f"SAME((int){ours}, (int)CUPTI_DRIVER_TRACE_CBID_{name});\n" for ours, name in ids)
    source = tmp / "check.c"
    source.write_text(text)
    # of the runtime's types none is wanted, and the headers that it includes are elsewhere
    (tmp / "builtin_types.h").write_text("")
    p = subprocess.run(["cc", "-std=gnu17", "-fsyntax-only", f"-I{uwtest.TOP}/src", f"-I{tmp}",
                        *(f"-I{d}" for d in HEADERS[version]), str(source)],
                       capture_output=True, text=True, timeout=120)
    t.ok(p.returncode == 0 and len(ids) == 12, f"CUPTI {version}: {len(ids)} ids and all layouts are its headers'",
         "\n".join(x for x in p.stderr.splitlines() if "error" in x))


def with_driver(version):
    page = new_page()
    env = {"CUDA_INJECTION64_PATH": str(own(library)), "UNDERWATT_PROGRESS": str(page)}
    plain = run("init", cupti=version)
    p = run("init", cupti=version, **env)
    name = f"CUPTI {version}" if version else "no CUPTI"
    t.ok(p.returncode == 0 and p.stdout == plain.stdout and not p.stderr,
         f"{name}: cuInit answers as without the library, nothing is said", p.stdout + p.stderr)
    got = slots(page)
    t.equal(len(got), 1, f"… the driver has called it: one slot")
    if has_gpu or not got:
        return
    t.equal(got[0]["state"], ASIDE if version else ABSENT,
            f"… it stands aside: CUPTI {got[0]['version']} answers {got[0]['result']}" if version
            else "… it says that there is none")
    t.equal(got[0]["counts"], 0, "… and counts nothing")
    p = run("fork", cupti=version, **env)
    t.ok(p.returncode == 0 and p.stdout == plain.stdout * 2 and not p.stderr, "… forks", p.stdout + p.stderr)
    p = run("exec", cupti=version, **env)
    t.ok(p.returncode == 0 and p.stdout == plain.stdout * 2 and not p.stderr, "… executes another program",
         p.stdout + p.stderr)
    pids = [s["pid"] for s in slots(page)]
    t.equal(len(pids), len(set(pids)), "… and no process has two slots")


def harmless(name, page, **env):
    plain = run("init", cupti="13")
    p = run("init", cupti="13", CUDA_INJECTION64_PATH=str(own(library)),
            **({"UNDERWATT_PROGRESS": str(page)} if page else {}), **env)
    t.ok(p.returncode == 0 and p.stdout == plain.stdout and not p.stderr, f"{name}: harmless",
         f"{p.returncode} {p.stdout} {p.stderr}")


try:
    shutil.copytree(driver, tmp / "driver", symlinks=True)
    for version, lib in CUPTI.items():
        (tmp / f"cupti-{version}").mkdir()
        shutil.copy(lib.resolve(), tmp / f"cupti-{version}" / lib.name)
        layouts(version)
        p = run("names", str(tmp / f"cupti-{version}" / lib.name), cupti=version)
        t.ok(p.returncode == 0 and p.stdout == "12 names, 0 wrong\n", f"CUPTI {version}: its ids have our names",
             p.stdout + p.stderr)
    for version in (None, *CUPTI):
        with_driver(version)

    harmless("no page", None)
    harmless("a page that is not there", tmp / "nothing")
    harmless("a folder as page", tmp)
    short = tmp / "short"
    short.write_bytes(bytes(4096))
    harmless("a page without a place for launches", short)
    page = new_page()
    page.chmod(0o400)
    harmless("a page that may only be read", page)
    if nobody:
        root_page = tmp / "root"
        root_page.write_bytes(bytes(PAGE_END))
        root_page.chmod(0o600)
        harmless("another user's page", root_page)
    for name, value in (("UNDERWATT_COUNT_LAUNCHES", "0"), ("KINETO_USE_DAEMON", "1")):
        page = new_page()
        harmless(f"{name}={value}", page, **{name: value})
        t.equal(slots(page), [], "… no slot is taken, CUPTI is left alone")
finally:
    shutil.rmtree(tmp, ignore_errors=True)
t.done()
