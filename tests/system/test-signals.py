#!/usr/bin/python3
"""underwatt-signals and services on loopback that answer as they should and as they should not: values, the cache over restarts, keys that
nobody sees, what its socket answers."""
import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile

import signalstub
import uwtest
from signalstub import KEY, answer_of, em_history, half_hours

t = uwtest.Tap()


def answer(path, headers):
    """By the first part of the path."""
    case = path.split("/")[1]
    if case in ("em", "refused"):
        if headers.get("auth-token") != KEY:
            return 401, {}, b'{"error":"no key"}'
        return answer_of(em_history("DE", 381)) if case == "em" else (401, {}, json.dumps({"error": f"bad key {KEY}"}).encode())
    if case == "tagged" and headers.get("If-None-Match") == '"v1"':
        return 304, {"ETag": '"v1"'}, b""
    return {
        "good": lambda: answer_of(half_hours(4)),
        "limited": lambda: (429, {"Retry-After": "7200"}, b"{}"),
        "down": lambda: (500, {}, b"<html>"),
        "torn": lambda: (200, {}, json.dumps(half_hours(4)).encode()[:200]),
        "cut": lambda: None,
        "future": lambda: answer_of(half_hours(0, ahead=7200)),
        "skewed": lambda: (200, {"Date": "Thu, 26 Nov 2015 18:00:00 GMT"}, json.dumps(half_hours(4)).encode()),
        "elsewhere": lambda: (302, {"Location": "/stolen"}, b""),
        "large": lambda: (200, {}, b" " * (5 << 20)),
        "tagged": lambda: (200, {"ETag": '"v1"', "Content-Type": "application/json"}, b'{"kw": 7}'),
    }[case]()


BAD = {  # what is said of them
    "limited": ("wait", "too many requests (status 429), again in 7200 s"),
    "down": ("wait", "the service fails (status 500), again in 60 s"),
    "torn": ("bad", "not JSON"),
    "cut": ("silent", "transfer closed"),
    "skewed": ("bad", "its clock and the local one differ"),
    "elsewhere": ("bad", "status 302"),
    "large": ("silent", "larger than 4194304 bytes"),
}


def ask(path, url, method="GET", **headers):
    link = http.client.HTTPConnection("node", timeout=20)
    link.sock = socket.socket(socket.AF_UNIX)
    link.sock.connect(path)
    link.request(method, url, headers=headers)
    r = link.getresponse()
    body = r.read()
    link.close()
    return r.status, dict(r.getheaders()), body


def values(service, folder, key):
    """All the services at once: each is told apart from the others."""
    sources = [f"{{name: gb, type: uk, url: {service.url}/good, provides: [carbon, carbon.forecast]}}",
               f"{{name: de, type: electricitymaps, zone: DE, key_file: {key}, url: {service.url}/em, as: carbon.de}}",
               f"{{name: refused, type: electricitymaps, zone: DE, key_file: {key}, url: {service.url}/refused, as: c.refused}}",
               f"{{name: future, type: json, file: {folder}/future.json, unit: g/kWh, as: c.future, every: 1 s}}",
               f"{{name: ahead, type: uk, url: {service.url}/future, as: c.ahead}}",
               f'{{name: rack, type: json, url: "{service.url}/tagged", path: kw, unit: kW, as: rack.power, every: 1 s, age: 1 h}}']
    sources += [f"{{name: {name}, type: uk, url: {service.url}/{name}, as: c.{name}}}" for name in BAD]
    s = signalstub.Signals(folder, sources)
    with s:
        gb = s.becomes("carbon", lambda v: v["state"] == "known")
        t.ok(gb.get("value") == 250 and gb["unit"] == "g/kWh" and gb["estimated"] and gb["source"] == "gb", "carbon, now an estimate", gb)
        past = [p for p in gb["series"] if not p["estimated"]]
        t.ok(len(past) == 4 and {p["value"] for p in past} == {263}, "four half hours of before were measured", gb)
        t.equal(gb["time_utc"], signalstub.minute(signalstub.BEGAN).replace("Z", ":00Z"), "the value's time is that of its half hour")
        ahead = s.all()["carbon.forecast"]
        t.ok(ahead["state"] == "known" and ahead["value"] is None and len(ahead["series"]) == 4, "a forecast is a series", ahead)
        de = s.becomes("carbon.de", lambda v: v["state"] == "known")
        t.ok(de.get("value") == 381 and not de["estimated"], "Electricity Maps, with a key from a file", de)
        for name, (state, why) in BAD.items():
            v = s.becomes(f"c.{name}", lambda v: v["error"])
            line = s.lines(f"event=source name={name} ")
            t.ok(v.get("state") == "unknown" and v["value"] is None and why in v["error"] and len(line) == 1 and f"state={state}" in line[0],
                 f"{name}: unknown, said once", (v, line))
        v = s.becomes("c.ahead", lambda v: v["error"])
        t.ok(v.get("value") is None and "lie in the future" in v["error"], "values of the future are none", v)
        v = s.becomes("c.refused", lambda v: v["error"])
        t.ok("the key is refused (status 401)" in v["error"], "a key that is refused", v)
        t.equal(service.asked("stolen"), [], "a redirect is not followed")
        t.ok(s.becomes("rack.power", lambda v: v["value"] == 7), "a server of the site", s.all()["rack.power"])
        t.ok(uwtest.wait_for(lambda: any(h.get("If-None-Match") == '"v1"' for _, h in service.asked("/tagged"))), "asked with its tag")
        t.ok(uwtest.wait_for(lambda: len(service.asked("/tagged")) >= 3) and s.all()["rack.power"]["value"] == 7,
             "what is not modified counts on", s.all()["rack.power"])
        answers(s)
        t.equal(s.stop(), 0, "SIGTERM ends it")
    told = s.log() + json.dumps(s.all()) + "".join(p.read_text() for p in pathlib.Path(folder, "cache").iterdir())
    t.ok(KEY not in told and KEY not in "".join(path for path, _ in service.seen), "the key is in no log, answer, cache or URL", told)
    t.ok(not os.path.exists(s.socket), "the socket is gone")
    return s


