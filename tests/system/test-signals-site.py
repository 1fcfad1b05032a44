#!/usr/bin/python3
"""underwatt-signals of a site and of its nodes: one fetch for all of them over TLS with a token, values with the times, sources and estimates
that the site has, who is let in and who is not, a site that goes away and comes back, and 1,000 nodes that ask at once."""
import asyncio
import json
import os
import pathlib
import re
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import warnings

import authority
import signalstub
import uwtest
from signalstub import answer_of, half_hours

t = uwtest.Tap()
warnings.simplefilter("ignore", DeprecationWarning)    # of old versions of TLS
SITE = "127.0.0.1"
TOKEN = "0123456789abcdef" * 3
NODES = 1000
BOUND = 2000    # connections of nodes
FILES = BOUND + 600
CUT = ("nothing", "ConnectionResetError", "BrokenPipeError", "SSLError", "SSLEOFError", "SSLZeroReturnError")


class Site:
    """A site's instance, its authority and its token."""

    def __init__(self, folder, service):
        self.folder = pathlib.Path(folder)
        self.ca, self.other = authority.Authority(self.folder, "ca"), authority.Authority(self.folder, "other")
        self.pem, self.key = self.ca.certificate(SITE)
        self.token = self.secret("site.token", TOKEN)
        self.sources = [f"{{name: gb, type: uk, url: {service.url}/gb, provides: [carbon, carbon.forecast]}}",
                        "{name: country, type: static, zone: DE, year: 2024, as: carbon.static}",
                        f"{{name: down, type: uk, url: {service.url}/down, as: carbon.down}}"]
        self.signals = signalstub.Signals(self.folder / "site", self.sources, tcp=self.tcp(0))

    def secret(self, name, text, mode=0o600):
        path = self.folder / name
        path.write_text(text + "\n")
        path.chmod(mode)
        return path

    def tcp(self, port, pem=None, key=None):
        return f"tcp: {{listen: '{SITE}:{port}', cert: {pem or self.pem}, key: {key or self.key}, token: {self.token}}}"

    def start(self):
        self.signals.start()
        self.port = int(re.search(r"event=ready .*port=(\d+)", self.signals.log())[1])
        self.url = f"https://{SITE}:{self.port}"
        self.signals.configure(self.sources, self.tcp(self.port))    # the same one at the next start

    def again(self, pem=None, key=None):
        self.signals.configure(self.sources, self.tcp(self.port, pem, key))
        self.signals.start()

    def node(self, name, sources=(), token=None, ca=None, url=None):
        more = f"follow: {{url: {url or self.url}, token: {token or self.token}, ca: {ca or self.ca.pem}, every: 1 s}}\n"
        return signalstub.Signals(self.folder / name, sources, more=more)

    def context(self, version=None):
        c = ssl.create_default_context(cafile=self.ca.pem)
        if version:
            c.set_ciphers("ALL:@SECLEVEL=0")
            c.minimum_version = c.maximum_version = version
        return c


# ---- what nodes get ----

def without(v, *keys):
    return {k: w for k, w in v.items() if k not in keys}


def values(site, service):
    site.signals.becomes("carbon", lambda v: v["state"] == "known")
    n = site.node("node", ["{name: own, type: static, zone: FR, year: 2024, as: carbon.static}"])
    with n:
        gb = n.becomes("carbon", lambda v: v["state"] == "known")
        ours = uwtest.wait_until(site.signals.all, lambda v: v["carbon"]["state"] == "known" and v["carbon.down"]["error"])
        t.equal(without(gb, "site", "asked"), without(ours["carbon"], "site", "asked"), "the node has the site's value, its time, source and licence")
        t.ok(gb["site"] == site.url and gb["source"] == "gb" and gb["type"] == "uk" and gb["licence"] == "CC BY 4.0", "… and says whose it is",
             gb)
        t.ok(gb["estimated"] is True and [p["estimated"] for p in gb["series"]][:4] == [False] * 4, "estimates are told apart", gb)
        t.equal(n.all()["carbon.forecast"]["series"], ours["carbon.forecast"]["series"], "the forecast")
        down = n.becomes("carbon.down", lambda v: v["error"])
        t.ok(down["state"] == "unknown" and "the service fails" in down["error"], "a source that fails at the site says why", down)
        own = n.all()["carbon.static"]
        t.ok(own["source"] == "own" and own["site"] is None and [s["name"] for s in uwtest.ask_socket(
            n.socket, "/v1/signals")["signals"]].count("carbon.static") == 1, "a source of the node's own wins", own)
        t.ok(own["origin"] == "Our World in Data: FR 2024, generation, life cycle" and
             gb["origin"] == "Carbon Intensity API, National Energy System Operator", "with the origin of its table", own)
        n.stop()
        t.ok(len(n.lines("event=source name=follow state=answers")) == 1, "said once", n.log())
    t.equal(len(service.asked("/gb")), 1, "the service was asked once, by the site")
    t.ok(TOKEN not in n.log() + site.signals.log() + (n.folder / "cache/follow.json").read_text(), "the token is in no log or cache")
    return n


