"""image - container images made of this host's own files, since no registry is needed then.

An archive as `docker save` writes it, which containerd imports."""
import hashlib
import io
import json
import os
import re
import subprocess
import tarfile

PAUSE = "vial.test/pause:1"
WORKER = "vial.test/worker:1"


def add_bytes(tar, name, data, mode=0o644):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    tar.addfile(info, io.BytesIO(data))


def pack(path, reference, layer, command):
    """One layer, one command."""
    config = {"architecture": "amd64", "os": "linux", "config": {"Entrypoint": command, "Env": []},
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
              "history": []}
    text = json.dumps(config).encode()
    name = hashlib.sha256(text).hexdigest() + ".json"
    with tarfile.open(path, "w") as tar:
        add_bytes(tar, name, text)
        add_bytes(tar, "layer.tar", layer)
        add_bytes(tar, "manifest.json", json.dumps(
            [{"Config": name, "RepoTags": [reference], "Layers": ["layer.tar"]}]).encode())


def libraries(program):
    """What the loader would map for it, by path."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", listed)


def make_pause(directory):
    """What holds a pod's namespaces: a program that waits."""
    program = os.path.join(directory, "pause")
    subprocess.run(["cc", "-static", "-Os", "-xc", "-", "-o", program], check=True,
                   input=b"#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add(program, "pause")
    path = os.path.join(directory, "pause.tar")
    pack(path, PAUSE, layer.getvalue(), ["/pause"])
    return path


def make_worker(directory, vial):
    """vial as it was built here, Python, a shell, and the libraries of all that."""
    built = os.path.dirname(vial)
    programs = {os.path.join(built, name): "usr/local/bin/" + name
                for name in ("vial", "vial-server", "vial-egress", "vial-dispatch")
                if os.path.exists(os.path.join(built, name))}
    python = os.path.realpath("/usr/bin/python3")
    programs.update({python: "usr/bin/" + os.path.basename(python), "/bin/dash": "usr/bin/sh",
                     "/bin/bash": "usr/bin/bash", "/usr/bin/env": "usr/bin/env"})
    library = "/usr/lib/" + os.path.basename(python)
    modules = [os.path.join(library, "lib-dynload", name) for name in os.listdir(library + "/lib-dynload")]
    needed = {path for program in [*programs, *modules] for path in libraries(program)}
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for name in ("usr", "usr/bin", "usr/lib", "usr/local", "usr/local/bin", "etc", "tmp", "proc", "sys", "dev", "run",
                     "home", "home/codemie", "etc/vial", "etc/vial/relay", "sandbox", "var", "var/lib"):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        for name, target in (("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib"), ("sbin", "usr/bin"),
                             ("usr/lib64", "lib"), ("usr/bin/python3", os.path.basename(python))):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
        add_bytes(tar, "etc/passwd", b"root:x:0:0::/:/bin/sh\nvial:x:1001:1001::/home/codemie:/bin/sh\n")
        add_bytes(tar, "etc/group", b"root:x:0:\nvial:x:1001:\n")
        for path, name in programs.items():
            tar.add(os.path.realpath(path), name)
        for path in needed:
            real = os.path.realpath(path)
            tar.add(real, re.sub("^/(usr/)?lib(64)?/", "usr/lib/", path))
        tar.add(library, "usr/lib/" + os.path.basename(python),
                filter=lambda item: None if re.search("/(test|dist-packages|__pycache__|idlelib|config-3)", item.name)
                else item)
    path = os.path.join(directory, "worker.tar")
    pack(path, WORKER, layer.getvalue(), ["/usr/local/bin/vial", "serve"])
    return path