def answers(s):
    status, head, body = ask(s.socket, "/v1/signals?name=carbon.de")
    t.ok(status == 200 and [v["name"] for v in json.loads(body)["signals"]] == ["carbon.de"], "one signal by its name", body[:300])
    t.equal(ask(s.socket, "/v1/signals?name=carbon.de", **{"If-None-Match": head["ETag"]})[0], 304, "304 for its ETag")
    t.equal(ask(s.socket, "/v1/signals?name=carbon", **{"If-None-Match": head["ETag"]})[0], 200, "… of that answer alone")
    t.equal([ask(s.socket, "/v1/signals", "PUT")[0], ask(s.socket, "/v1/other")[0], ask(s.socket, "/v1/signals?x=1")[0]], [405, 404, 400],
            "nothing else is there")
    t.equal(os.stat(s.socket).st_mode & 0o777, 0o666, "anybody of this machine may read")


def restarted(s, service):
    """What was known before counts on, with its time; nobody is asked again before the interval is over."""
    kept = pathlib.Path(s.folder, "cache")
    t.equal((oct((kept / "gb.json").stat().st_mode & 0o777), (kept / "future.json").exists()), ("0o600", False), "a cache for each service")
    before = json.loads((kept / "gb.json").read_text())
    n = len(service.asked("/good"))
    (kept / "de.json").write_text((kept / "de.json").read_text()[:-40])
    with s:
        gb = s.all()["carbon"]
        t.ok(gb["value"] == 250 and [p["begin_utc"] for p in gb["series"]] == [p["begin_utc"] for p in before["signals"][0]["series"]],
             "the first answer has the values of before, with their times", gb)
        t.ok(len(s.lines("event=cache name=de state=ignored", "damaged")) == 1, "a torn cache is said once", s.log())
        t.ok(s.becomes("carbon.de", lambda v: v["state"] == "known"), "… and its source asked", s.log())
        limited = len(service.asked("/limited"))
        t.equal((len(service.asked("/good")), limited), (n, 1), "no source is asked before its time, nor in its rest")
        t.ok("waits" in s.all()["c.limited"]["error"], "who is not asked yet is said", s.all()["c.limited"])
        s.stop()
    (kept / "gb.json").write_text(json.dumps(json.loads((kept / "gb.json").read_text()) | {"source": "fr"}))
    with s:
        t.ok(len(s.lines("event=cache name=gb state=ignored", "of another source")) == 1, "a cache of another source is ignored", s.log())
        t.ok(uwtest.wait_for(lambda: len(service.asked("/good")) == n + 1), "… and the source asked", s.log())


