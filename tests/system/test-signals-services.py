#!/usr/bin/python3
"""Each service that underwatt-signals asks, and each way in which one answers wrongly: a table of source and trap, over HTTP. A cell that is
none says why."""
import base64
import contextlib
import gzip
import io
import json
import os
import pathlib
import tempfile
import time
import urllib.parse
import zipfile

import signalstub
import uwtest
from signalstub import JWT, KEY, LOGIN, TOKEN, ZONE

t = uwtest.Tap()

SOURCES = {    # what is configured, the value, the length of a value, how it is read
    "em3": ("type: electricitymaps, api: 3, zone: DE, key_file: {keys}/em", 381, 3600),
    "em4": ("type: electricitymaps, api: 4, zone: DE, key_file: {keys}/em", 381, 3600),
    "uk": ("type: uk", 250, 1800),
    "region": ("type: uk, region: 13", 250, 1800),
    "postcode": ("type: uk, postcode: RG10", 250, 1800),
    "watttime": ("type: watttime, region: CAISO_NORTH, login_file: {keys}/wt", 453.592, 300),
    "login": ("type: watttime, region: CAISO_NORTH, login_file: {keys}/wt", 453.592, 300),    # the trap is in the answer to the login
    "sdk": ("type: carbon-aware-sdk, location: westeurope", 381, 3600),
    "entsoe": (f"type: entsoe, zone: {ZONE}, key_file: {{keys}}/entsoe", 0.07478, 3600),
    "json": ("type: json, path: data.0.kw, unit: kW, age: 1 h", 7, 3600),
}
RAW = {"watttime": 1000, "login": 1000, "entsoe": 74.78}    # in the service's own unit
FORM = {"entsoe": "not XML"}
NO_LIST = {"login": "a login has no values", "json": "one value"}
NO_ZONE = {"uk": "the whole country", "sdk": "answers by its source's own names", "json": "no zone", "login": "a login has none"}
NO_UNIT = {s: "the answer names no unit" for s in ("em3", "em4", "uk", "region", "postcode", "sdk", "json", "login")}
ENTSOE_ALONE = {s: "a matter of ENTSO-E's documents" for s in SOURCES if s != "entsoe"}
GOOD = ("answers", "")

# trap: what it comes to (state of the log's line, words of the error), of some sources in another way, and of whom not, and why
TRAPS = {
    "good": (GOOD, {}, {}),
    "refused": (("refused", "is refused (status 401)"), {}, {}),
    "forbidden": (("refused", "is refused (status 403)"), {}, {}),
    "limited": (("wait", "too many requests (status 429), again in 7200 s"), {}, {}),
    "limited_date": (("wait", "too many requests (status 429), again in "), {}, {}),
    "down": (("wait", "the service fails (status 503), again in 60 s"), {}, {}),
    "unknown": (("bad", "status 404: no such zone"), {}, {}),
    "empty": (("bad", "not JSON"), FORM, {}),
    "torn": (("bad", "not JSON"), FORM, {}),
    "cut": (("silent", "transfer closed"), {}, {}),
    "page": (("bad", "not JSON"), {"entsoe": "is not a document of prices"}, {}),
    "text": (("bad", "is not a number"), {"entsoe": "a position has no price", "login": "gave no token"}, {}),
    "null": (("no-data", "no value is known"), {"entsoe": ("bad", "a position has no price"), "login": ("bad", "gave no token"), "json": "data.0.kw is null"}, {}),
    "nothing": (("no-data", "no value is known"), {"entsoe": "no prices are published", "login": ("bad", "gave no token"),
                                                      "json": "there is no data.0.kw"}, {}),
    "future": (("bad", "lie in the future"), {"json": GOOD},    # a Last-Modified behind now counts as now (RFC 9110, 8.8.2.1)
               {"entsoe": "its prices are of the day ahead", "login": "a login has no values"}),
    "skewed": (("bad", "its clock and the local one differ"), {}, {"login": "its answer has no times"}),
    "late": (("bad", "its clock and the local one differ"), {}, {"login": "its answer has no times"}),
    "twice": (("bad", "two values for one time"), {"entsoe": "not in order"}, NO_LIST),
    "zone": (("bad", "the answer is of another "), {}, NO_ZONE),
    "unit": (("bad", "not in lbs_co2_per_mwh"), {"entsoe": "not of a MWH"}, NO_UNIT),
    "percents": (("bad", "percentiles"), {}, {s: "WattTime's index alone" for s in SOURCES if s != "watttime"}),
    "moved": (("bad", "status 302"), {}, {}),
    "large": (("silent", "larger than 4194304 bytes"), {}, {}),
    "gzip": (("bad", "is compressed"), {}, {}),
    "zip": (("bad", "is compressed"), {}, {}),
    "expired": (("refused", "the key is refused (status 401)"), {"watttime": "the login is refused (status 401)"},    # until its next round
                {s: "no token, or a site's own server" for s in ("uk", "region", "postcode", "sdk", "json")} | {"login": "asks for a token, has none"}),
    "repeats": (GOOD, {}, ENTSOE_ALONE),    # A03: a missing position repeats the one before
    "missing": (("answers", None), {}, ENTSOE_ALONE),    # else it is unknown
    "no_data_400": (("no-data", "no prices are published"), {}, ENTSOE_ALONE),
    "says_key": (("bad", "it answers: nothing"), {}, ENTSOE_ALONE),
    "endless": (("silent", "larger than 4194304 bytes"), {}, {}),
    "headers": (("silent", "Too large response headers"), {}, {}),    # libcurl's bound, in its words
    "trickle": (("silent", "no answer within 30 s"), {}, {}),
    "trickled_headers": (("silent", "no answer within 30 s"), {}, {}),
}