def refused(site):
    """Nodes that the site, or that do not take the site."""
    wrong = site.secret("wrong.token", "f" * 48)
    for name, kw, state, why in (("token", {"token": wrong}, "refused", "the token is refused (status 401)"),
                                 ("ca", {"ca": site.other.pem}, "silent", "certificate"),
                                 ("host", {"url": f"https://localhost:{site.port}"}, "silent", "certificate")):
        n = site.node(f"node-{name}", **kw)
        with n:
            said = uwtest.wait_until(lambda: uwtest.ask_socket(n.socket, "/v1/signals"), lambda v: v.get("error"))
            line = n.lines("event=source name=follow ")
            t.ok(said["signals"] == [] and why in said["error"] and f"state={state}" in line[0] and TOKEN not in n.log() and "ffff" not in n.log(),
                 f"another {name}: nothing is known, and why", (said, line))
    pem, key = site.ca.certificate("expired", SITE, days=-1)
    site.signals.stop()
    site.again(pem, key)
    n = site.node("node-expired")
    with n:
        said = uwtest.wait_until(lambda: uwtest.ask_socket(n.socket, "/v1/signals"), lambda v: v.get("error"))
        t.ok("certificate" in said["error"], "an expired certificate", said)
    site.signals.stop()
    site.again()


def away(site, n):
    """Values count on until their end; the site is back."""
    site.signals.stop()
    with n:
        gb = n.all()["carbon"]
        t.ok(gb["value"] == 250 and gb["source"] == "gb", "a node that restarts has the values of before", gb)
        gb = n.becomes("carbon", lambda v: v["error"])
        t.ok(gb["state"] == "known" and gb["value"] == 250 and f"no site answers at {site.url}" in gb["error"], "… while the site is away", gb)
        site.again()
        gb = n.becomes("carbon", lambda v: not v["error"])
        t.ok(gb["value"] == 250 and not gb["error"], "the site is back", gb)
        n.stop()
    (n.folder / "cache/follow.json").write_text((n.folder / "cache/follow.json").read_text()[:-60])
    with n:
        t.ok(len(n.lines("event=cache name=follow state=ignored", "damaged")) == 1, "a torn cache is said once", n.log())
        t.ok(n.becomes("carbon", lambda v: v["state"] == "known"), "… and the site asked", n.log())


def long_series(site):
    """20 full series: a node gets of each what it needs."""
    lines, now = 8000, int(time.time()) // 60 * 60
    sources = []
    for i in range(20):
        step = 10 if i < 10 else 60
        path = site.folder / f"long-{i}.csv"
        path.write_text("time,kW\n" + "".join(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(now + (k - lines + 100) * step))},{k}\n"
                                              for k in range(lines)))
        sources.append(f"{{name: s{i}, type: csv, path: {path}, unit: kW, as: long.s{i}, every: 10 min}}")
    with signalstub.Signals(site.folder / "long", sources, tcp=site.tcp(0)) as s:
        port = int(re.search(r"event=ready .*port=(\d+)", s.log())[1])
        whole = uwtest.wait_until(s.all, lambda v: len(v) == 20 and all(x["state"] == "known" for x in v.values()), 120)
        with site.node("long-node", url=f"https://{SITE}:{port}") as n:
            got = uwtest.wait_until(n.all, lambda v: v.get("long.s19", {}).get("state") == "known", 120)
            t.equal({k: (v["state"], v["error"]) for k, v in got.items()}, dict.fromkeys(whole, ("known", None)), "20 full series: the node has all of them")
            ours, its = whole["long.s19"]["series"], got["long.s19"]["series"]
            t.ok(len(ours) == lines and 2880 < len(its) < 3100 and its == ours[-len(its):], "… the last 48 h and what is to come",
                 (len(ours), len(its)))
            t.equal(len(s.lines("event=large bytes=")), 1, "a site whose answer is large says so once")


