#!/usr/bin/python3
"""Names and signatures of the installed Zeus and of underwatt.compat.zeus, by inspection.

Of each public class and function: the parameters' names, kinds and defaults, a class' bases, fields and members. What this package has
beyond Zeus does not count; what is missing or different stands below with its reason.
"""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "frameworks"))

import fwuser  # noqa: E402
import pyuser  # noqa: E402
import uwtest  # noqa: E402

SPAWNED = "nothing is spawned: threads measure"
NO_ZEUSD = "this package asks underwattd, not zeusd"
NO_AMD = "AMD's boards by amdsmi are out of scope"
NO_SOC = "Apple's processors and Jetson boards are out of scope"
SEARCH = "search= chooses between Underwatt's search and Zeus' own scan"
DIFFERENCES = {
    "zeus.optimizer.power_limit.GlobalPowerLimitOptimizer.__init__": SEARCH,
    "zeus.optimizer.power_limit.HFGlobalPowerLimitOptimizer.__init__": SEARCH,
    "zeus.metric.MonitoringProcessState": SPAWNED,
    "zeus.metric.energy_monitoring_loop": SPAWNED,
    "zeus.metric.power_monitoring_loop": SPAWNED,
    "zeus.monitor.carbon.Op": SPAWNED,
    "zeus.monitor.price.Op": SPAWNED,
    "zeus.device.cpu.rapl.RaplWraparoundTracker": SPAWNED,
    "zeus.device.cpu.rapl.RAPLFile.wraparound_tracker": SPAWNED,
    "zeus.device.cpu.rapl.ZeusdRAPLCPU": NO_ZEUSD,
    "zeus.device.gpu.nvidia.ZeusdNVIDIAGPU": NO_ZEUSD,
    "zeus.device.gpu.AMDGPUs": NO_AMD,
    "zeus.device.gpu.amdsmi_is_available": NO_AMD,
    "zeus.device.soc.AppleSilicon": NO_SOC,
    "zeus.device.soc.Jetson": NO_SOC,
    "zeus.device.soc.ZeusAppleInitError": NO_SOC,
    "zeus.device.soc.ZeusJetsonInitError": NO_SOC,
    "zeus.device.soc.apple_silicon_is_available": NO_SOC,
    "zeus.device.soc.jetson_is_available": NO_SOC,
}

# In Python of the frameworks: prints {name: what it is} of all modules of `zeus` that can be imported.
LOOK = r"""
import dataclasses, enum, functools, importlib, inspect, json, pkgutil, sys
import zeus
ours = "underwatt.compat.zeus"
scope = set(json.loads(sys.argv[1]))

def is_zeus(thing):
    return str(getattr(thing, "__module__", "")).startswith(("zeus.", ours + "."))

def parameters(function):
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [[p.name, p.kind.name, None if p.default is p.empty else repr(p.default)] for p in found]

def fields(kind):
    if dataclasses.is_dataclass(kind):
        return [[f.name, f.default is not dataclasses.MISSING] for f in dataclasses.fields(kind)]
    if hasattr(kind, "__fields__"):    # pydantic's
        return [[name, not f.required] for name, f in kind.__fields__.items()]
    return None

def describe(name, thing, into):
    if inspect.isclass(thing):
        into[name] = {"bases": [b.__name__ for b in thing.__mro__[1:] if is_zeus(b) and not b.__name__.startswith('_')], "fields": fields(thing),
            "values": [[m.name, m.value] for m in thing] if issubclass(thing, enum.Enum) else None}
        for member in dir(thing):
            found = inspect.getattr_static(thing, member)
            if isinstance(found, (property, functools.cached_property)):
                found = "property"
            elif not inspect.isfunction(found) or not is_zeus(found) or (member == "__init__" and into[name]["fields"]):
                continue
            if not member.startswith("_") or member == "__init__":
                into[f"{name}.{member}"] = found if isinstance(found, str) else parameters(found)
    else:
        into[name] = parameters(thing)

found = {}
for info in [*pkgutil.walk_packages(zeus.__path__, "zeus.", onerror=lambda name: None)]:
    short = info.name.removeprefix("zeus.")
    if any(short == s or short.startswith(s + ".") for s in scope) or "__main__" in short or any(p.startswith("_") for p in short.split(".")):
        continue
    module = importlib.import_module(info.name)
    found[info.name] = "module"
    wanted = [n.rpartition(".")[2] for n in json.loads(sys.argv[2]) if n.rpartition(".")[0] == info.name]    # some are made when asked for
    for name, thing in {**vars(module), **{n: getattr(module, n) for n in wanted if hasattr(module, n)}}.items():
        # Of Zeus: what a module defines, or a package offers; not what a module imports for its own use.
        if zeus.__name__ == "zeus" and not info.ispkg and getattr(thing, "__module__", "") != info.name:
            continue
        if not name.startswith("_") and (inspect.isclass(thing) or inspect.isfunction(thing) or hasattr(thing, "__wrapped__")) and is_zeus(thing):
            describe(f"{info.name}.{name}", thing, found)
print(json.dumps([zeus.__name__, zeus.__version__, found]))
"""


def look(scope, path, wanted=()):
    p = subprocess.run([fwuser.python(), "-W", "ignore", "-c", LOOK, json.dumps(sorted(scope)), json.dumps(sorted(wanted))], capture_output=True, text=True, timeout=300,
                       stdin=subprocess.DEVNULL, env=pyuser.env(PYTHONPATH=path))
    uwtest.must(not p.returncode, p.stderr)
    return json.loads(p.stdout.splitlines()[-1])


def differences(theirs, ours):
    """Name -> (theirs, ours)."""
    found = {}
    for name, thing in sorted(theirs.items()):
        # What belongs to something that is missing is not told by itself.
        if name not in ours and any(name.startswith(f"{above}.") for above in found):
            continue
        if ours.get(name) != thing:
            found[name] = (thing, ours.get(name))
    return found


def main():
    t = uwtest.Tap()
    sys.path.insert(0, str(pyuser.PACKAGE))
    from underwatt.compat.zeus import _names
    names, version, theirs = look(_names._SCOPE, "")
    t.equal((names, version), ("zeus", "0.16.0"), "the installed Zeus")
    own_names, own_version, ours = look(_names._SCOPE, f"{pyuser.PACKAGE}/underwatt/compat/_on_path:{pyuser.PACKAGE}", theirs)
    t.equal((own_names, own_version), ("underwatt.compat.zeus", version), "this package, of the same interface")
    found = differences(theirs, ours)
    for name in sorted({*found, *DIFFERENCES}):
        known = DIFFERENCES.get(name)
        t.ok(known and name in found, f"{name}: {known or 'differs'}", f"zeus: {found.get(name, ('the same',))[0]}\nours: {found.get(name, ('', 'the same'))[1]}")
    same = len([name for name in theirs if theirs[name] == ours.get(name)])
    t.ok(same > 700, f"{same} of {len(theirs)} names are the same")
    t.done()


if __name__ == "__main__":
    main()
