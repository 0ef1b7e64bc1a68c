"""A stand-in for a service: answers /readyz, ends on SIGTERM. For tests of what supervises services."""

import os
import signal
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"ok"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        return


def main() -> int:
    marker = os.environ.get("LANDBRIDGE_TEST_FAIL_WHILE", "")
    if marker and Path(marker).exists():
        print("cannot work: a file says so", flush=True)
        return 7
    if os.environ.get("LANDBRIDGE_ENVIRONMENT", "") == os.environ.get("LANDBRIDGE_TEST_FAIL_ENVIRONMENT", "-"):
        print("this environment cannot work", flush=True)
        return 8
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ["LANDBRIDGE_HTTP_PORT"])), _Handler)
    assert isinstance(server, socketserver.BaseServer)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda _signum, _frame: ended.set())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"up as {os.getpid()}", flush=True)
    ended.wait()
    server.shutdown()
    server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
