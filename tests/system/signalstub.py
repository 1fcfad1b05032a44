"""Services of signals on loopback, as they answer and as they should not; and underwatt-signals that asks them."""
import datetime
import http.server
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import uwtest

KEY = "EmKey-0123456789abcdef"
LOGIN = "wt-user:wt-Password-0123456789"
TOKEN = "5cd1c4f6-2172-entsoe-token"    # of ENTSO-E
JWT = "eyJhbGciOiJ-token-of-watttime-"    # and a number
ZONE = "10Y1001A1001A82H"
BEGAN = int(time.time()) // 60 * 60 - 60    # of the half hour, or hour, that holds: none begins or ends during a test


def minute(at):
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%MZ")


def half_hours(first, n=8, ahead=0):
    """As the UK's API: half hours from `first` before now, those that are over with an actual value."""
    now = time.time()
    begin = BEGAN - first * 1800 + ahead
    return {"data": [{"from": minute(at), "to": minute(at + 1800),
                      "intensity": {"forecast": 250, "actual": 263 if at + 1800 <= now else None, "index": "moderate"}}
                     for at in range(begin, begin + n * 1800, 1800)]}


def em_history(zone, value):
    """As Electricity Maps: hours up to now."""
    return {"zone": zone, "temporalGranularity": "hourly",
            "history": [{"zone": zone, "carbonIntensity": value, "datetime": minute(at), "updatedAt": minute(BEGAN), "isEstimated": False}
                        for at in (BEGAN - 3600, BEGAN)]}


def seconds(at):
    return minute(at)[:-1] + ":00.000Z"


# What each service says, of points (begin, length, value): as docs/signals.md's sources answer.

def said_em(points, api, zone="DE"):
    of = {"zone": zone, "updatedAt": seconds(time.time() - 60), "createdAt": seconds(time.time() - 3600), "emissionFactorType": "lifecycle",
          "isEstimated": False, "estimationMethod": None} | ({"flowTraced": True} if api == 4 else {})
    return json.dumps({"zone": zone} | ({"temporalGranularity": "hourly"} if api == 4 else {}) |
                      {"history": [of | {"carbonIntensity": v, "datetime": seconds(at)} for at, _, v in points]})


def said_uk(points, **region):
    now = time.time()
    half = [{"from": minute(at), "to": minute(at + n), "intensity": {"forecast": v, "index": "moderate"} | (
        {} if region else {"actual": v if at + n <= now else None})} for at, n, v in points]
    return json.dumps({"data": region | {"dnoregion": "UKPN London", "shortname": "London", "data": half} if region else half})


