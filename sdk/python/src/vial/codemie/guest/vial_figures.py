"""vial_figures - a backend of matplotlib, for programs in a sandbox: show() writes pictures.

They are image_0000.png and so on, in the working directory.
"""
import itertools
import os

from matplotlib._pylab_helpers import Gcf
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas

__all__ = ["FigureCanvas", "show"]

_NAMES = ("image_%04d.png" % number for number in itertools.count())


def show(*args, **kwargs):
    """Write every open figure, and close it."""
    for manager in Gcf.get_all_fig_managers():
        name = next(name for name in _NAMES if not os.path.exists(name))
        manager.canvas.figure.savefig(name)
    Gcf.destroy_all()
