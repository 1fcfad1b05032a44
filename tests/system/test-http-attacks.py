#!/usr/bin/python3
"""Attacks on the transport of underwattd: its unix socket and its TCP port with TLS.
All are refused and logged once a cause and peer, nothing changes, others are served in
time meanwhile.
"""
import http.client
import json
import math
import os
import pathlib
import re
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import warnings

import uwtest

t = uwtest.Tap()
warnings.simplefilter("ignore", DeprecationWarning)  # of old TLS, which is the point
NOBODY = 65534
IDLE = 10000


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(self.path)


def ask(path, method="GET", url="/v1/node", body=None, headers=None):
    c = Unix(path)
    try:
        c.request(method, url, body, headers or {})
        r = c.getresponse()
        return r.status, r.read().decode()
    finally:
        c.close()


def dial(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(8)
    s.connect(path)
    return s


def raw(path, data, seconds=uwtest.PATIENCE):
    """What comes back for these bytes until it is closed or silent."""
    s = dial(path)
    s.settimeout(seconds)
    got = b""
    try:
        s.sendall(data)
        while True:
            more = s.recv(65536)
            if not more:
                break
            got += more
            if b"\r\n\r\n" in got and re.search(rb"content-length: (\d+)", got, re.I):
                head, rest = got.split(b"\r\n\r\n", 1)
                if len(rest) >= int(re.search(rb"content-length: (\d+)", head, re.I).group(1)):
                    break
    except OSError:
        pass
    s.close()
    return got


def status_of(answer):
    m = re.match(rb"HTTP/1\.[01] (\d+)", answer)
    return int(m.group(1)) if m else 0


def as_nobody(fn, meanwhile=lambda: None):
    """Run fn in a child of user nobody, and call meanwhile() here; it stays until it is told to end.
    Returns the pid, what it wrote first, and a pipe to end it with."""
    out_r, out_w = os.pipe()
    end_r, end_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(out_r)
            os.close(end_w)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            keep = fn()
            os.write(out_w, json.dumps(keep[0]).encode() + b"\n")
            os.read(end_r, 1)
            code = 0
        finally:
            os._exit(code)
    os.close(out_w)
    os.close(end_r)
    meanwhile()
    with os.fdopen(out_r) as f:
        line = f.readline()
    return pid, json.loads(line) if line else None, end_w


def end(child):
    os.close(child[2])
    os.waitpid(child[0], 0)


def pss_kib(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss: +(\d+)", text, re.M).group(1))


def latencies(path, n=50):
    took = []
    for _ in range(n):
        at = time.monotonic()
        status, _ = ask(path)
        took.append(time.monotonic() - at)
        if status != 200:
            return None
    return sorted(took)


def requests(path):
    """Each is one attempt: bytes, and the status it must come to (0: closed)."""
    h = b"Host: x\r\n"
    return [
        ("a header of 9 KiB", b"GET /v1/node HTTP/1.1\r\n" + h + b"X: " + b"a" * 9000 + b"\r\n\r\n", 431),
        ("a header of 60 KiB", b"GET /v1/node HTTP/1.1\r\n" + h + b"X: " + b"a" * 60000 + b"\r\n\r\n", (0, 431)),
        ("a thousand headers", b"GET /v1/node HTTP/1.1\r\n" + h + b"X: y\r\n" * 3000 + b"\r\n", (0, 431)),
        ("a request line of 20 KiB", b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n" + h + b"\r\n", (0, 414, 431)),
        ("a path of 300 bytes", b"GET /" + b"a" * 300 + b" HTTP/1.1\r\n" + h + b"\r\n", 414),
        ("a body of 64 KiB and one", b"POST /v1/claims HTTP/1.1\r\n" + h + b"Content-Length: 65537\r\n\r\n", 413),
        ("a body of 1 TB", b"POST /v1/claims HTTP/1.1\r\n" + h + b"Content-Length: 1099511627776\r\n\r\n", 413),
        ("a length below nothing", b"POST /v1/claims HTTP/1.1\r\n" + h + b"Content-Length: -1\r\n\r\n", 400),
        ("two lengths", b"POST /v1/claims HTTP/1.1\r\n" + h + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", 400),
        ("length and chunks", b"POST /v1/claims HTTP/1.1\r\n" + h +
         b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("an encoding of its own", b"POST /v1/claims HTTP/1.1\r\n" + h + b"Transfer-Encoding: xchunked\r\n\r\n", 400),
        ("a chunk of 4 GB", b"POST /v1/claims HTTP/1.1\r\n" + h +
         b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nx", (0, 400, 413)),
        ("..", b"GET /v1/../etc/passwd HTTP/1.1\r\n" + h + b"\r\n", 400),
        ("an escaped ..", b"GET /v1/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n" + h + b"\r\n", 400),
        ("an escaped /", b"GET /v1%2fnode HTTP/1.1\r\n" + h + b"\r\n", 400),
        ("an escape of an escape", b"GET /v1/%252e%252e HTTP/1.1\r\n" + h + b"\r\n", 400),
        ("an overlong /", b"GET /v1/%c0%af HTTP/1.1\r\n" + h + b"\r\n", 400),
        ("a NUL", b"GET /v1/node%00 HTTP/1.1\r\n" + h + b"\r\n", 400),
        ("a raw NUL", b"GET /v1/node\0 HTTP/1.1\r\n" + h + b"\r\n", (0, 400, 505)),
        ("//", b"GET //v1/node HTTP/1.1\r\n" + h + b"\r\n", 400),
        ("a backslash", b"GET /v1\\node HTTP/1.1\r\n" + h + b"\r\n", 400),
        ("another's URL", b"GET http://example.com/ HTTP/1.1\r\n" + h + b"\r\n", 400),
        ("TRACE", b"TRACE /v1/node HTTP/1.1\r\n" + h + b"\r\n", 405),
        ("CONNECT", b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n" + h + b"\r\n", 400),
        ("HTTP 1.2", b"GET /v1/node HTTP/1.2\r\n" + h + b"\r\n", 505),
        ("two Hosts", b"GET /v1/node HTTP/1.1\r\n" + h + h + b"\r\n", 400),
        ("no HTTP", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200) + b"\r\n\r\n", (0, 400)),
        ("a key twice", b"GET /v1/node?a=1&a=2 HTTP/1.1\r\n" + h + b"\r\n", 400),
        ("a thousand keys", b"GET /v1/node?" + b"&".join(b"k%d=1" % i for i in range(1000)) +
         b" HTTP/1.1\r\n" + h + b"\r\n", (0, 400, 414, 431)),
        ("a line break in a value", b"GET /v1/node?a=%0d%0aX:%20y HTTP/1.1\r\n" + h + b"\r\n", 400),
    ]


def attempts(path):
    for name, data, want in requests(path):
        wanted = want if isinstance(want, tuple) else (want,)
        got = raw(path, data, 2.0 if 0 in wanted else uwtest.PATIENCE)
        t.ok(status_of(got) in wanted and b"root:" not in got, f"{name}: {status_of(got)}", got[:300])
    both = raw(path, b"GET /v1/node HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
    t.ok(both.count(b"HTTP/1.1 200") >= 1, "fifty requests at once are served one by one", both[:200])


def in_time(attempt):
    """The shortest of three times, the first one that is below 7 s: the daemon waits 5 s, and a busy machine delays it."""
    shortest = math.inf
    for _ in range(3):
        shortest = min(shortest, attempt())
        if shortest < 7:
            break
    return shortest


def slow_ones(d):
    """Half-sent requests and a byte now and then: each is gone within its time."""
    def hold():
        socks = [dial(d.socket) for _ in range(12)]
        for s in socks:
            s.setblocking(False)
        for i, s in enumerate(socks):
            s.send([b"", b"GET /v1/no", b"POST /v1/claims HTTP/1.1\r\nHost: x\r\nContent-Length: 90\r\n\r\n{"][i % 3])
        began = time.monotonic()
        left = dict(enumerate(socks))
        gone = {}
        while left and time.monotonic() - began < 30:
            for i, s in list(left.items()):
                try:
                    if i % 2:
                        s.send(b"a", socket.MSG_DONTWAIT)
                    if s.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) == b"":
                        gone[i] = time.monotonic() - began
                        del left[i]
                except BlockingIOError:
                    pass
                except OSError:
                    gone[i] = time.monotonic() - began
                    del left[i]
            time.sleep(0.1)
        return [sorted(gone.values()), len(left)], socks

    def attempt():
        child = as_nobody(hold)
        gone, left = child[1] or ([], 12)
        end(child)
        return gone[-1] if not left else math.inf
    took = in_time(attempt)
    t.ok(took < 7, f"12 slow requests are cut off within {took:.1f} s")


class Descriptors(threading.Thread):
    """The most that the daemon has open at a time."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.folder = f"/proc/{pid}/fd"
        self.base = self.most = self.now()
        self.ending = threading.Event()

    def now(self):
        return len(os.listdir(self.folder))

    def run(self):
        while not self.ending.wait(0.02):
            self.most = max(self.most, self.now())

    def end(self):
        self.ending.set()
        self.join()
        return self.most - self.base


def is_gone(s):
    """The other end has closed it."""
    try:
        return s.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def given_back(socks):
    """Closes and removes those that were refused; how many there were."""
    gone = [s for s in socks if is_gone(s)]
    for s in gone:
        s.close()
    socks[:] = [s for s in socks if s.fileno() >= 0]
    return len(gone)


def ten_thousand(d):
    """Idle connections of one user.  Those above its bound are closed at once."""
    before, open_ones = pss_kib(d.pid), Descriptors(d.pid)

    def hold():
        socks, refused = [], 0
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        for _ in range(IDLE):
            s = socket.socket(socket.AF_UNIX)
            s.connect(d.socket)
            s.setblocking(False)
            socks.append(s)
            if len(socks) >= 2000:
                refused += given_back(socks)
        until = time.monotonic() + uwtest.PATIENCE
        while time.monotonic() < until and len(socks) > 64:
            time.sleep(0.1)
            refused += given_back(socks)
        return [len(socks), refused], socks
    at = time.monotonic()
    child = as_nobody(hold, open_ones.start)
    took = time.monotonic() - at
    alive, refused = child[1] or (0, 0)
    t.ok(alive <= 64 and alive + refused == IDLE,
         f"{IDLE} idle connections in {took:.1f} s: {alive} kept, {refused} refused", child[1])
    lat = latencies(d.socket)
    t.ok(lat and lat[-1] < 5, f"others are served meanwhile: worst {lat[-1] * 1e3:.1f} ms" if lat else "others")
    grown = pss_kib(d.pid) - before
    t.ok(grown < 4096, f"memory grew by {grown} KiB")
    most = open_ones.end()
    t.ok(most < 128, f"at most {most} descriptors more were open at a time")
    end(child)
    t.ok(uwtest.wait_for(lambda: open_ones.now() < open_ones.base + 8), "and given back when they go", open_ones.now())


# ---- TCP ----

def make_cert(folder):
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    p = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                        "-nodes", "-keyout", key, "-out", cert, "-days", "30", "-subj", "/CN=test",
                        "-addext", "subjectAltName=IP:127.0.0.1"], capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(p.stderr)
    os.chmod(key, 0o600)
    return cert, key


def tls(cert, port, token=None, method="GET", url="/v1/node", body=None, source="127.0.0.1", minimum=None):
    context = ssl.create_default_context(cafile=cert)
    if minimum:
        context.minimum_version = context.maximum_version = minimum
    c = http.client.HTTPSConnection("127.0.0.1", port, timeout=8, context=context, source_address=(source, 0))
    try:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body:
            headers["Content-Type"] = "application/json"
        c.request(method, url, body, headers)
        r = c.getresponse()
        return r.status, r.read().decode(), dict(r.getheaders())
    finally:
        c.close()


def token(node, d, name, scope, *more):
    p = node.run("underwattd", "--config", d.config, "--token-new", name, "--token-scope", scope, *more)
    if p.returncode:
        raise RuntimeError(p.stderr)
    return p.stdout.strip()


def refused_tokens(node, d, cert, port):
    good = token(node, d, "reader", "read")
    admin = token(node, d, "boss", "admin")
    mine = token(node, d, "mine", "claim", "--token-user", "nobody")
    short = token(node, d, "short", "admin", "--token-for", "1 s")
    t.equal(tls(cert, port, good)[0], 200, "a token that reads, made while the daemon runs")
    status, text, headers = tls(cert, port)
    t.ok(status == 401 and headers.get("WWW-Authenticate", "").startswith("Bearer"), "none: 401", text)
    forged = good[:-1] + ("0" if good[-1] != "0" else "1")
    t.equal(tls(cert, port, forged)[0], 401, "forged: 401")
    t.equal(tls(cert, port, "uwt_00000000_" + "0" * 64)[0], 401, "made up: 401")
    t.equal(tls(cert, port, "eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290In0.")[0], 401, "a JWT of no algorithm: 401")
    t.equal(tls(cert, port, good + "\t")[0], 401, "one with a tail: 401")
    claim = json.dumps({"gpu": "0", "kind": "named", "cap": "200 W", "why": "attack"})
    for name, tok in (("a reader's", good), ("another user's", mine)):
        status, text, _ = tls(cert, port, tok, "POST", "/v1/claims", claim)
        t.ok(status in (400, 403) and "error" in text, f"a claim with {name} token: {status}", text)
    time.sleep(1.2)
    t.equal(tls(cert, port, short)[0], 401, "expired: 401")
    p = node.run("underwattd", "--config", d.config, "--token-revoke", "boss")
    t.ok(p.returncode == 0 and tls(cert, port, admin)[0] == 401, "revoked: 401 at once", p.stderr)
    status = [tls(cert, port, forged)[0] for _ in range(12)]
    t.ok(429 in status, "who goes on is told to wait", status)
    t.equal(tls(cert, port, good)[0], 200, "but a good token is served from there all the same")
    return good


def refused_tls(d, cert, port, good):
    for name, version in (("TLS 1.0", ssl.TLSVersion.TLSv1), ("TLS 1.1", ssl.TLSVersion.TLSv1_1)):
        try:
            status = tls(cert, port, good, minimum=version)[0]
        except (ssl.SSLError, OSError, ValueError) as e:
            status = type(e).__name__
        t.ok(status != 200, f"{name}: {status}")
    s = socket.create_connection(("127.0.0.1", port), timeout=7)
    s.sendall(b"GET /v1/node HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + good.encode() + b"\r\n\r\n")
    try:
        got = s.recv(4096)
    except OSError:
        got = b""
    t.ok(b"200" not in got and b"hostname" not in got, "plain HTTP on that port is not answered", got)
    s.close()
    took = in_time(lambda: silent(cert, port, good))
    t.ok(took < 7, f"the rest is cut off within its time: {took:.1f} s")


def silent(cert, port, good):
    """Connections that never greet: those above the address' bound go at once, the others with their time.
    After how many seconds the last one went."""
    began = time.monotonic()
    idle = [socket.create_connection(("127.0.0.1", port), timeout=8) for _ in range(100)]
    for s in idle:
        s.setblocking(False)
    uwtest.wait_for(lambda: sum(map(is_gone, idle)) >= 30)
    gone = sum(map(is_gone, idle))
    t.ok(100 > gone >= 30, f"100 silent connections of one address: {gone} refused at once")
    took = []
    for _ in range(3):    # a busy machine delays anything
        at = time.monotonic()
        t.equal(tls(cert, port, good, source="127.0.0.2")[0], 200, "another address is served")
        took.append(time.monotonic() - at)
    t.ok(min(took) < 2, f"… in {min(took) * 1e3:.0f} ms")
    last = math.inf
    if uwtest.wait_for(lambda: all(map(is_gone, idle)), 30):
        last = time.monotonic() - began
    for s in idle:
        s.close()
    return last


def logged_once(d):
    lines = [x for x in d.log().splitlines() if "event=http" in x]
    seen = {}
    for line in lines:
        m = re.search(r'cause=\\?"([^"\\]*)\\?" peer=\\?"([^"\\]*)\\?"', line)
        key = (m.group(1), m.group(2)) if m else line
        seen[key] = seen.get(key, 0) + 1
    again = {k: n for k, n in seen.items() if n > 2}  # a second time with its count
    t.ok(lines and not again, f"{len(lines)} lines of log, {len(seen)} causes and peers: once each", again or lines)
    causes = {k[0] for k in seen if isinstance(k, tuple)}
    for cause in ("400", "413", "431", "405", "too many connections", "no request in time",
                  "forged", "expired", "no token", "no such token"):
        t.ok(cause in causes, f"'{cause}' is among them", sorted(causes))


def main():
    if os.geteuid() != 0:
        uwtest.skip_all("needs root, to be several users")
    with uwtest.Node(board="v100", count=2) as node:
        config, have_tls = "", shutil.which("openssl") is not None
        if have_tls:
            cert, key = make_cert(node.tmp)
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                port = s.getsockname()[1]
            config = (f"api: {{tcp: {{listen: '127.0.0.1:{port}', certificate: {cert}, key: {key}, "
                      f"tokens: {node.tmp}/tokens}}}}\n")
        d = node.daemon(config)
        before = [b["limit_mw"] for b in node.status()["boards"]]
        t.equal(ask(d.socket)[0], 200, "the daemon answers")
        attempts(d.socket)
        ten_thousand(d)
        slow_ones(d)
        if have_tls:
            good = refused_tokens(node, d, cert, port)
            refused_tls(d, cert, port, good)
            logged_once(d)
        else:
            t.skip("TCP", "no openssl to make a certificate with")
        t.ok(d.child.poll() is None and ask(d.socket)[0] == 200, "the daemon lives and answers")
        t.equal([b["limit_mw"] for b in node.status()["boards"]], before, "no limit has changed")
        status, text = ask(d.socket, url="/v1/claims")
        t.ok(status == 200 and '"gpu"' not in text.replace('"gpus"', ""), "nobody claims anything", text)
    t.done()


if __name__ == "__main__":
    sys.exit(main())
