#!/usr/bin/python3
"""Slurm's collector and daemons that listen with TLS: who has a certificate that does not hold, or does not take the token, is told
nothing and has one line in the log; the others are told all."""
import contextlib
import json
import pathlib
import shutil
import socket
import ssl
import tempfile
import threading
import warnings

import authority
import slurmstub
import uwtest
from authority import Authority

t = uwtest.Tap()
warnings.simplefilter("ignore", DeprecationWarning)    # of old versions of TLS
GOOD, OTHER_CA, EXPIRED, OTHER_HOST, NO_TOKEN, READ_TOKEN, OLD_TLS = (f"127.0.0.{i}" for i in range(1, 8))


def free_port(hosts):
    for port in range(20000, 21000):
        with contextlib.ExitStack() as held:
            try:
                for host in hosts:
                    held.enter_context(socket.socket()).bind((host, port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port")


def old_server(stack, port, pem, key):
    """A server that speaks TLS 1.1 at most."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    context.load_cert_chain(pem, key)
    s = stack.enter_context(socket.create_server((OLD_TLS, port)))
    seen = []    # versions that were spoken

    def serve():
        while True:
            try:
                link = s.accept()[0]
            except OSError:
                return
            with link, contextlib.suppress(OSError):
                link.settimeout(20)
                with context.wrap_socket(link, server_side=True) as spoken:
                    seen.append(spoken.version())

    threading.Thread(target=serve, daemon=True).start()
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.set_ciphers("ALL:@SECLEVEL=0")
    client.minimum_version = ssl.TLSVersion.TLSv1
    with socket.create_connection((OLD_TLS, port), 20) as link, client.wrap_socket(link) as spoken:
        t.equal(spoken.version(), "TLSv1.1", "a server of TLS 1.1 answers those who speak it")
    uwtest.wait_for(lambda: seen)
    return seen


def depth(d):
    return next(s for s in d.ask("GET", "/v1/signals")[1]["signals"] if s["name"] == "queue.depth")["value"]


def token(node, tokens, name, scope):
    config = pathlib.Path(node.tmp, "tokens.yaml")
    config.write_text(f"api: {{tcp: {{listen: '127.0.0.1:1', certificate: /none, key: /none, tokens: {tokens}}}}}\n")
    p = node.run("underwattd", "--config", config, "--token-new", name, "--token-scope", scope)
    if p.returncode:
        raise RuntimeError(p.stderr)
    return p.stdout.strip()


def daemons(stack, place, port):
    ours, others = Authority(place, "ca"), Authority(place, "other")
    made = {
        GOOD: ours.certificate(GOOD),
        OTHER_CA: others.certificate(OTHER_CA),
        EXPIRED: ours.certificate(EXPIRED, days=-1),
        OTHER_HOST: ours.certificate(OTHER_HOST, host="127.0.0.99"),
        NO_TOKEN: ours.certificate(NO_TOKEN),
        READ_TOKEN: ours.certificate(READ_TOKEN),
    }
    first, running = None, {}
    (place / "policy.yaml").write_text("policy: 1\nsignals: [{name: queue.depth}]\n")
    for address, (pem, key) in made.items():
        node = stack.enter_context(uwtest.Node(board="v100", count=1))
        tokens = place / f"tokens-{address}"
        if not first:
            first = token(node, tokens, "slurm", "admin")
        elif address == NO_TOKEN:
            token(node, tokens, "another", "admin")
        else:
            shutil.copy(place / f"tokens-{GOOD}", tokens)
        if address == READ_TOKEN:
            tokens.write_text(tokens.read_text().replace("admin", "read"))
        running[address] = node.daemon(
            f"policy: {{file: {place}/policy.yaml}}\napi: {{tcp: {{listen: '{address}:{port}', certificate: {pem}, key: {key}, "
            f"tokens: {tokens}}}}}\n", actuator=False)
    return ours, first, running


def heard(slurm, config, addresses):
    """A collector that each of these nodes has answered, or refused, in time: on a busy machine its 5 s may pass first."""
    for _ in range(5):
        c = slurm.collector(config)
        uwtest.wait_for(lambda c=c: all(c.lines("event=node", f"name={a}") for a in addresses))
        if "no answer within" not in c.log():
            break
        c.stop()
    return c


def one_line(c, address, says):
    t.ok(uwtest.wait_for(lambda: c.lines("event=node", f"name={address}")), f"{address}: there is a line", c.log())
    line = c.lines("event=node", f"name={address}")[0]
    t.ok("state=silent" in line and any(s in line for s in says), f"{address}: which says why", line)


def queue(slurm, n):
    jobs = [{"job_id": 100 + i, "job_state": "PENDING", "partition": "main"} for i in range(n)]
    jobs.append({"job_id": 7, "job_state": "RUNNING", "partition": "main", "nodes": GOOD, "name": "train", "qos": "high"})
    after = slurm.folder / "squeue.new"
    after.write_text(json.dumps({"jobs": jobs}))
    after.rename(slurm.folder / "squeue.json")


def tokens_files(slurm, config, secret):
    """A token that others may read, and none."""
    for mode, text, says in ((0o644, None, "others may read the token"), (0o600, "", "is no token")):
        if text is not None:
            secret.write_text(text)
        secret.chmod(mode)
        c = slurm.collector(config)
        t.equal(c.child.wait(timeout=uwtest.PATIENCE), 2, "the collector ends with 2")
        t.ok(says in c.log() and len(c.log().splitlines()) == 1, "with one line", c.log())


authority.needs_openssl()
with tempfile.TemporaryDirectory(prefix="uw-") as folder, contextlib.ExitStack() as stack:
    place = pathlib.Path(folder)
    port = free_port([GOOD, OTHER_CA, EXPIRED, OTHER_HOST, NO_TOKEN, READ_TOKEN, OLD_TLS])
    ours, secret, running = daemons(stack, place, port)
    old = old_server(stack, port, *ours.certificate(OLD_TLS))
    file = place / "token"
    file.write_text(secret + "\n")
    file.chmod(0o600)
    config = f"every: 1 s\nsees_all: true\nnodes: {{url: 'https://%n:{port}', token: {file}, ca: {ours.pem}}}\n"
    running[GOOD].ask("PUT", "/v1/jobs/slurm:7", {"uid": 1000, "gpu_minors": [0]})
    slurm = stack.enter_context(slurmstub.Slurm(folder, {address: [] for address in (*running, OLD_TLS)}))
    queue(slurm, 3)
    c = heard(slurm, config, [a for a in (*running, OLD_TLS) if a != GOOD])
    t.equal(uwtest.wait_until(lambda: depth(running[GOOD]), lambda v: v == 3), 3, "a node is told the queue over TLS")
    labels = uwtest.wait_until(lambda: running[GOOD].ask("GET", "/v1/jobs/slurm:7")[1]["labels"], lambda v: v.get("slurm.qos"))
    t.equal((labels.get("slurm.name"), labels.get("slurm.qos")), ("train", "high"), "and what Slurm knows of its job")
    for address in (OTHER_CA, EXPIRED, OTHER_HOST):
        one_line(c, address, ["certificate"])
    one_line(c, NO_TOKEN, ["HTTP 401: the token is unknown there"])
    one_line(c, READ_TOKEN, ["HTTP 403: only administrators"])
    one_line(c, OLD_TLS, ["TLS", "handshake", "alert"])
    queue(slurm, 5)
    t.equal(uwtest.wait_until(lambda: depth(running[GOOD]), lambda v: v == 5), 5, "meanwhile the good one is told what changes")
    t.equal({a: depth(d) for a, d in running.items() if a != GOOD}, {a: None for a in running if a != GOOD}, "the others know nothing")
    t.equal(old, ["TLSv1.1"], "TLS 1.1 was spoken with nobody else")
    t.equal({a: len(c.lines("event=node", f"name={a}")) for a in (*running, OLD_TLS)}, {**{a: 1 for a in running}, OLD_TLS: 1, GOOD: 0},
            "each has one line, the good one none")
    t.ok(secret not in c.log(), "the token is nowhere in the log")
    print("".join(f"# {line}\n" for line in c.log().splitlines()), end="")
    t.equal(c.stop(), 0, "the collector ends")
    tokens_files(slurm, config, file)
t.done()
