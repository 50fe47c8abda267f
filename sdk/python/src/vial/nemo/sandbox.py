"""sandbox - clients of an `/execute` server: vial's, or that of the original."""
from __future__ import annotations

import asyncio
import json
from typing import Any, Dict, Optional
from urllib.parse import urljoin, urlsplit

from .._address import Address
from .._default import default_async
from .._exchange import Answer, Request, encode
from .._net import Evented
from .._wire import Transport
from ..errors import RequestTimeout, ServerUnavailable
from .output import cut_output

DEFAULT_URI = "http://127.0.0.1:6000"
TIMEOUT_S = 10.0
MAX_OUTPUT_CHARACTERS = 1000
RETRIES = 3
GRACE_S = 5.0   # for the server, beyond the program's time

Result = Dict[str, Any]


def timed_out() -> Result:
    return {"process_status": "timeout", "stdout": "", "stderr": "Timed out\n"}


class Sandbox:
    """Sends code to a server, and brings its output into form.

    Args:
        uri: of the server. Default: http://127.0.0.1:6000; if nobody is there, vial's local
            daemon, or a private one.
    """

    def __init__(self, *, uri: Optional[str] = None) -> None:
        self.uri = str(uri) if uri is not None else DEFAULT_URI
        self.url = self._get_execute_url(self.uri)
        self._is_default = uri is None
        parts = urlsplit(self.url)
        self._path = parts.path + ("?" + parts.query if parts.query else "")
        self._transport = Transport(Address.parse("%s://%s" % (parts.scheme, parts.netloc)),
                                    Evented())

    async def execute_code(self, generated_code: str, timeout: float = TIMEOUT_S,
                           language: str = "python",
                           max_output_characters: int = MAX_OUTPUT_CHARACTERS, *,
                           timeout_seconds: Optional[float] = None,
                           session_id: Optional[str] = None) -> Result:
        """Run code on the server.

        Args:
            timeout: of the program, in seconds; also under its later name `timeout_seconds`.
            max_output_characters: more than that of stdout, and of stderr, is cut.
            session_id: run it in the live session of this name, which is made when it is new.

        Returns:
            `process_status` ("completed", "error" or "timeout"), `stdout`, `stderr`.

        Raises:
            ValueError: the language is not Python.
            ConnectionError: there is no server.
        """
        if language != "python":
            raise ValueError("Language %s not supported" % language)
        seconds = timeout_seconds if timeout_seconds is not None else timeout
        body = self._prepare_request(generated_code, seconds)
        if session_id is not None:
            body["session_id"] = session_id
        try:
            answer = await self._send_request(body, seconds)
        except RequestTimeout:
            return timed_out()
        output = self._parse_request_output(answer)
        for stream in ("stdout", "stderr"):
            if output["process_status"] != "timeout":
                output[stream] = cut_output(output[stream], max_output_characters)
        return output

    async def _send_request(self, body: Dict[str, Any], seconds: float) -> Answer:
        request = Request("POST", self._path, encode(body), max(seconds, 0) + GRACE_S)
        for attempt in range(RETRIES + 1):
            try:
                answer = await self._transport.send(request)
                break
            except ServerUnavailable as why:
                if why.was_sent:
                    raise
                if self._is_default:
                    return await self._send_locally(request)
                if attempt == RETRIES:
                    raise
            await asyncio.sleep(0.1 * 2 ** attempt)
        if answer.status == 502:
            raise RequestTimeout("the server's gateway gave up")
        return answer

    @staticmethod
    async def _send_locally(request: Request) -> Answer:
        """Nobody listens on the port of old: vial's own daemon."""
        return await default_async()._core.talk.send_once(
            Request("POST", "/execute", request.body, request.timeout))

    # ---- what servers differ in ----

    def _get_execute_url(self, uri: str) -> str:
        raise NotImplementedError

    def _prepare_request(self, generated_code: str, timeout: float) -> Dict[str, Any]:
        raise NotImplementedError

    def _parse_request_output(self, answer: Answer) -> Result:
        raise NotImplementedError


def _unknown(why: Any) -> Result:
    return {"process_status": "error", "stdout": "", "stderr": "Unknown error: %s\n" % why}


class LocalSandbox(Sandbox):
    """A server on this machine, or one like it."""

    def _get_execute_url(self, uri: str) -> str:
        return urljoin(uri if uri.endswith("/") else uri + "/", "execute")

    def _prepare_request(self, generated_code: str, timeout: float) -> Dict[str, Any]:
        return {"generated_code": generated_code, "timeout": timeout, "language": "python"}

    def _parse_request_output(self, answer: Answer) -> Result:
        text = answer.body.decode("utf-8", "replace")
        try:
            output = json.loads(text)
            return {**output, "process_status": str(output["process_status"]),
                    "stdout": str(output["stdout"]), "stderr": str(output["stderr"])}
        except (ValueError, KeyError, TypeError):
            return _unknown(text.strip() or "HTTP %d" % answer.status)


class PistonSandbox(Sandbox):
    """A Piston server."""

    def _get_execute_url(self, uri: str) -> str:
        return urljoin(uri if uri.endswith("/") else uri + "/", "execute")

    def _prepare_request(self, generated_code: str, timeout: float) -> Dict[str, Any]:
        return {"language": "py", "version": "3.10.0",
                "files": [{"content": generated_code}], "stdin": "", "args": [],
                "run_timeout": int(timeout * 1000), "compile_memory_limit": -1,
                "run_memory_limit": -1}

    def _parse_request_output(self, answer: Answer) -> Result:
        text = answer.body.decode("utf-8", "replace")
        try:
            output = json.loads(text)
            if "run" not in output:
                return _unknown(output.get("message", text))
            ran = output["run"]
            if ran.get("signal") == "SIGKILL":
                return timed_out()
            return {"process_status": "error" if ran.get("code") or ran.get("signal")
                    else "completed", "stdout": ran["stdout"], "stderr": ran["stderr"]}
        except (ValueError, KeyError, TypeError, AttributeError):
            return _unknown(text.strip() or "HTTP %d" % answer.status)


KINDS = {"local": LocalSandbox, "piston": PistonSandbox}


def get_sandbox(sandbox_type: str = "local", **kwargs: Any) -> Sandbox:
    """A client: "local" or "piston"."""
    kind = KINDS.get(sandbox_type.lower())
    if kind is None:
        raise ValueError("Unknown sandbox type: %s. Supported: %s"
                         % (sandbox_type, ", ".join(sorted(KINDS))))
    return kind(**kwargs)
