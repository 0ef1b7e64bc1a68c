"""An S3-compatible store on loopback (moto), which checks signatures and rights, and what lies in it."""

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

ACCOUNT = "123456789012"
BUCKET = "shared"


@dataclass
class ObjectStore:
    """`keys`: of somebody who may do anything in the bucket."""

    endpoint: str
    keys: tuple[str, str]
    bucket: str = BUCKET
    port: int = 0
    reader: tuple[str, str] = ("", "")
    """Of somebody who may read only."""
    _backend: Any = field(default=None, repr=False)

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """Everything below a prefix."""
        keys = self._backend.buckets[self.bucket].keys
        return {name: keys[name].value for name in keys if name.startswith(prefix)}

    def put(self, key: str, body: bytes) -> None:
        self._backend.put_object(self.bucket, key, body)


@contextlib.contextmanager
def object_store(host: str = "127.0.0.1") -> Iterator[ObjectStore]:
    """Serve one for a while; pods of another network namespace need another address than the usual one."""
    from moto import settings
    from moto.core.authorization import ActionAuthenticatorMixin
    from moto.iam.models import iam_backends
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from moto.s3.models import s3_backends
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Silent(WSGIRequestHandler):
        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Say nothing."""

    application = DomainDispatcherApplication(create_backend_app)
    server = make_server(host, 0, application, threaded=True, request_handler=Silent)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    backend, iam = s3_backends[ACCOUNT]["aws"], iam_backends[ACCOUNT]["aws"]
    backend.create_bucket(BUCKET, "us-east-1")
    keys = [_user(iam, name, actions) for name, actions in (("owner", ["s3:*"]), ("reader", ["s3:Get*", "s3:List*"]))]
    before = settings.INITIAL_NO_AUTH_ACTION_COUNT
    settings.INITIAL_NO_AUTH_ACTION_COUNT, ActionAuthenticatorMixin.request_count = 0, 0
    thread.start()
    try:
        port = server.server_port
        yield ObjectStore(f"http://127.0.0.1:{port}", keys[0], reader=keys[1], port=port, _backend=backend)
    finally:
        settings.INITIAL_NO_AUTH_ACTION_COUNT = before
        server.shutdown()
        server.server_close()
        thread.join(5)
        backend.reset()
        iam.reset()


def _user(iam: Any, name: str, actions: list[str]) -> tuple[str, str]:
    iam.create_user("us-east-1", name)
    statement = {"Effect": "Allow", "Action": actions, "Resource": "*"}
    iam.put_user_policy(name, "rights", json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    key = iam.create_access_key(name)
    return key.access_key_id, key.secret_access_key