def program(*args):
    p = subprocess.run([uwtest.program("underwatt-signals"), *args], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    return p.returncode, p.stdout, p.stderr


def checks(service, folder, key):
    s = signalstub.Signals(folder, [f"{{name: de, type: electricitymaps, zone: DE, key_file: {key}, url: {service.url}/check}}"])
    code, said, why = program("--check", "--config", str(s.config))
    t.ok(code == 0 and f"de: electricitymaps gives carbon, every 900 s: GET {service.url}/check/v4/carbon-intensity/history?zone=DE" in said
         and f"key from {key}" in said and KEY not in said + why, "--check says what is asked", said + why)
    t.equal(service.asked("/check"), [], "… and asks nobody")
    key.chmod(0o644)
    code, said, why = program("--check", "--config", str(s.config))
    t.ok(code == 2 and str(key) in why and why.count("\n") == 1 and KEY not in why, "a key that others may read", (code, why))
    key.chmod(0o600)
    top = "signals: 1\nserve: {socket: /tmp/x.sock}\n"
    for text, words in (("sources: []\n", ("sources: 0 are outside 1..64",)),
                        ("cache: /tmp\n", ("no source: give sources, follow or both",)),
                        ("sources: [{name: a, type: uk, url: \"http://grid.example\"}]\n", ("url: http://grid.example has no TLS",)),
                        ("sources: [{name: a, type: static, zone: UK}]\n", ("zone: 'UK' is not a zone of the grid", "did you mean 'GB'?")),
                        ("sources: [{name: a, type: json, file: /x, unit: km, as: x}]\n", ("unit: 'km' is none of energy, power, price or carbon",))):
        s.config.write_text(top + text)
        for option in ((), ("--check",)):
            code, said, why = program(*option, "--config", str(s.config))
            t.ok(code == 2 and why.count("\n") == 1 and all(w in why for w in words) and re.match(r"underwatt-signals: \S+signals.yaml:[13]: ", why),
                 f"refused, by root, too: {words[0]}", (code, said, why))
    s.config.chmod(0o600)
    code, said, why = program("--check", "--config", str(s.config))
    shown = "'km'" in why and "not shown" not in why
    t.ok(code == 2 and why.count("\n") == 1 and shown == (os.geteuid() != 0) and (shown or "not every user may read it" in why),
         "a file that not everybody may read: root's errors are without its text, and say so", why)
    code, _, why = program("--config", f"{folder}/none.yaml")
    t.ok(code == 2 and "no source is configured" in why and why.count("\n") == 1, "nothing starts without a source", (code, why))


def owned(folder):
    """A file that others may write is no source."""
    good, open_, strange = (pathlib.Path(folder, f"{name}.json") for name in ("good", "open", "strange"))
    for path in (good, open_, strange):
        path.write_text("5\n")
    open_.chmod(0o664)
    if os.geteuid() == 0:
        os.chown(strange, 65534, 65534)
    s = signalstub.Signals(pathlib.Path(folder, "owned"), [
        f"{{name: {path.stem}, type: json, file: {path}, unit: kW, as: rack.{path.stem}, every: 1 s, age: 1 h}}" for path in (good, open_, strange)])
    with s:
        t.ok(s.becomes("rack.good", lambda v: v["value"] == 5), "a file of this user or root", s.log())
        v = s.becomes("rack.open", lambda v: v["error"])
        t.ok(v.get("value") is None and f"{open_}: group or others may write it" in v["error"], "one that others may write is none", v)
        if os.geteuid() == 0:
            v = s.becomes("rack.strange", lambda v: v["error"])
            t.ok(v.get("value") is None and "belongs to user 65534" in v["error"], "nor is another user's", v)
        open_.chmod(0o644)
        t.ok(s.becomes("rack.open", lambda v: v["value"] == 5), "until it is mended", s.log())
        s.stop()


def main():
    os.umask(0o022)
    service = signalstub.Service(answer)
    try:
        with tempfile.TemporaryDirectory() as tmp:
            os.chmod(tmp, 0o755)
            key = pathlib.Path(tmp, "em.key")
            key.write_text(KEY + "\n")
            key.chmod(0o600)
            checks(service, tmp, key)
            (pathlib.Path(tmp) / "future.json").write_text("5\n")
            owned(tmp)
            s = values(service, tmp, key)
            restarted(s, service)
    finally:
        service.stop()
    t.done()


main()
