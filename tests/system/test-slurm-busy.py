#!/usr/bin/python3
"""Slurm's collector and nodes whose daemon answers with 429 or 5xx: what they took stays told, they are asked again when they want
it, and no other node waits."""
import http.server
import os
import socketserver
import tempfile
import threading

import slurmstub
import uwtest

t = uwtest.Tap()


class Node(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """What listens at a node's socket.  answer(self, path): the status, and a Retry-After or None, of a request."""

    daemon_threads = True

    def __init__(self, path, answer):
        super().__init__(path, Handler)
        self.answer = answer
        self.asked = []    # (method, path, status)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def told(self):
        return [path.rsplit("/", 1)[1] for method, path, status in self.asked if method != "GET" and status == 204]

    def refused(self):
        return [path.rsplit("/", 1)[1] for _, path, status in self.asked if status >= 400]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, retry = self.server.answer(self.server, self.path)
        body = b'{"signals": [{"name": "queue.depth"}]}' if self.command == "GET" and status == 200 else b""
        self.send_response(status)
        if retry is not None:
            self.send_header("Retry-After", str(retry))
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.server.asked.append((self.command, self.path, status))

    do_GET = do_PUT = do_PATCH = answer

    def log_message(self, *args):
        pass


def good(path):
    return (200 if path == "/v1/signals" else 204), None


def limited(node, path):
    """Four requests, then one 429."""
    return (429, 1) if len(node.asked) == 4 else good(path)


def broken(_, path):
    return (503, None) if path.endswith(":21") else good(path)


def full(_, path):
    return (429, None) if path == "/v1/signals" else good(path)


ALL = ["queue.depth", "slurm:11", "slurm:12", "slurm:13", "slurm:14", "slurm:15"]
NODES = {"limited": [11, 12, 13, 14, 15], "broken": [21, 22, 23], "full": [31], "fine": [41]}
with tempfile.TemporaryDirectory(prefix="uw-") as place:
    answers = {"limited": limited, "broken": broken, "full": full, "fine": lambda _, path: good(path)}
    nodes = {name: Node(os.path.join(place, f"{name}.sock"), answer) for name, answer in answers.items()}
    with slurmstub.Slurm(place, NODES) as slurm:
        config = f"nodes: {{socket: {place}/%n.sock}}\nsees_all: true\n"
        c = slurm.collector("every: 5 min\n" + config)
        t.ok(uwtest.wait_for(lambda: len(nodes["limited"].told()) >= len(ALL)), "after 429 it is told the rest long before the next round",
             c.log())
        t.equal(nodes["limited"].told(), ALL, "and each thing once")
        t.equal(nodes["limited"].refused(), ["slurm:13"], "it was asked once too early")
        t.equal(c.lines("name=limited"), [], "that is not worth a line")
        t.equal(uwtest.wait_until(nodes["fine"].told, lambda got: len(got) > 1), ["queue.depth", "slurm:41"], "another node is told all at once")
        t.equal(c.stop(), 0, "the collector ends")
        c = slurm.collector("every: 1 s\n" + config)
        t.ok(uwtest.wait_for(lambda: {"slurm:22", "slurm:23"} <= set(nodes["broken"].told())), "a request that fails holds up none behind it",
             nodes["broken"].asked)
        uwtest.wait_for(lambda: c.lines("name=full") and c.lines("name=broken"))
        t.equal([len(c.lines(f"name={n}", "state=busy", f"HTTP {s}")) for n, s in (("broken", 503), ("full", 429))], [1, 1],
                "a line for each node in trouble")
        t.equal(c.lines("name=fine"), [], "none for the others")
        nodes["full"].answer = nodes["broken"].answer = lambda _, path: good(path)
        t.ok(uwtest.wait_for(lambda: c.lines("name=full", "state=answers") and c.lines("name=broken", "state=answers")), "they are back",
             c.log())
        t.ok(uwtest.wait_for(lambda: "slurm:21" in nodes["broken"].told() and "slurm:31" in nodes["full"].told()), "and told everything")
        t.equal(c.stop(), 0, "the collector ends")
    for node in nodes.values():
        node.shutdown()
        node.server_close()
t.done()
