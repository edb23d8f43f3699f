"""The gRPC side of the fake: sockets, dispatch by name, records of calls."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, NamedTuple

import grpc
from cri_api.v1 import api_pb2 as pb
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor

from kubelet_mp.model import clock
from tests.fakes.cri.faults import Faults
from tests.fakes.cri.runtime import Refused, Runtime

_SERVICES = ("RuntimeService", "ImageService")
_STREAMS = frozenset({"GetContainerEvents"})


class Call(NamedTuple):
    """One RPC as it arrived; `at` monotonic seconds."""

    name: str
    request: Any
    at: float


class _Socket:
    """A directory of its own for a short socket path (tmp_path of pytest may exceed 107 bytes)."""

    def __init__(self, path: str = "") -> None:
        self._directory = "" if path else tempfile.mkdtemp(prefix="cri-")
        self.path = path or os.path.join(self._directory, "cri.sock")
        self.endpoint = f"unix://{self.path}"

    def unlink(self) -> None:
        if os.path.exists(self.path):
            os.unlink(self.path)

    def remove(self) -> None:
        self.unlink()
        if self._directory:
            shutil.rmtree(self._directory, ignore_errors=True)


class FakeCRI(Runtime):
    """See the package's docstring. `socket_path`: where to listen, by default in a directory of its own."""

    def __init__(
        self, *, events: bool = True, socket_path: str = "", images: tuple[str, ...] = (), **fields: Any
    ) -> None:
        if not events:
            fields.setdefault("cgroup_driver", None)
            fields.setdefault("version", "1.6.20")
        super().__init__(events=events, **fields)
        self._socket = _Socket(socket_path)
        self.endpoint, self.path = self._socket.endpoint, self._socket.path
        self._faults = Faults()
        self.fail, self.delay, self.hang, self.heal = (
            self._faults.fail, self._faults.delay, self._faults.hang, self._faults.heal)
        self.calls: list[Call] = []
        self._server: grpc.Server | None = None
        for name in images:
            self.add_image(name)

    @classmethod
    def crio(cls, *, events: bool = False, **fields: Any) -> FakeCRI:
        """CRI-O's differences: name, bare image ids, systemd driver, no event stream unless switched on."""
        own = {"name": "cri-o", "version": "1.34.0", "cgroup_driver": "SYSTEMD", "bare_image_ids": True}
        return cls(events=events, **{**own, **fields})

    # ---- the server ----

    def start(self) -> None:
        self._socket.unlink()
        self._faults.opening()
        server = grpc.server(ThreadPoolExecutor(64), options=[("grpc.so_reuseport", 0)])
        for service in _SERVICES:
            methods = pb.DESCRIPTOR.services_by_name[service].methods
            handlers = {method.name: self._handler(method) for method in methods}
            generic = grpc.method_handlers_generic_handler(f"runtime.v1.{service}", handlers)
            server.add_generic_rpc_handlers((generic,))
        server.add_insecure_port(self.endpoint)
        server.start()
        self._server = server

    def stop(self) -> None:
        """The runtime's daemon is gone, with its socket; what runs, runs on."""
        if self._server is not None:
            self._faults.closing()
            self.break_streams()
            self._server.stop(0).wait()
            self._server = None
        self._socket.unlink()

    def __enter__(self) -> FakeCRI:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._socket.remove()

    # ---- records ----

    def count(self, name: str) -> int:
        return sum(call.name == name for call in list(self.calls))

    def requests(self, name: str) -> list[Any]:
        return [call.request for call in list(self.calls) if call.name == name]

    def clear_calls(self) -> None:
        self.calls.clear()

    # ---- dispatch ----

    def _handler(self, method: MethodDescriptor) -> grpc.RpcMethodHandler:
        request = message_factory.GetMessageClass(method.input_type)
        response = message_factory.GetMessageClass(method.output_type)
        kind = (grpc.unary_stream_rpc_method_handler if method.name in _STREAMS
                else grpc.unary_unary_rpc_method_handler)
        serve = self._stream if method.name in _STREAMS else self._answer
        return kind(lambda req, context: serve(method.name, req, context),
                    request_deserializer=request.FromString, response_serializer=response.SerializeToString)

    def _answer(self, name: str, request: Any, context: grpc.ServicerContext) -> Any:
        self._begin(name, request, context)
        method = getattr(self, name, None)
        if method is None:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, f"the fake has no {name}")
        try:
            with self.lock:
                return method(request)
        except Refused as error:
            context.abort(error.code, error.message)

    def _stream(self, name: str, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        self._begin(name, request, context)
        try:
            yield from getattr(self, name)(request)
        except Refused as error:
            context.abort(error.code, error.message)

    def _begin(self, name: str, request: Any, context: grpc.ServicerContext) -> None:
        self.calls.append(Call(name, request, clock.monotonic()))
        self._faults.apply(name, request, context)
        if name == "StopContainer":
            threading.Event().wait(self.stop_time(request.container_id, request.timeout))


class NotCRI:
    """A gRPC server on a unix socket that knows no CRI service."""

    def __init__(self) -> None:
        self._socket = _Socket()
        self.endpoint = self._socket.endpoint
        self._server = grpc.server(ThreadPoolExecutor(2))
        self._server.add_insecure_port(self.endpoint)

    def __enter__(self) -> NotCRI:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop(0).wait()
        self._socket.remove()


class PlainHTTP:
    """A unix socket that answers everything with an HTTP/1.1 error, as docker's does."""

    ANSWER = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    def __init__(self) -> None:
        self._socket = _Socket()
        self.endpoint = self._socket.endpoint
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self._socket.path)
        self._listener.listen(8)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(4096)
                connection.sendall(self.ANSWER)

    def __enter__(self) -> PlainHTTP:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)
        self._socket.remove()
