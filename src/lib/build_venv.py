"""build_venv - make a virtual environment, inside the sandbox that vial made for it.

    build_venv.py VENV [locked|fitting] [source] [offline]

The working directory holds requirements.txt, pip.conf.0 and so on (the host's, least
important first), and requirements.lock: to be followed (`locked`), or followed if it
was made of these requirements for this interpreter (`fitting`).  It is written in any
case.  Below HERE, directories of wheels are mounted on links/0 and so on, and one for
what is large on work.

Progress goes to stdout, a line each: step, done, total and text, parted by tabs.
"""
import compileall
import concurrent.futures
import configparser
import glob
import hashlib
import importlib.metadata
import json
import os
import py_compile
import re
import subprocess
import sys
import sysconfig
import threading
import zipfile

HERE = "/var/cache/vial"  # what was mounted for us
WORK = HERE + "/work"
PIP = "/tmp/pip"
# What an operator may say about where packages come from; not where they go.
OPTIONS = {"index-url", "extra-index-url", "no-index", "find-links", "trusted-host", "cert",
           "client-cert", "proxy", "timeout", "retries"}


class Failure(Exception):
    """What the user has to be told."""


class Progress:
    """One line per step, and again every moment: whoever waits knows that we live."""

    def __init__(self):
        self.lock = threading.Lock()
        self.now = ("prepare", 0, 0, "")
        self.count = None  # a function that says how many are done
        threading.Thread(target=self.repeat, daemon=True).start()

    def write(self, step, done, total, text):
        line = "%s\t%d\t%d\t%s\n" % (step, done, total, " ".join(text.split()))
        with self.lock:
            os.write(1, line.encode("utf-8", "replace"))

    def show(self, step, done=0, total=0, text="", count=None):
        self.now, self.count = (step, done, total, text), count
        self.write(*self.now)

    def log(self, line):
        if line.strip():
            self.write("log", 0, 0, line)

    def repeat(self):
        pause = threading.Event()
        while not pause.wait(0.2):
            step, done, total, text = self.now
            count = self.count
            if count:
                done, text = count()
            self.write(step, done, total, text)


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def collected(line):
    """The package that a line of pip's is about, or None."""
    match = re.match(r"(?:Collecting|Processing) (?:\S*/)?([\w.]+(?:-[A-Za-z][\w.]*)*)", line)
    return match and match[1]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def parse_lock(text):
    """The lines of a lock, one per package, as we write them."""
    lines = []
    for line in text.replace("\\\n", " ").splitlines():
        line = " ".join(line.split())
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(r"([\w.-]+)==([\w.+!-]+)((?: --hash=sha256:[0-9a-f]{64})*)", line)
        if not match:
            raise Failure("not a line of a lock, NAME==VERSION --hash=sha256:...: " + line[:80])
        lines.append("%s==%s%s" % (canonical(match[1]), match[2], match[3]))
    return lines