def expected(source, trap):
    """(state, words), or the reason why there is no such cell."""
    (state, words), other, none = TRAPS[trap]
    if source in none:
        return none[source]
    own = other.get(source, words)
    return own if isinstance(own, tuple) else (state, own)


answered = {}    # source, trap: when its values were given first


def points(source, trap):
    n, raw = SOURCES[source][2], RAW.get(source, SOURCES[source][1])
    at = int(time.time())
    answered.setdefault((source, trap), at)
    begin = at // n * n
    raw = {"text": f"{raw} g/kWh", "null": None}.get(trap, raw)
    if trap == "future":
        return [(begin + 2 * n + 7200, n, raw)]
    if source == "entsoe":    # seven hours, of which the fourth is this one
        hours = [(begin + i * n, n, 1 if trap in ("repeats", "missing") else raw) for i in range(-3, 4)]
        return [(at, n, raw) if trap == "repeats" and at == begin - 2 * n else (at, n, v) for at, n, v in hours]
    return [(begin - n, n, raw), (begin, n, raw)]


def body(source, trap):
    """Of the right kind; what is wrong is in the values."""
    if source == "login":
        token = {"text": 5, "null": None}.get(trap, JWT + "1")
        return json.dumps({} if trap == "nothing" else {"token": token})
    p = points(source, trap)
    if trap == "twice":
        p = [*p, (*p[-1][:2], 999)]
    if source == "entsoe":
        if trap in ("nothing", "no_data_400"):
            return signalstub.acknowledged(f"No matching data found for Data item Day-ahead Prices [12.1.D] ({ZONE})")
        if trap == "says_key":
            return signalstub.acknowledged(f"no right for {TOKEN}")
        text = signalstub.said_entsoe(p, curve="A03" if trap == "repeats" else "A01", measure="MAW" if trap == "unit" else "MWH",
                                      zone="10YFR-RTE------C" if trap == "zone" else ZONE, missing=(3, 4, 5) if trap in ("repeats", "missing") else ())
        return text.replace("<position>8<", "<position>7<") if trap == "twice" else text
    if trap == "nothing":
        p = []
    if source in ("em3", "em4"):
        return signalstub.said_em(p, int(source[2]), "FR" if trap == "zone" else "DE")
    if source in ("uk", "region", "postcode"):
        of = {"uk": {}, "region": {"regionid": 14 if trap == "zone" else 13},
              "postcode": {"regionid": 12, "postcode": "SW1A" if trap == "zone" else "RG10"}}[source]
        return signalstub.said_uk(p, **of)
    if source == "watttime":
        return signalstub.said_watttime(p, {"percents": "percentile", "unit": "kg_co2_per_mwh"}.get(trap, "lbs_co2_per_mwh"),
                                        "PJM_DC" if trap == "zone" else "CAISO_NORTH")
    return signalstub.said_sdk(p) if source == "sdk" else json.dumps({"data": [{"kw": v} for _, _, v in p]})


def zipped(data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("1.xml", data)
    return out.getvalue()


def date(ahead):
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + ahead))


HEAD = b"HTTP/1.1 200 OK\r\n"
ENDLESS = {    # how it begins, what follows without end, the pause between
    "endless": (HEAD + b"\r\n", b" " * 65536, 0), "headers": (HEAD, b"X-More: " + b"x" * 8000 + b"\r\n", 0),
    "trickle": (HEAD + b"\r\n", b" ", 0.1), "trickled_headers": (HEAD, b"X-More: x\r\n", 0.1),
}
lasted = {}    # source/trap: (s, bytes) until who asked left, the first time


