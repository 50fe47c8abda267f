"""image - container images without a registry: the one of `make image`, and what holds a pod's namespaces.

An archive as `docker save` writes it, which containerd imports."""
import hashlib
import io
import json
import os
import subprocess
import tarfile

PAUSE = "vial.test/pause:1"
WORKER = "vial:latest"
ARCHIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/image/vial.tar")  # of `make image`


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