# ---- who asks ----

def ask(site, head, context=None, address=SITE):
    """The status of an answer, or why there is none."""
    try:
        with socket.create_connection((SITE, site.port), 60, (address, 0)) as link, (
                context or site.context()).wrap_socket(link, server_hostname=SITE) as s:
            s.sendall(head)
            said = b""
            while b"\r\n" not in said:
                part = s.recv(65536)
                if not part:
                    break
                said += part
            return int(said.split()[1]) if said else "nothing"
    except (OSError, ssl.SSLError) as e:
        return type(e).__name__


def head(token=TOKEN, path="/v1/signals", method="GET", more=""):
    return (f"{method} {path} HTTP/1.1\r\nHost: {SITE}\r\n" + (f"Authorization: {token if ' ' in token else 'Bearer ' + token}\r\n" if token else "") +
            more + "\r\n").encode()


def knocks(site):
    t.equal(ask(site, head()), 200, "the token opens")
    t.equal([ask(site, head(token)) for token in ("", TOKEN[:-1], TOKEN + "0", "x", "Basic " + TOKEN, TOKEN.upper())], [401] * 6,
            "no other one does, nor none")
    t.equal(ask(site, head("", "/etc/passwd")), 401, "… before anything is looked at")
    t.equal([ask(site, head(path="/v1/other")), ask(site, head(method="PUT", more="Content-Length: 0\r\n")),
             ask(site, head(method="POST", more="Content-Length: 4000000000\r\n"))], [404, 405, 413], "nothing else is there, no body is read")
    old = ask(site, head(), site.context(ssl.TLSVersion.TLSv1_1))
    t.ok(old in CUT, "TLS 1.1 is refused", old)
    t.equal([ask(site, head(), site.context(v)) for v in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)], [200, 200], "1.2 and 1.3 are not")
    with socket.create_connection((SITE, site.port), 60) as s:
        s.sendall(head())
        said = b""
        try:
            for part in iter(lambda: s.recv(65536), b""):
                said += part
        except OSError:
            pass
        t.ok(b"HTTP/" not in said and b"signals" not in said, "plain HTTP gets nothing", said)
    lines = site.signals.lines("event=refused", "401")
    t.ok(1 <= len(lines) < 6 and TOKEN[:-1] not in site.signals.log(), "refusals are said, not each one, and without what was sent", lines)


def slow(site):
    """Who says nothing, or half of it, takes no place from others."""
    links = [socket.create_connection((SITE, site.port), 60, ("127.0.1.1", 0)) for _ in range(8)]
    for i in range(8):
        link = socket.create_connection((SITE, site.port), 60, ("127.0.1.1", 0))
        link = site.context().wrap_socket(link, server_hostname=SITE)
        link.sendall(head()[:20 + i])
        links.append(link)
    t.equal(ask(site, head()), 200, "16 slow clients: another one is served")
    t.ok(ask(site, head(), address="127.0.1.1") in CUT, "… and the 17th connection of their address is closed")
    t.ok("signals" in uwtest.ask_socket(site.signals.socket, "/v1/signals"), "… as is who asks at the socket")
    for link in links:
        link.close()
    t.ok(uwtest.wait_for(lambda: ask(site, head(), address="127.0.1.1") == 200), "once they have gone their address is served")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def name_of(link):
    """A link's own end, as the kernel's table writes it."""
    address, port = link.getsockname()
    return f"{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}:{port:04X}"