def never_ends(path, begin, part, pause):
    """What writes the part again and again."""
    def write_all(write):
        n, began = 0, time.monotonic()
        try:
            write(begin)
            while True:
                write(part)
                n += len(part)
                time.sleep(pause)
        except OSError:
            lasted.setdefault(path, (time.monotonic() - began, n))
    return write_all


def trapped(source, trap):
    """The answer: (status, headers, bytes), None: cut, or a function that writes it."""
    secret = {"em3": KEY, "em4": KEY, "entsoe": TOKEN, "watttime": JWT + "1", "login": LOGIN.split(":")[1]}.get(source, "")
    said = body(source, trap).encode()
    failed = json.dumps({"error": {"code": "x", "message": f"bad {secret}"}} if secret else {"message": "bad"}).encode()
    if trap in ENDLESS:
        return never_ends(f"{source}/{trap}", *ENDLESS[trap])
    return {
        "refused": (401, {}, failed), "forbidden": (403, {}, failed),
        "limited": (429, {"Retry-After": "7200"}, failed), "limited_date": (429, {"Retry-After": date(5000)}, failed),
        "down": (503, {}, b"<html>"), "unknown": (404, {}, b'{"message": "no such zone"}'),
        "empty": (200, {}, b""), "torn": (200, {}, said[:len(said) // 2]), "cut": None,
        "page": (200, {"Content-Type": "text/html"}, b"<html><body>Welcome<br></body></html>"),
        "skewed": (200, {"Date": date(-4000)}, said), "late": (200, {"Date": date(4000)}, said),
        "moved": (302, {"Location": "/stolen"}, b""), "large": (200, {}, b" " * (5 << 20)),
        "gzip": (200, {"Content-Encoding": "gzip"}, gzip.compress(said)), "zip": (200, {"Content-Type": "application/zip"}, zipped(said)),
        "no_data_400": (400, {}, said),
        "future": (200, {"Last-Modified": date(4000)} if source == "json" else {}, said),
    }.get(trap, (200, {}, said))


class Answers:
    """Judges keys, logins and tokens, as the services do."""

    def __init__(self):
        self.logins = {}

    def watttime(self, source, trap, path, headers):
        if path.endswith("/login"):
            if headers.get("Authorization") != "Basic " + base64.b64encode(LOGIN.encode()).decode():
                return 403, {}, b"{}"
            self.logins[source, trap] = n = self.logins.get((source, trap), 0) + 1
            return trapped(source, trap) if source == "login" and trap != "good" else (200, {}, json.dumps({"token": JWT + str(n)}).encode())
        token = headers.get("Authorization")
        if not token or not token.startswith("Bearer " + JWT) or (trap == "expired" and token.endswith("1")):
            return 401, {}, b'{"error":"Token expired"}'
        return trapped("watttime", "good" if source == "login" else trap)

    def __call__(self, path, headers):
        source, trap = path.split("?")[0].split("/")[1:3]
        if source in ("watttime", "login"):
            return self.watttime(source, trap, path.split("?")[0], headers)
        if source in ("em3", "em4") and (headers.get("auth-token") != KEY or trap == "expired"):
            return 401, {}, json.dumps({"error": f"Token unauthorized: {KEY}"}).encode()
        if source == "entsoe" and (urllib.parse.parse_qs(path.split("?")[1]).get("securityToken") != [TOKEN] or trap == "expired"):
            return 401, {}, signalstub.acknowledged("Unauthorized. Missing or invalid security token").encode()
        return trapped(source, trap)


def value_then(v, source, trap):
    """Of the time at which it was given: the value may have ended since.  That of `json` begins when it is read, and is read each minute."""
    if source == "json":
        return v["value"]
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(answered["watttime" if source == "login" else source, trap]))
    return next((p["value"] for p in v["series"] if p["begin_utc"] <= at < p["end_utc"]), None)


def cell(s, source, trap, all_signals):
    state, words = expected(source, trap)
    v, lines = all_signals[f"c.{source}.{trap}"], s.lines(f"event=source name={source}-{trap} ")
    what = f"{source} x {trap}: {words or state}"
    if state == "answers":
        value = None if words is None else SOURCES[source][1]
        then = value_then(v, source, trap)
        good = then == value if value is None else then is not None and abs(then - value) < 1e-9
        t.ok(good and not v["error"], what, (v, lines))
    else:
        t.ok(v["value"] is None and v["state"] == "unknown" and words in (v["error"] or "") and len(lines) == 1 and f"state={state} " in lines[0] + " ",
             what + ", unknown, said once", (v, lines))


def later(s, answers):
    """The token of an earlier round has expired: one other login, and its values come."""
    if not os.environ.get("UNDERWATT_SOAK"):
        t.skip("a token that expires between two rounds", "takes a minute: UNDERWATT_SOAK=1; in memory: test-watttime.c")
        return
    v = uwtest.wait_until(lambda: s.all()["c.watttime.expired"], lambda v: v["value"] is not None, 90)
    t.ok(v["value"] is not None and not v["error"] and answers.logins["watttime", "expired"] == 2, "a token that expires between two rounds", v)


def goes_on(cells, s, beside):
    """While answers trickle a source beside them is asked on."""
    beside.write_text("8\n")
    v = uwtest.wait_until(s.all, lambda a: a["beside"]["value"] == 8)
    t.ok(v["beside"]["value"] == 8 and not lasted.get("uk/trickle"), "a source beside those that never end is asked meanwhile", (v["beside"], lasted))
    t.ok(all(v[f"c.{source}.{trap}"]["value"] is None for source, trap in cells if trap in ENDLESS), "... whose signals are unknown", v)


def ends():
    """Answers that never end are left within their bounds."""
    for trap in ENDLESS:
        left = uwtest.wait_until(lambda: {source: lasted.get(f"{source}/{trap}") for source in SOURCES}, lambda left: all(left.values()))
        slow = ENDLESS[trap][2] > 0
        good = all(left.values()) and all(20 < took < 60 if slow else size < 32 << 20 for took, size in left.values())
        t.ok(good, f"{trap}: each is left " + ("after 30 s" if slow else "before 32 MiB"), left)


def instance(place, traps, service, keys, beside):
    cells = [(source, trap) for source in SOURCES for trap in traps if isinstance(expected(source, trap), tuple)]
    return cells, signalstub.Signals(place, [
        f'{{name: {source}-{trap}, {SOURCES[source][0].format(keys=keys)}, url: "{service.url}/{source}/{trap}", as: c.{source}.{trap}}}'
        for source, trap in cells] + [f"{{name: beside, type: json, file: {beside}, unit: kW, every: 1 s, age: 1 h, as: beside}}"])


def main():
    os.umask(0o022)
    for trap, (_, other, none) in TRAPS.items():
        t.ok(set(other) | set(none) <= set(SOURCES) and not set(other) & set(none), f"{trap}: each source has a cell, or a reason for none", trap)
    answers = Answers()
    service = signalstub.Service(answers)
    try:
        with tempfile.TemporaryDirectory() as tmp:
            keys = pathlib.Path(tmp)
            for name, text in (("em", KEY), ("wt", LOGIN), ("entsoe", TOKEN)):
                (keys / name).write_text(text + "\n")
                (keys / name).chmod(0o600)
            os.chmod(tmp, 0o755)
            (keys / "beside.json").write_text("7\n")
            traps = list(TRAPS)
            told = ""
            with contextlib.ExitStack() as stack:
                parts = [instance(keys / f"signals{i}", traps[i:i + 6], service, keys, keys / "beside.json") for i in range(0, len(traps), 6)]
                for _, s in parts:
                    stack.enter_context(s)
                goes_on(*next(p for p in parts if ("uk", "trickle") in p[0]), keys / "beside.json")
                for cells, s in parts:
                    done = uwtest.wait_until(s.all, lambda a: all(v["error"] or v["series"] for v in a.values()))
                    for source, trap in cells:
                        cell(s, source, trap, done)
                    if ("watttime", "expired") in cells:
                        later(s, answers)
                    told += pathlib.Path(f"/proc/{s.child.pid}/cmdline").read_text() + json.dumps(s.all())
                    t.equal(s.stop(), 0, "SIGTERM ends it")
                    told += s.log() + "".join(p.read_text() for p in (s.folder / "cache").iterdir())
            ends()
            for secret in (KEY, TOKEN, JWT, *LOGIN.split(":"), base64.b64encode(LOGIN.encode()).decode()):
                t.ok(secret not in told, f"{secret[:5]}… is in no log, answer, cache or argument")
            t.equal(service.asked("stolen"), [], "no redirect is followed")
            t.equal([p for p, _ in service.seen if any(x in p for x in (KEY, JWT, LOGIN.split(":")[1])) or (TOKEN in p and "/entsoe/" not in p)], [],
                    "no key is in a URL, but ENTSO-E's, which wants it there")
            t.equal([answers.logins[cell] for cell in (("watttime", "good"), ("watttime", "refused"), ("login", "refused"))], [1, 1, 1],
                    "a round has one login at most")
    finally:
        service.stop()
    t.done()


main()