def said_watttime(points, units="lbs_co2_per_mwh", region="CAISO_NORTH"):
    return json.dumps({"data": [{"point_time": seconds(at)[:-5] + "+00:00", "value": v} for at, _, v in points],
                       "meta": {"data_point_period_seconds": 300, "region": region, "signal_type": "co2_moer", "units": units, "warnings": [],
                                "model": {"date": "2023-03-01"}, "generated_at": seconds(time.time() // 300 * 300)[:-5] + "+00:00"}})


def said_sdk(points):
    return json.dumps([{"location": "westeurope", "time": seconds(at)[:-5] + "+00:00", "rating": v, "duration": f"{n // 3600:02}:{n // 60 % 60:02}:00"}
                       for at, n, v in points])


def said_entsoe(points, curve="A01", measure="MWH", zone=ZONE, missing=()):
    begin, step = points[0][:2]
    end = begin + step * len(points)
    of = "".join(f"<Point><position>{i}</position>" + ("" if v is None else f"<price.amount>{v}</price.amount>") + "</Point>"
                 for i, (_, _, v) in enumerate(points, 1) if i not in missing)
    time_of = f"<timeInterval><start>{minute(begin)}</start><end>{minute(end)}</end></timeInterval>"
    return ('<?xml version="1.0" encoding="utf-8"?><Publication_MarketDocument xmlns="urn:iec62325.351:tc57wg16:451-3:publicationdocument:7:3">'
            f"<mRID>1</mRID><type>A44</type><createdDateTime>{minute(time.time())[:-1]}:00Z</createdDateTime>"
            f"<period.{time_of[1:].replace('</time', '</period.time')}<TimeSeries><mRID>1</mRID><auction.type>A01</auction.type>"
            "<businessType>A62</businessType>"
            f'<in_Domain.mRID codingScheme="A01">{zone}</in_Domain.mRID><out_Domain.mRID codingScheme="A01">{zone}</out_Domain.mRID>'
            "<contract_MarketAgreement.type>A01</contract_MarketAgreement.type><currency_Unit.name>EUR</currency_Unit.name>"
            f"<price_Measure_Unit.name>{measure}</price_Measure_Unit.name><curveType>{curve}</curveType><Period>{time_of}"
            f"<resolution>PT{step // 60}M</resolution>{of}</Period></TimeSeries></Publication_MarketDocument>")


def acknowledged(text):
    return ('<?xml version="1.0" encoding="utf-8"?><Acknowledgement_MarketDocument xmlns="urn:iec62325.351:tc57wg16:451-1:acknowledgementdocument:7:0">'
            f"<mRID>1</mRID><Reason><code>999</code><text>{text}</text></Reason></Acknowledgement_MarketDocument>")


class Service:
    """answer(path, headers): (status, headers, bytes); None, which cuts the connection in the middle of an answer; or a function that writes the
    answer, or never ends, until writing to who asked fails.  context: of TLS."""

    def __init__(self, answer, context=None):
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with service.lock:
                    service.seen.append((self.path, dict(self.headers)))
                said = answer(self.path, self.headers)
                if callable(said):
                    self.close_connection = True
                    said(self.wfile.write)
                    return
                status, fields, body = said or (200, {}, b'{"data":[{"from"')
                self.send_response_only(status)
                for name, value in ({"Date": self.date_time_string()} | fields).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body) + (0 if said else 100)))
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = not said

            def log_message(self, *_):
                pass

        self.lock, self.seen = threading.Lock(), []
        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):    # who asks may leave in the middle of an answer
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def asked(self, word):
        with self.lock:
            return [(path, headers) for path, headers in self.seen if word in path]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Signals:
    """underwatt-signals with these lines of sources; more: further lines of its file, tcp: of `serve`, inside: a command that runs it."""

    def __init__(self, folder, sources, cache=True, more="", tcp="", inside=()):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.socket = str(self.folder / "signals.sock")
        self.config = self.folder / "signals.yaml"
        self.place = self.folder / "signals.log"
        (self.folder / "cache").mkdir(exist_ok=True)
        self.cache, self.more, self.inside = cache, more, inside
        self.configure(sources, tcp)
        self.child = None

    def configure(self, sources, tcp=""):
        self.config.write_text(f"signals: 1\nserve: {{socket: {self.socket}{', ' if tcp else ''}{tcp}}}\n" +
                               (f"cache: {self.folder}/cache\n" if self.cache else "") + self.more +
                               ("sources:\n" + "".join(f"  - {s}\n" for s in sources) if sources else ""))

    def start(self):
        with open(self.place, "ab") as log:
            self.child = subprocess.Popen([*self.inside, uwtest.program("underwatt-signals"), "--config", self.config],
                                          stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        uwtest.must(uwtest.wait_for(lambda: os.path.exists(self.socket) and "signals" in uwtest.ask_socket(self.socket, "/v1/signals", seconds=uwtest.PATIENCE)),
                    self.log())
        return self

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(timeout=uwtest.PATIENCE)

    def log(self):
        return self.place.read_text(errors="replace")

    def lines(self, *words):
        return [line for line in self.log().splitlines() if all(w in line for w in words)]

    def all(self):
        # 20 long series are 20 MB, which a busy machine takes seconds to write.
        return {s["name"]: s for s in uwtest.ask_socket(self.socket, "/v1/signals", seconds=uwtest.PATIENCE).get("signals", [])}

    def becomes(self, name, holds):
        return uwtest.wait_until(lambda: self.all().get(name, {}), lambda s: bool(s) and holds(s))


def answer_of(body, **fields):
    return 200, fields, json.dumps(body).encode()