class Build:
    def __init__(self, venv, flags):
        self.venv = venv
        self.flags = flags
        self.python = os.path.join(venv, "bin", "python3")
        self.progress = Progress()
        self.requirements = read("requirements.txt")

    # ---- tools

    def unpack_pip(self):
        """The pip that comes with the interpreter; the environment itself gets none."""
        try:
            import ensurepip
        except ImportError:
            raise Failure("this Python lacks venv and ensurepip; on Debian: apt-get install "
                          "python3-venv") from None
        places = [sysconfig.get_config_var("WHEEL_PKG_DIR"), "/usr/share/python-wheels",
                  os.path.join(os.path.dirname(ensurepip.__file__), "_bundled")]
        for place in filter(None, places):
            for wheel in glob.glob(os.path.join(place, "pip-*.whl")):
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(PIP)
                return re.match(r"pip-([^-]+)", os.path.basename(wheel)).group(1)
        raise Failure("this Python comes without pip; on Debian: apt-get install python3-venv")

    def configure(self):
        """The host's pip.conf files as one, so far as they say where packages come from."""
        merged = configparser.RawConfigParser()
        merged.read(sorted(glob.glob("pip.conf.*")), encoding="utf-8")
        for section in merged.sections():
            for option in merged.options(section):
                if option.replace("_", "-") not in OPTIONS:
                    merged.remove_option(section, option)
                elif option.endswith("cert") and not os.path.exists(merged.get(section, option)):
                    raise Failure("pip.conf: %s is %s, which the build cannot see; set PIP_%s" % (
                        option, merged.get(section, option), option.replace("-", "_").upper()))
        with open(WORK + "/pip.conf", "w", encoding="utf-8") as file:
            merged.write(file)

    def pip(self, *args):
        """Run pip; yields its lines."""
        command = [self.python, "-m", "pip", "--no-input", "--no-color",
                   "--disable-pip-version-check", "install", "--ignore-installed",
                   "--progress-bar=off", *args]
        if "source" not in self.flags:
            command.append("--only-binary=:all:")
        if "offline" in self.flags:
            command.append("--no-index")
        for links in sorted(glob.glob(HERE + "/links/*")):
            command.append("--find-links=" + links)
        env = dict(os.environ, PYTHONPATH=PIP, PIP_CONFIG_FILE=WORK + "/pip.conf",
                   PIP_CACHE_DIR=WORK + "/cache", TMPDIR=WORK + "/tmp")
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # pip starts itself again to build from source
        error = ""
        with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace") as process:
            for line in process.stdout:
                self.progress.log(line)
                if line.startswith("ERROR: "):
                    error = line[7:].strip()
                yield line
        if process.returncode:
            raise Failure(error or "pip failed")

    # ---- steps

    def header(self):
        digest = hashlib.sha256(self.requirements.encode()).hexdigest()
        return "# vial lock: %s %s, requirements %s" % (
            sys.implementation.cache_tag, sysconfig.get_platform(), digest)

    def given_lock(self):
        """The lock to follow, one line per package; None: resolve the requirements."""
        if "locked" in self.flags:
            return parse_lock(read("requirements.lock"))
        if "fitting" in self.flags:
            text = read("requirements.lock")
            if text.split("\n", 1)[0] == self.header():
                return parse_lock(text)
            self.progress.log("the lock is for other requirements or another Python; resolving")
        return None

    def reported_lock(self, report):
        """What pip says it has installed, as a lock."""
        lines = {}
        for item in report["install"]:
            name, version = item["metadata"]["name"], item["metadata"]["version"]
            if item["is_direct"]:
                raise Failure("%s is given by an address; name a version, so that it can be locked"
                              % name)
            digest = self.digest(item["download_info"])
            lines[canonical(name)] = "%s==%s%s" % (
                canonical(name), version, digest and " --hash=sha256:" + digest)
        return [lines[name] for name in sorted(lines)]

    @staticmethod
    def digest(download):
        archive, url = download.get("archive_info", {}), download["url"]
        if "sha256" in archive.get("hashes", {}):
            return archive["hashes"]["sha256"]
        if archive.get("hash", "").startswith("sha256="):
            return archive["hash"][7:]
        if url.startswith("file://%s/links/" % HERE):
            with open(url[7:], "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()
        return ""

    def install(self, lock):
        """Install, and return the lock of what was installed."""
        report, site = WORK + "/report.json", self.site()
        args = ["--no-compile", "--no-warn-script-location", "--report", report, "-r"]
        if lock is None:
            step, total = "resolve", 0
            args.append("requirements.txt")
        else:
            step, total = "download", len(lock)
            options = [line for line in self.requirements.splitlines() if line.startswith("-")]
            with open(WORK + "/install.txt", "w", encoding="utf-8") as file:
                file.write("\n".join(options + lock) + "\n")
            args += [WORK + "/install.txt", "--no-deps"]
            if lock and all("--hash=" in line for line in lock):
                args.append("--require-hashes")

        def installed():
            done = sorted((entry.stat().st_mtime, entry.name) for entry in os.scandir(site)
                          if entry.name.endswith(".dist-info"))
            return len(done), done[-1][1].split("-")[0] if done else ""

        seen = 0
        self.progress.show(step, 0, total)
        for line in self.pip(*args):
            if collected(line):
                seen += 1
                self.progress.show(step, seen, total, collected(line))
            elif line.startswith("Installing collected packages"):
                self.progress.show("install", 0, line.count(",") + 1, count=installed)
        done, last = installed()
        self.progress.show("install", done, done, last)
        if lock is None:
            lock = self.reported_lock(json.loads(read(report)))
        self.verify(site, lock)
        return lock

    @staticmethod
    def verify(site, wanted):
        expected = {line.split()[0] for line in wanted}
        found = {"%s==%s" % (canonical(dist.metadata["Name"]), dist.version)
                 for dist in importlib.metadata.distributions(path=[site])}
        if found != expected:
            raise Failure("installed is not what was locked: " +
                          ", ".join(sorted(found ^ expected)[:8]))

    def site(self):
        return sysconfig.get_path("purelib", "venv" if "venv" in sysconfig.get_scheme_names()
                                  else "posix_prefix", {"base": self.venv, "platbase": self.venv})

    def compile(self):
        """Bytecode beside every module: nobody can write it later."""
        site = self.site()
        parts = sorted(os.path.join(site, name) for name in os.listdir(site)
                       if not name.endswith((".dist-info", ".so", ".libs")))
        with concurrent.futures.ProcessPoolExecutor() as pool:
            futures = {pool.submit(compile_part, part): part for part in parts}
            for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
                future.result()
                self.progress.show("compile", done, len(parts), os.path.basename(futures[future]))

    def run(self):
        os.umask(0o022)
        os.mkdir(WORK + "/tmp")
        version = self.unpack_pip()
        self.configure()
        # The interpreter by the name of its version: another one is not found by accident.
        subprocess.run([os.path.realpath(sys.executable), "-I", "-m", "venv", "--without-pip",
                        self.venv],
                       check=True)
        lock = self.install(self.given_lock())
        self.compile()
        with open("requirements.lock", "w", encoding="utf-8") as file:
            file.write("\n".join([self.header(), *lock, ""]))
        self.progress.show("=with", 0, 0, "Python %s, pip %s" % (sys.version.split()[0], version))


def compile_part(path):
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    if os.path.isdir(path):
        compileall.compile_dir(path, quiet=2, force=True, invalidation_mode=mode)
    elif path.endswith(".py"):
        compileall.compile_file(path, quiet=2, force=True, invalidation_mode=mode)


if __name__ == "__main__":
    build = Build(sys.argv[1], set(sys.argv[2:]))
    try:
        build.run()
    except Failure as failure:
        build.progress.write("failed", 0, 0, str(failure))
        sys.exit(1)
