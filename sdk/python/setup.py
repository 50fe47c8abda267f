"""The wheel has the programs in it, built from the source that this package is a part of.

    vial/_bin/vial                        static
    vial/_bin/vial-server, vial-egress    find their libraries in lib/ beside them
    vial/_bin/lib/*.so.*                  those that are not the C library's, with their licenses
    vial/_bin/environments                what `vial env build NAME` builds

The source distribution has that source in source/.  Its version is that of meson.build.
"""
import glob
import os
import pathlib
import re
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist
from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE / "source" if (HERE / "source").exists() else HERE.parents[1]
VERSION = re.search(r"version: '([^']+)'", (SOURCE / "meson.build").read_text(encoding="utf-8"))[1]
PROGRAMS = {"vial": "vial", "vial-server": "vial-server-bundled",
            "vial-egress": "vial-egress-bundled"}  # as they are called, and as they are built
C_LIBRARY = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv))\.so\.\d+")
NEEDED = re.compile(r"^\s*(\S+) => (/\S+)", re.MULTILINE)
GLIBC = re.compile(r"GLIBC_2\.(\d+)")


def run(*words, **kwargs):
    return subprocess.run([str(word) for word in words], check=True, text=True, **kwargs)


def output(*words):
    return run(*words, stdout=subprocess.PIPE).stdout


def build_programs():
    """Where `make` would; gives the directory."""
    folder = pathlib.Path(os.environ.get("VIAL_BUILD_DIR") or SOURCE / "build")
    if not (folder / "build.ninja").exists():
        run("meson", "setup", folder, SOURCE, stdout=subprocess.DEVNULL)
    run("ninja", "-C", folder, "--quiet", *PROGRAMS.values())
    return folder


def libraries(program):
    """What it is linked with, and those with each other, but for the C library."""
    found = dict(NEEDED.findall(output("ldd", program)))
    return {name: path for name, path in found.items() if not C_LIBRARY.fullmatch(name)}


def package_of(path):
    """Debian's, that a library came in; None: we are elsewhere."""
    real = os.path.realpath(path)
    for name in (path, real, real.replace("/usr/lib/", "/lib/")):
        asked = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True,
                               check=False)
        if asked.returncode == 0:
            return asked.stdout.split(":")[0]
    return None


def copy_program(source, target):
    shutil.copyfile(source, target)
    target.chmod(0o755)
    run("strip", target)


def fill(target, built):
    """`_bin`, anew."""
    shutil.rmtree(target, ignore_errors=True)
    (target / "lib" / "licenses").mkdir(parents=True)
    needed = {}
    for name, built_name in PROGRAMS.items():
        copy_program(built / built_name, target / name)
        needed.update(libraries(built / built_name))
    for name, path in needed.items():
        shutil.copyfile(path, target / "lib" / name)
        package = shutil.which("dpkg-query") and package_of(path)
        words = pathlib.Path("/usr/share/doc", package or "-", "copyright")
        if words.exists():
            shutil.copyfile(words, target / "lib" / "licenses" / package)
    shutil.copytree(SOURCE / "environments", target / "environments")


def oldest_glibc(folder):
    """The minor version of the C library that all of it runs on."""
    programs = [*(folder / name for name in PROGRAMS), *glob.glob(str(folder / "lib" / "*.so*"))]
    told = output("readelf", "--version-info", "--wide", *programs)
    return max(int(minor) for minor in GLIBC.findall(told))


class WithPrograms(build_py):
    """The modules, and `_bin`."""

    def run(self):
        super().run()
        fill(pathlib.Path(self.build_lib, "vial", "_bin"), build_programs())


class ForThisMachine(bdist_wheel):
    """For every Python 3, and for a machine and C library like ours."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        programs = pathlib.Path(self.bdist_dir, "vial", "_bin")
        return "py3", "none", "manylinux_2_%d_%s" % (oldest_glibc(programs), os.uname().machine)


class WithSource(sdist):
    """The package, and the source of the programs in source/."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        target = pathlib.Path(base_dir, "source")
        for name in self.source_files():
            path = SOURCE / name
            if path.is_symlink() or not path.is_file():
                continue
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target / name)

    @staticmethod
    def source_files():
        if HERE.parents[1] == SOURCE:
            names = output("git", "-C", SOURCE, "ls-files", "-z").split("\0")
            return [name for name in names if name and not name.startswith("sdk/python/")]
        return [path.relative_to(SOURCE) for path in SOURCE.rglob("*")
                if not str(path.relative_to(SOURCE)).startswith("build")]


class WithBinaries(Distribution):
    """Not the same on every machine."""

    def has_ext_modules(self):
        return True


setup(version=VERSION, distclass=WithBinaries,
      cmdclass={"build_py": WithPrograms, "bdist_wheel": ForThisMachine, "sdist": WithSource})
