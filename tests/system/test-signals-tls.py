#!/usr/bin/python3
"""underwatt-signals asks services over TLS: an authority of the site's own, and servers that are not to be believed. They get no key."""
import contextlib
import json
import os
import pathlib
import socket
import ssl
import subprocess
import tempfile
import warnings

import authority
import signalstub
import uwtest
from signalstub import KEY, answer_of, em_history

t = uwtest.Tap()
warnings.simplefilter("ignore", DeprecationWarning)    # of old versions of TLS
HOST = "127.0.0.1"
SYSTEM = "/etc/ssl/certs"    # of the system's authorities


def context(pem, key, newest=ssl.TLSVersion.TLSv1_3):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if newest < ssl.TLSVersion.TLSv1_2:
        c.set_ciphers("ALL:@SECLEVEL=0")
    c.minimum_version, c.maximum_version = min(newest, ssl.TLSVersion.TLSv1_2), newest
    c.load_cert_chain(pem, key)
    return c


def spoken(service):
    """The version that a client of any gets."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.set_ciphers("ALL:@SECLEVEL=0")
    client.minimum_version = ssl.TLSVersion.TLSv1
    with socket.create_connection((HOST, service.server.server_port), 60) as link, client.wrap_socket(link) as s:
        return s.version()


def answer(path, headers):
    return answer_of(em_history("DE", 381)) if headers.get("auth-token") == KEY else (401, {}, b"{}")


def system(place, others, url, ours, key):
    """An authority of the system's is believed without `ca`, and not with one."""
    folder = place / "certs"
    folder.mkdir()
    for name in ("others.pem", "ca-certificates.crt"):
        (folder / name).write_bytes(others.pem.read_bytes())
    inside = ["unshare", "-rm", "sh", "-c", f'mount --bind "$0" {SYSTEM} && exec "$@"', folder]
    try:
        able = subprocess.run([*inside, "true"], capture_output=True, timeout=60, check=False).returncode == 0
    except FileNotFoundError:
        able = False
    if not able:
        t.skip("an authority of the system's", f"takes a mount namespace (unshare -rm) and {SYSTEM}")
        return
    source = f"type: electricitymaps, zone: DE, key_file: {key}, url: {url}/system"
    with signalstub.Signals(place / "system", [f"{{name: without, {source}, as: c.without}}", f"{{name: with, {source}, as: c.with, ca: {ours.pem}}}"],
                            inside=inside) as s:
        v = s.becomes("c.without", lambda v: v["state"] == "known")
        t.equal((v.get("value"), v["error"]), (381, None), "without ca: the system's authorities are believed")
        v = s.becomes("c.with", lambda v: v["error"] or v["state"] == "known")
        t.ok(v.get("value") is None and "certificate" in (v["error"] or ""), "with ca: that authority alone", v)
        s.stop()


def main():
    authority.needs_openssl()
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as tmp, contextlib.ExitStack() as stack:
        place = pathlib.Path(tmp)
        ours, others = authority.Authority(place, "ca"), authority.Authority(place, "other")
        stolen = signalstub.Service(lambda path, headers: answer_of({}))
        stack.callback(stolen.stop)
        good = ours.certificate("good", HOST)

        def away(path, headers):
            return 302, {"Location": (stolen.url if "plain" in path else services["good"].url) + "/stolen?" + "x"}, b""

        made = {"good": (good, answer, ssl.TLSVersion.TLSv1_3), "only12": (good, answer, ssl.TLSVersion.TLSv1_2),
                "old": (good, answer, ssl.TLSVersion.TLSv1_1), "expired": (ours.certificate("expired", HOST, days=-1), answer, ssl.TLSVersion.TLSv1_3),
                "host": (ours.certificate("host", "127.0.0.99"), answer, ssl.TLSVersion.TLSv1_3),
                "other": (others.certificate("other-server", HOST), answer, ssl.TLSVersion.TLSv1_3), "moved": (good, away, ssl.TLSVersion.TLSv1_3)}
        services = {}
        for name, (pair, says, newest) in made.items():
            services[name] = signalstub.Service(says, context(*pair, newest))
            stack.callback(services[name].stop)
        t.equal(spoken(services["old"]), "TLSv1.1", "a server of TLS 1.1 answers those who speak it")
        key = place / "em.key"
        key.write_text(KEY + "\n")
        key.chmod(0o600)
        urls = {name: s.url for name, s in services.items()} | {
            "moved": services["moved"].url + "/tls", "plain-moved": services["moved"].url + "/plain", "unknown": services["good"].url + "/unknown",
            "no-tls": stolen.url.replace("http:", "https:")}
        s = signalstub.Signals(place / "signals", [
            f"{{name: {name}, type: electricitymaps, zone: DE, key_file: {key}, url: {url}, as: c.{name.replace('-', '_')}"
            f"{'' if name == 'unknown' else f', ca: {ours.pem}'}}}" for name, url in urls.items()])
        with s:
            for name in ("good", "only12"):
                v = s.becomes(f"c.{name}", lambda v: v["state"] == "known")
                t.ok(v.get("value") == 381 and not v["error"], f"{name}: by the site's own authority", v)
            for name, words in (("old", ("protocol", "alert", "version")), ("expired", ("certificate", "expired")), ("host", ("certificate", "subject")),
                                ("other", ("certificate",)), ("unknown", ("certificate",)), ("no_tls", ("TLS", "SSL", "tls", "ssl"))):
                v = s.becomes(f"c.{name}", lambda v: v["error"])
                t.ok(v.get("value") is None and any(w in v["error"] for w in words), f"{name}: is not believed, and why", v)
                print(f"# {v.get('error')}")
            for name in ("moved", "plain_moved"):
                v = s.becomes(f"c.{name}", lambda v: v["error"])
                t.ok(v.get("value") is None and "status 302" in v["error"], f"{name}: a redirect is not followed", v)
            s.stop()
        for name in ("old", "expired", "host", "other"):
            t.equal(services[name].seen, [], f"{name}: has seen no request, and no key")
        t.equal((stolen.seen, services["good"].asked("stolen"), len(services["moved"].seen)), ([], [], 2), "nobody else has seen the key")
        t.equal([p for p, _ in services["good"].seen if "unknown" in p], [], "nor who is signed by nobody that is known")
        system(place, others, services["other"].url, ours, key)
        t.ok(KEY not in s.log() + json.dumps(s.all()), "the key is in no log")
    t.done()


main()
