"""The carbon source of a site against a real HTTP server: what it tells, how it fails, what counts meanwhile."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from landbridge.domain import claims, probe_kinds
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.carbon_source import MOST_ANSWER_BYTES
from landbridge_dispatch.executors.bindings import BindingsError, load_bindings
from landbridge_dispatch.executors.protocol import Finding
from landbridge_dispatch.probes import carbon
from landbridge_dispatch.probes.context import ProbeContext

PROBE = Probe(name="carbon.intensity@1", claim=claims.CARBON, kind=probe_kinds.CARBON)


class Server(ThreadingHTTPServer):
    """One to which it is no news that a client has gone away."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


class Source:
    """A server whose next answer a test sets."""

    def __init__(self) -> None:
        self.status, self.body, self.headers = 200, b"", dict[str, str]()
        self.wait_s = 0.0
        self.asked: list[dict[str, str]] = []
        source = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                source.asked.append(dict(self.headers.items()))
                time.sleep(source.wait_s)
                self.send_response(source.status)
                for name, value in source.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(source.body)))
                self.end_headers()
                self.wfile.write(source.body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/intensity"

    def tells(self, grams: float, *, lasts: timedelta = timedelta(minutes=30)) -> None:
        now = datetime.now(UTC)
        told = {"gramsPerKWh": grams, "at": now.isoformat(), "validUntil": (now + lasts).isoformat(), "source": "grid"}
        self.status, self.body = 200, json.dumps(told).encode()


@pytest.fixture
def source() -> Iterator[Source]:
    made = Source()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


Make = Callable[[str], ProbeContext]


@pytest.fixture
def site(tmp_path: Path) -> Make:
    """A site whose bindings say that about carbon."""

    def make(text: str) -> ProbeContext:
        (tmp_path / "bindings.yaml").write_text(text)
        return ProbeContext(cast("Any", None), load_bindings(tmp_path / "bindings.yaml"), cast("Any", None), "boot")

    return make


async def found(context: ProbeContext) -> Finding:
    return await carbon.run(PROBE, context)


async def test_what_the_source_tells_is_proven(source: Source, site: Make, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    source.tells(312.5)
    finding = await found(site(f"carbon: {{url: '{source.url}', name: grid operator, tokenFile: token}}"))
    assert (finding.result, finding.proven) == (EvidenceResult.PROVEN, 312.5)
    assert (finding.subject, finding.detail) == ("carbon source grid operator", "as grid tells it")
    assert source.asked[0]["Authorization"] == "Bearer abc"


def break_status(source: Source) -> str:
    source.status = 503
    return "HTTP status 503"


def redirect(source: Source) -> str:
    source.status, source.headers = 302, {"Location": source.url}
    return "HTTP status 302"


def grow(source: Source) -> str:
    source.body = b" " * (MOST_ANSWER_BYTES + 1)
    return "expected an answer of at most 64 KiB"


def talk_html(source: Source) -> str:
    source.body = b"<html>maintenance</html>"
    return "expected JSON with gramsPerKWh and at"


def hang(source: Source) -> str:
    source.wait_s = 1.0
    return "no answer within 300ms"


def go_away(source: Source) -> str:
    source.server.shutdown()
    source.server.server_close()
    return "no answer: ConnectError"


@pytest.mark.parametrize("fail", [break_status, redirect, grow, talk_html, hang, go_away])
async def test_a_source_that_fails_is_unknown_and_the_last_good_value_counts_with_its_time(
    source: Source, site: Make, fail: Callable[[Source], str]
) -> None:
    known = site(f"carbon: {{url: '{source.url}'}}")
    source.tells(200)
    good = await found(known)
    fresh = site(f"carbon: {{url: '{source.url}', timeout: {'300ms' if fail is hang else '10s'}}}")
    known = replace(fresh, memory=known.memory)
    why = fail(source)
    first = await found(fresh)
    assert (first.result, first.proven) == (EvidenceResult.UNKNOWN, None)
    assert first.detail.startswith(why)
    later = await found(known)
    assert (later.result, later.proven, later.at) == (EvidenceResult.PROVEN, 200, good.at)
    assert later.detail.startswith(f"last good value: {why}")
    assert "127.0.0.1" not in later.detail + later.subject + first.detail, "the physical place stays here"


async def test_a_last_good_value_that_has_run_out_by_its_own_saying_counts_no_more(source: Source, site: Make) -> None:
    context = site(f"carbon: {{url: '{source.url}'}}")
    source.tells(200, lasts=timedelta(milliseconds=200))
    assert (await found(context)).proven == 200
    source.status = 500
    time.sleep(0.25)
    assert (await found(context)).result is EvidenceResult.UNKNOWN


async def test_it_heals(source: Source, site: Make) -> None:
    context = site(f"carbon: {{url: '{source.url}'}}")
    source.status = 500
    assert (await found(context)).result is EvidenceResult.UNKNOWN
    source.tells(99)
    assert (await found(context)).proven == 99


async def test_a_file_tells_what_holds_now(site: Make, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    context = site("carbon: {file: series.csv}")
    assert (await found(context)).detail == "the file cannot be read: No such file or directory"
    series = f"from,until,grams_per_kwh\n{now - timedelta(hours=1)},{now + timedelta(hours=1)},87\n"
    (tmp_path / "series.csv").write_text(series)
    assert (await found(context)).proven == 87
    (tmp_path / "series.csv").write_text("from,grams_per_kwh\n2020-01-01T00:00Z,87\nx,1\n")
    broken = await found(context)
    assert broken.detail.startswith("last good value: the file:3: from: expected a time")
    (tmp_path / "series.csv").write_text("from,grams_per_kwh\n2020-01-01T00:00Z,87\n")
    over = await found(site("carbon: {file: series.csv}"))
    assert over.detail == "the file tells no intensity of now: its last point ends at 2020-01-01 01:00Z"


async def test_a_site_without_a_source_says_what_to_add(site: Make) -> None:
    finding = await found(site("{}"))
    assert finding.result is EvidenceResult.UNKNOWN
    assert "add carbon to the site's bindings" in finding.detail


@pytest.mark.parametrize(
    ("binding", "told"),
    [
        ("{}", "expected either file or url"),
        ("{file: a.csv, url: 'https://x.example'}", "expected either file or url"),
        ("{url: 'https://user:secret@x.example'}", "no user and no password"),
        ("{url: 'http://x.example'}", "http is for this machine only"),
        ("{url: 'file:///etc/passwd'}", "expected https://…, found scheme 'file'"),
        ("{file: a.csv, tokenFile: t}", "tokenFile: expected with url only"),
        ("{url: 'https://x.example', timeout: soon}", "timeout"),
        ("{url: 'https://x.example', tokken: x}", "tokken"),
    ],
)
def test_bindings_that_cannot_be_meant_are_refused(site: Make, binding: str, told: str) -> None:
    with pytest.raises(BindingsError, match="carbon") as refused:
        site(f"carbon: {binding}")
    assert told in str(refused.value)
    assert "secret" not in str(refused.value)
