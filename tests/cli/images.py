"""Container images, made here: what `docker save` writes, OCI layouts, and such as nobody should write."""
import gzip
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import tarfile

ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Layer:
    """A tar, entry by entry."""

    def __init__(self):
        self._bytes = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._bytes, mode="w", format=tarfile.PAX_FORMAT)

    def add(self, name, data=b"", mode=0o644, kind=tarfile.REGTYPE, link="", **more):
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.type, info.linkname = len(data), mode, kind, link
        info.mtime = 1600000000
        for key, value in more.items():
            setattr(info, key, value)
        self._tar.addfile(info, io.BytesIO(data))
        return self

    def dir(self, name):
        return self.add(name, mode=0o755, kind=tarfile.DIRTYPE)

    def link(self, name, target):
        return self.add(name, kind=tarfile.SYMTYPE, link=target)

    def hard(self, name, target):
        return self.add(name, kind=tarfile.LNKTYPE, link=target)

    def copy(self, path, name=None):
        """A file or a tree of this machine; links become what they lead to."""
        name = name or path.lstrip("/")
        if os.path.isdir(path):
            for entry in sorted(os.listdir(path)):
                if entry not in ("__pycache__", "test", "idlelib", "ensurepip", "lib2to3") \
                        and not entry.startswith("config-"):
                    self.copy(os.path.join(path, entry), name + "/" + entry)
        elif os.path.isfile(path):
            with open(path, "rb") as file:
                self.add(name, file.read(), mode=0o755 if os.access(path, os.X_OK) else 0o644)
        return self

    def bytes(self):
        self._tar.close()
        return self._bytes.getvalue()


def busybox():
    """A root that has a shell, and nothing else."""
    return (Layer().dir("bin").copy("/bin/busybox", "bin/busybox").link("bin/sh", "busybox")
            .link("bin/cat", "busybox").link("bin/ls", "busybox").link("bin/id", "busybox")
            .link("bin/stat", "busybox").link("bin/test", "busybox").link("bin/echo", "busybox"))


def python():
    """A root that has this machine's Python, its library, and nothing else."""
    tool = os.path.realpath("/usr/bin/python3")
    version = re.search(r"python(3\.\d+)$", tool).group(1)
    layer = Layer().copy(tool, "usr/local/bin/python3").copy("/usr/lib/python" + version)
    modules = "/usr/lib/python%s/lib-dynload" % version
    needed = [tool] + [os.path.join(modules, name) for name in os.listdir(modules)]
    said = subprocess.run(["ldd"] + needed, stdout=subprocess.PIPE, check=False).stdout.decode()
    for path in sorted(set(re.findall(r"(/[^ ]+) \(0x", said))):
        layer.copy(path)
    return layer


def config(layers, **more):
    about = {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "GREETING=hello"], "WorkingDir": "/app"}
    about.update(more)
    return json.dumps({"os": "linux", "architecture": ARCH, "config": about, "rootfs": {
        "type": "layers", "diff_ids": [digest(layer) for layer in layers]}}).encode()


def saved(path, layers, tag="test/image:1", about=None, manifest=None):
    """What `docker save` writes, into a tar."""
    about = about or config(layers)
    names = ["%d/layer.tar" % number for number in range(len(layers))]
    name = digest(about)[7:] + ".json"
    manifest = manifest or [{"Config": name, "RepoTags": [tag] if tag else None, "Layers": names}]
    with tarfile.open(path, "w") as tar:
        for file, data in [*zip(names, layers), (name, about),
                           ("manifest.json", json.dumps(manifest).encode())]:
            info = tarfile.TarInfo(file)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


class Layout:
    """An OCI layout, as a directory."""

    def __init__(self, path):
        self.path = path
        self.manifests = []
        os.makedirs(os.path.join(path, "blobs/sha256"))
        self.put("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')

    def put(self, name, data):
        with open(os.path.join(self.path, name), "wb") as file:
            file.write(data)

    def blob(self, data, media):
        self.put("blobs/sha256/" + digest(data)[7:], data)
        return {"mediaType": media, "digest": digest(data), "size": len(data)}

    def image(self, layers, pack=gzip.compress, media=LAYER + "+gzip", about=None):
        """A manifest, as a descriptor."""
        parts = [self.blob(pack(layer), media) for layer in layers]
        about = self.blob(about or config(layers), "application/vnd.oci.image.config.v1+json")
        return self.blob(json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": about,
                                     "layers": parts}).encode(), MANIFEST)

    def index(self, descriptors):
        return self.blob(json.dumps({"schemaVersion": 2, "manifests": descriptors}).encode(), INDEX)

    def finish(self, *descriptors):
        self.put("index.json", json.dumps({"schemaVersion": 2,
                                           "manifests": list(descriptors)}).encode())
        return self.path


def for_platform(descriptor, arch=ARCH):
    return {**descriptor, "platform": {"os": "linux", "architecture": arch}}


def named(descriptor, name):
    return {**descriptor, "annotations": {"org.opencontainers.image.ref.name": name}}
