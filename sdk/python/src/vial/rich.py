"""rich - what a program has shown: the same thing in several MIME types.

Notebooks ask an object for the form that they can draw; a Rich has those that came.
"""
from __future__ import annotations

import base64
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

_TEXTS = ("text/", "image/svg+xml")


def _is_json(mime: str) -> bool:
    return mime == "application/json" or mime.endswith("+json")


class Rich(Mapping[str, Any]):
    """A MIME bundle: a mapping from type to content.

    Text types have str, JSON types what the JSON says, all others bytes.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data: Dict[str, Any] = dict(data)

    def __getitem__(self, mime: str) -> Any:
        value = self._data[mime]
        if isinstance(value, str) and not mime.startswith(_TEXTS) and not _is_json(mime):
            return base64.b64decode(value)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        text = self._data.get("text/plain")
        return text if isinstance(text, str) else "<Rich %s>" % ", ".join(self._data)

    @property
    def png(self) -> Optional[bytes]:
        """The picture, if there is one."""
        return self["image/png"] if "image/png" in self._data else None

    @property
    def html(self) -> Optional[str]:
        return self._text("text/html")

    def _text(self, mime: str) -> Optional[str]:
        value = self._data.get(mime)
        return value if isinstance(value, str) else None

    # ---- notebooks ----

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Dict[str, Any]:
        bundle = dict(self._data)  # Jupyter wants base64 as it came
        if "text/plain" not in bundle:
            bundle["text/plain"] = repr(self)
        return bundle

    def _repr_png_(self) -> Optional[bytes]:
        return self.png

    def _repr_jpeg_(self) -> Optional[bytes]:
        return self["image/jpeg"] if "image/jpeg" in self._data else None

    def _repr_html_(self) -> Optional[str]:
        return self.html

    def _repr_svg_(self) -> Optional[str]:
        return self._text("image/svg+xml")

    def _repr_markdown_(self) -> Optional[str]:
        return self._text("text/markdown")

    def _repr_latex_(self) -> Optional[str]:
        return self._text("text/latex")

    def _repr_json_(self) -> Any:
        return self._data.get("application/json")


class Opaque(Rich):
    """A value that JSON cannot say: its repr(), the name of its type, and its rich forms."""

    def __init__(self, text: str, type_name: str, data: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(data or {})
        self.text = text
        self.type_name = type_name

    def __repr__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return True  # it is a value, although a mapping without forms is empty

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.text, self.type_name))

    def _key(self) -> Tuple[str, str, Dict[str, Any]]:
        return self.text, self.type_name, self._data
