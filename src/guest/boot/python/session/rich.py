"""rich - what can be looked at: the MIME forms of values, figures, and display().

Nothing here imports a library: what the program has not loaded it cannot have made.
"""
import base64
import io
import sys
from json import loads

from .values import Inexact, clean, cut, to_json, to_text, TEXT_BESIDE

# The methods that notebooks know.
METHODS = (
    ("_repr_html_", "text/html"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_latex_", "text/latex"),
    ("_repr_json_", "application/json"),
)
TEXT_TYPES = ("text/", "image/svg+xml", "application/javascript", "application/xml")
PLOTLY = "application/vnd.plotly.v1+json"
ROWS_MAX = 1000  # of a table's data


class Forms:
    """What display(raw=True) is given."""

    def __init__(self, forms):
        self._repr_mimebundle_ = lambda: dict(forms)


def _is_json(mime):
    return mime == "application/json" or mime.endswith("+json")


def _call(value, name):
    """What the method gives, or None.  A class has its instances' methods, but not their forms."""
    if isinstance(value, type):
        return None
    try:
        method = getattr(value, name, None)
        return method() if callable(method) else None
    except Exception:  # a form that fails is one that the value does not have
        return None


# ---- forms of single kinds -------------------------------------------------------------------

def _is_from(value, package, *names):
    """A library's class, or one derived from it."""
    return package in sys.modules and any(
        base.__name__ in names and str(base.__module__).split(".")[0] == package
        for base in type(value).__mro__)


def _figure_forms(figure):
    picture = io.BytesIO()
    figure.savefig(picture, format="png", bbox_inches="tight")
    return {"image/png": picture.getvalue()}


def _plotly_forms(figure):
    return {PLOTLY: loads(figure.to_json()),
            "text/html": figure.to_html(full_html=False, include_plotlyjs="cdn")}


def _table_forms(table):
    """The rows as data: what _repr_html_ shows is for the eye."""
    data = table.head(ROWS_MAX).to_json(orient="split", date_format="iso", default_handler=str)
    forms = {"application/json": loads(data)}
    html = _call(table, "_repr_html_")
    return dict(forms, **{"text/html": html} if html else {})


KINDS = (
    ("matplotlib", ("Figure",), _figure_forms),
    ("plotly", ("BaseFigure",), _plotly_forms),
    ("pandas", ("DataFrame", "Series"), _table_forms),
)


def is_figure(value):
    return _is_from(value, "matplotlib", "Figure")


def _forms_of_kind(value):
    for package, names, forms in KINDS:
        if _is_from(value, package, *names):
            try:
                return forms(value)
            except Exception:  # the methods may still do
                return None
    return None


# ---- any value -------------------------------------------------------------------------------

def _forms(value):
    """MIME type to str, bytes or what JSON has."""
    if type(value).__module__ == "builtins":
        return {}
    forms = _forms_of_kind(value)
    if forms:
        return forms
    bundle = _call(value, "_repr_mimebundle_")
    if isinstance(bundle, tuple):  # with metadata
        bundle = bundle[0] if bundle else None
    forms = {mime: form for mime, form in bundle.items()
             if isinstance(mime, str)} if isinstance(bundle, dict) else {}
    for name, mime in METHODS:
        if mime in forms or (mime == "image/jpeg" and "image/png" in forms):
            continue
        form = _call(value, name)
        if isinstance(form, tuple):
            form = form[0] if form else None
        if form is not None:
            forms[mime] = form
    return forms


def _form_to_json(mime, form, limit):
    """JSON text of one form.  Raises Inexact when there is none, or none that fits."""
    if _is_json(mime):
        return to_json(form, limit)
    if isinstance(form, (bytes, bytearray, memoryview)):
        form = bytes(form)
        if mime.startswith(TEXT_TYPES):
            form = form.decode("utf-8", "replace")
        else:
            form = base64.b64encode(form).decode()
    if not isinstance(form, str):
        raise Inexact("%s cannot be %s" % (mime, type(form).__name__))
    return to_json(clean(form), limit)


class Bundle:
    """JSON members that together take at most `limit` bytes."""

    def __init__(self, limit):
        self.left = limit
        self.was_cut = False

    def fit(self, forms):
        """JSON text of an object of as many of these as fit, None when there is none."""
        members = []
        for mime, form in forms.items():
            name = to_json(clean(mime), 1000)
            try:
                text = "%s:%s" % (name, _form_to_json(mime, form, self.left - len(name) - 2))
            except Inexact as why:
                self.was_cut = self.was_cut or why.is_large
                continue
            self.left -= len(text.encode()) + 1
            members.append(text)
        return "{%s}" % ",".join(members) if members else None


def describe(value, limit):
    """JSON text of a step's value, and whether something was cut from it."""
    bundle = Bundle(limit - 200)  # room for the names of the members and of the type
    members, is_large = [], False
    try:
        text = to_json(value, bundle.left)
        bundle.left -= len(text.encode())
        members.append('"json":' + text)
    except Inexact as why:
        is_large = why.is_large
    if not members or len(members[0]) <= TEXT_BESIDE:
        room = bundle.left if members else min(bundle.left, limit // 2)
        text, was_cut = to_text(value, room, is_large)
        if not (members and was_cut):
            bundle.was_cut = was_cut
            text = to_json(text, limit)
            bundle.left -= len(text.encode())
            members.append('"text":' + text)
    name, _ = cut(type(value).__name__, 100)
    members.append('"type":' + to_json(name, limit))
    data = bundle.fit(_forms(value))
    if data:
        members.append('"data":' + data)
    return "{%s}" % ",".join(members), bundle.was_cut


def describe_display(value, limit):
    """JSON text of a display's data, and whether something was cut from it."""
    bundle = Bundle(limit)
    forms = _forms(value)
    if "text/plain" not in forms and not isinstance(value, Forms) and not is_figure(value):
        text, bundle.was_cut = to_text(value, min(limit // 2, 1 << 16))
        forms = dict({"text/plain": text}, **forms)
    return bundle.fit(forms) or "{}", bundle.was_cut


# ---- what libraries do on a screen -------------------------------------------------------------

class Figures:
    """matplotlib's open figures."""

    def __init__(self, display):
        self._display = display

    def capture(self, shown=None):
        """Display what is open, but for `shown`, and close it: the next step begins with none."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        numbers = pyplot.get_fignums() if pyplot else ()
        try:
            for number in numbers:
                figure = pyplot.figure(number)
                if figure is not shown:
                    self._display(figure)
        finally:
            if numbers:
                pyplot.close("all")


class Patches:
    """An importer that finds nothing: it puts display() in the place of windows, once their
    modules are loaded."""

    def __init__(self, display, figures):
        def show_all(*_, **__):
            """Display all open figures."""
            figures.capture()

        def show(self, *_, **__):
            """Display it."""
            display(self)

        self._patches = {
            "matplotlib.pyplot": lambda module: setattr(module, "show", show_all),
            "plotly.basedatatypes": lambda module: setattr(module.BaseFigure, "show", show),
            "PIL.Image": lambda module: setattr(module.Image, "show", show),
            "IPython.display": lambda module: setattr(module, "display", display),
        }

    def install(self):
        for name, patch in self._patches.items():
            if name in sys.modules:
                patch(sys.modules[name])
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        patch = self._patches.get(name)
        if patch is None:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not self else None
            if spec is not None:
                break
        else:
            return None
        self._patch_after(spec.loader, patch)
        return spec

    @staticmethod
    def _patch_after(loader, patch):
        execute = loader.exec_module

        def exec_module(module):
            execute(module)
            try:
                patch(module)
            except Exception:  # another version of it: windows stay what they are
                pass
        loader.exec_module = exec_module