def accepted(port):
    """The other ends of a port's connections that its server has taken: those that it has not have no inode yet."""
    lines = [x.split() for x in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {x[2] for x in lines if x[1].endswith(f":{port:04X}") and x[3] == "01" and x[9] != "0"}


def address_of(i):
    return f"127.1.{i // 200}.{i % 200 + 1}"


def full(site):
    """More connections than the bound, each from an address of its own."""
    links, closed = [], 0
    for i in range(BOUND + 40):
        links.append(socket.create_connection((SITE, site.port), 60, (address_of(i), 0)))
    for link in links[BOUND:]:
        try:
            closed += link.recv(1) == b""
        except ConnectionResetError:
            closed += 1
    t.equal(closed, 40, f"{BOUND} connections are held, 40 more are closed")
    t.ok("signals" in uwtest.ask_socket(site.signals.socket, "/v1/signals"), "the socket is served yet")
    print(f"# {BOUND} connections: {descriptors(site.signals.child.pid)} descriptors, {peak_kib(site.signals.child.pid)} KiB at most")
    for link in links:
        link.close()
    t.ok(uwtest.wait_for(lambda: ask(site, head()) == 200), "once they have gone a node is served")


def few_files(site):
    """A low hard limit: nodes have what the socket and the sources leave."""
    with signalstub.Signals(site.folder / "few", ["{name: s, type: static, zone: FR}"], tcp=site.tcp(0), inside=("prlimit", "--nofile=600:600")) as s:
        port = int(re.search(r"event=ready .*port=(\d+)", s.log())[1])
        t.equal(len(s.lines("event=files limit=600 connections=88")), 1, "600 descriptors: 88 connections, said once")
        links = [socket.create_connection((SITE, port), 60, (address_of(i), 0)) for i in range(120)]
        t.ok(uwtest.wait_for(lambda: len(accepted(port)) >= 72), "they are taken", len(accepted(port)))
        t.ok("signals" in uwtest.ask_socket(s.socket, "/v1/signals") and descriptors(s.child.pid) < 200, "… and the socket is served", s.log())
        for link in links:
            link.close()
    p = subprocess.run(["prlimit", "--nofile=599:599", uwtest.program("underwatt-signals"), "--config", s.config], capture_output=True, text=True,
                       timeout=60, stdin=subprocess.DEVNULL)
    t.ok(p.returncode == 1 and "serve.tcp: this process may have 599 files open: 600 at least (LimitNOFILE, ulimit -n)" in p.stderr,
         "599 are too few", (p.returncode, p.stderr))


# ---- a herd ----

def enough_files():
    """Whether this process may open as many; the site's instance raises its own limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FILES:
        return False
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))
    return True


def peak_kib(pid):
    return int(re.search(r"VmHWM:\s*(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


async def one(site, context, link, at):
    """A node: asks, and asks again where it is cut off.  The values' text, and how often it asked."""
    for times in range(1, 6):
        try:
            reader, writer = await asyncio.open_connection(sock=link, ssl=context, server_hostname=SITE, ssl_handshake_timeout=300)
            writer.write(head(more="Connection: close\r\n"))
            said = await reader.read()
            writer.close()
            if said.startswith(b"HTTP/1.1 200"):
                return said.partition(b"\r\n\r\n")[2], times
        except (OSError, ssl.SSLError, asyncio.IncompleteReadError):
            pass
        link = socket.create_connection((SITE, site.port), 60, (at, 0))
    return b"", times


async def all_at_once(site, links):
    context = site.context()
    return await asyncio.gather(*(one(site, context, link, at) for link, at in links))


def herd(site, service):
    """As many nodes as that restart together."""
    pid = site.signals.child.pid
    site.signals.becomes("carbon.static", lambda v: v["state"] == "known")    # else it comes between the answers
    before = len(service.seen)
    links = [(socket.create_connection((SITE, site.port), 60, (address_of(i), 0)), address_of(i)) for i in range(NODES)]
    names = {name_of(link) for link, _ in links}
    t.ok(uwtest.wait_for(lambda: names <= accepted(site.port)), f"{NODES} connections are open at once",
         (len(accepted(site.port)), names - accepted(site.port), site.signals.lines("event=refused")))
    began, ticks = time.monotonic(), os.times()
    got = asyncio.run(all_at_once(site, links))
    took = time.monotonic() - began
    values_of = {frozenset((s["name"], s["value"]) for s in json.loads(text)["signals"]) for text, _ in got if text}
    t.equal(len([1 for text, _ in got if text]), NODES, f"{NODES} nodes have an answer")
    t.ok(len(values_of) == 1 and ("carbon", 250) in next(iter(values_of)), "with the same values", values_of)
    t.equal(len([p for p, _ in service.seen[before:] if "/gb" in p]), 0, "and the service was asked by none of them")
    print(f"# {NODES} TLS connections at once: {took:.1f} s with {os.times().user - ticks.user:.1f} s of the clients' processor, "
          f"{max(n for _, n in got)} connections of a node at most, {peak_kib(pid)} KiB of the site's instance, "
          f"{len(got[0][0])} bytes an answer")


# ---- what is refused at the start ----

def program(config, *args):
    p = subprocess.run([uwtest.program("underwatt-signals"), *args, "--config", config], capture_output=True, text=True, timeout=60,
                       stdin=subprocess.DEVNULL)
    return p.returncode, p.stdout, p.stderr


def starts(site):
    n = site.node("checked")
    p = subprocess.run([uwtest.program("underwatt-signals"), "--check", n.config], capture_output=True, text=True, timeout=60)
    t.equal((p.returncode, p.stdout), program(n.config, "--check")[:2], "--check FILE is --check --config FILE")
    code, said, _ = program(n.config, "--check")
    t.ok(code == 0 and f"follow: what {site.url} gives, every 1 s: GET {site.url}/v1/signals, token from {site.token}" in said and TOKEN not in said,
         "--check says who is followed", said)
    good = n.config.read_text()
    serve = site.signals.config.read_text()
    shared = site.folder / "shared.key"
    shared.write_bytes(pathlib.Path(site.key).read_bytes())
    shared.chmod(0o640)
    short, open_ = site.secret("short.token", "f" * 31), site.secret("open.token", TOKEN, 0o644)
    own = good + "sources: [{name: t, type: csv, path: %s, unit: kW, as: rack.power}]\n" % (site.folder / "none.csv")
    n.config.write_text(own)
    code, _, why = program(n.config, "--check")
    t.ok(code == 2 and f"{n.config}:" in why and "t: " in why and "none.csv" in why and "No such file" in why and why.count("\n") == 1,
         "--check: a file of a source that is missing", (code, why))
    code, said, _ = program(site.signals.config, "--check")
    t.ok(code == 0 and f"serve: {SITE}:" in said and f"TLS with {site.pem} and {site.key}, token from {site.token}" in said and
         f"serve: socket {site.signals.socket}" in said and TOKEN not in said, "--check says who is served", said)
    for text, says in ((good.replace(str(site.token), str(open_)), "others may read the token"),
                       (good.replace(str(site.token), str(short)), "31 characters: 32 at least"),
                       (good.replace(str(site.ca.pem), str(site.key)), "it has no certificate (PEM)"),
                       (good.replace(str(site.token), "/none"), "No such file"),
                       (good.replace(str(site.ca.pem), "/none"), "No such file"),
                       (serve.replace(str(site.token), str(short)), "31 characters: 32 at least"),
                       (serve.replace(str(site.token), str(open_)), "others may read the token"),
                       (serve.replace(f"cert: {site.pem}", f"cert: {site.other.pem}"), "do not fit"),
                       (serve.replace(f"key: {site.key}", "key: /none"), "No such file"),
                       (serve.replace(f"key: {site.key}", f"key: {shared}"), "others may read the key")):
        n.config.write_text(text)
        for option in ((), ("--check",)):
            code, _, why = program(n.config, *option)
            t.ok(code == 2 and says in why and why.count("\n") == 1 and TOKEN not in why, f"refused: {says}", (code, why))


def main():
    authority.needs_openssl()
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))    # as a user's shell has it
    service = signalstub.Service(lambda path, headers: answer_of(half_hours(4)) if "/gb" in path else (500, {}, b""))
    with tempfile.TemporaryDirectory() as tmp:
        site = Site(tmp, service)
        try:
            site.start()
            n = values(site, service)
            uwtest.timed("long series", long_series, site)
            uwtest.timed("knocks", knocks, site)
            uwtest.timed("slow clients", slow, site)
            uwtest.timed("few files", few_files, site)
            uwtest.timed("refused", refused, site)
            uwtest.timed("away", away, site, n)
            if enough_files():
                uwtest.timed("herd", herd, site, service)
                uwtest.timed("full", full, site)
            else:
                t.skip(f"{NODES} nodes at once", f"takes a hard limit of {FILES} descriptors (ulimit -Hn)")
            starts(site)
            t.equal(site.signals.stop(), 0, "SIGTERM ends it")
        finally:
            site.signals.__exit__()
            service.stop()
    t.done()


main()
