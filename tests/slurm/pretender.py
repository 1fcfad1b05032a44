"""What may listen at underwattd's socket in its place: a server that notes what it is asked and answers as it is told."""
import contextlib
import itertools
import json
import os
import pathlib
import socket
import threading

CREATED = b'HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{"refused":null}'
ENDED = b"HTTP/1.1 204 No Content\r\n\r\n"


class Pretender:
    """answer: the bytes of each answer; a function of the connection writes them itself; None: the right ones."""

    def __init__(self, path, answer=None):
        self.path, self.answer = path, answer
        self.asked = []    # (number of the connection, method, path, body)
        self.over = threading.Event()

    def __enter__(self):
        pathlib.Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.path)
        self.socket.listen(64)
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        os.unlink(self.path)

    def serve(self):
        for number in itertools.count():
            try:
                link = self.socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.one, args=(number, link), daemon=True).start()

    def one(self, number, link):
        with link, contextlib.suppress(OSError, ValueError):
            data = b""
            while b"\r\n\r\n" not in data:
                more = link.recv(65536)
                if not more:
                    return
                data += more
            head, body = data.split(b"\r\n\r\n", 1)
            method, path = head.decode().split(" ")[:2]
            length = [int(line.split(":")[1]) for line in head.decode().split("\r\n") if line.lower().startswith("content-length:")]
            while length and len(body) < length[0]:
                body += link.recv(65536)
            self.asked.append((number, method, path, json.loads(body) if body else None))
            if callable(self.answer):
                self.answer(link, self.over)
            else:
                link.sendall(self.answer if self.answer is not None else CREATED if method == "PUT" else ENDED)

    def taken(self):
        """(method, path, body) of each request since the last call, as they came."""
        asked, self.asked = self.asked, []
        return [words for _, *words in sorted(asked)]
