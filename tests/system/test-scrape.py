#!/usr/bin/python3
"""A scraper at `metrics.listen` while another user's process floods it: with connections that it keeps, and with requests as fast as it can."""
import http.client
import os
import socket
import subprocess
import sys
import time

import uwtest

if os.geteuid() != 0:
    uwtest.skip_all("root is needed to be two users")
NOBODY = 65534
# Requests in four threads' loops, 40 connections kept, until its input ends; prints how many answers were 200, and how many 429.
FLOOD = """
import collections, http.client, socket, sys, threading, time
port, over, n = int(sys.argv[1]), threading.Event(), collections.Counter()
def ask():
    while not over.is_set():
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            while not over.is_set():
                c.request("GET", "/metrics")
                r = c.getresponse()
                r.read()
                n[r.status] += 1
        except (OSError, http.client.HTTPException):
            n["closed"] += 1
        c.close()
threads = [threading.Thread(target=ask) for _ in range(4)]
for t in threads:
    t.start()
threading.Thread(target=lambda: (sys.stdin.read(), over.set())).start()
while not over.is_set():
    kept = []
    for i in range(40):
        s = socket.socket()
        s.bind((f"127.0.0.{1 + i}", 0))
        s.connect(("127.0.0.1", port))
        kept.append(s)
    print("kept", flush=True)
    over.wait(1)
for t in threads:
    t.join()
print(n[200], n[429], n["closed"])
"""
t = uwtest.Tap()


def scrape(port):
    """(status, seconds) of one scrape on a connection of its own; the status of one that was refused is 0."""
    began, c = time.monotonic(), http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        c.request("GET", "/metrics")
        r = c.getresponse()
        whole = r.read().endswith(b"\n")
        return r.status if whole else 0, time.monotonic() - began
    except (OSError, http.client.HTTPException):
        return 0, time.monotonic() - began
    finally:
        c.close()


with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
with uwtest.Node(board="v100", count=2) as node:
    d = node.daemon(f"metrics: {{listen: '127.0.0.1:{port}'}}\napi: {{limits: {{requests: 20}}}}\n")
    t.equal(scrape(port)[0], 200, "a scrape")
    with subprocess.Popen([sys.executable, "-c", FLOOD, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          user=NOBODY, group=NOBODY, extra_groups=[]) as flood:
        flood.stdout.readline()
        time.sleep(1)  # its burst is used up
        got = []
        for _ in range(20):
            got.append(scrape(port))
            time.sleep(0.2)
        told = flood.communicate()[0].splitlines()[-1]
    well, limited, cut = map(int, told.split())
    # A scrape_timeout is 10 s by default.
    t.ok(all(status == 200 and s < 10 for status, s in got), "each scrape is answered in time", got)
    print(f"# {told}: answers, refusals, connections that ended")
    t.ok(limited > well > 0 or cut > well > 0, "while the flood is refused more than it is answered", told)
    t.ok("loopback uid 65534" in d.log(), "the log names the user", d.log()[-500:])
    t.equal(d.ask("GET", "/v1/node")[0], 200, "the socket is served")
t.done()
