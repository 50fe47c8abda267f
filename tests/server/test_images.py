"""Environments that are made of container images: pools, sessions, and the facades' `image`."""
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import daemon

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../cli"), os.path.join(HERE, "../../sdk/python/src")]

import images  # noqa: E402
import vial  # noqa: E402
from vial.agentfly import PythonSandboxEnv  # noqa: E402
from vial.claw import CodeSandbox  # noqa: E402


class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        below = "/var/lib" if os.path.realpath(daemon.VIAL).startswith(("/tmp/", "/var/tmp/")) \
            else os.path.dirname(daemon.VIAL)
        cls.state = tempfile.mkdtemp(prefix="vial-test-", dir=below)
        cls.addClassCleanup(shutil.rmtree, cls.state)
        os.chmod(cls.state, 0o755)
        cls.config = os.path.join(cls.state, "vial.yaml")
        with open(cls.config, "w", encoding="utf-8") as file:
            file.write("environments: %s/environments\n" % cls.state)
        layers = [images.python().bytes()]
        cls.build("warm", layers, "python:test", images.config(layers))
        cls.build("cold", layers, "python:cold", images.config(
            layers, Env=["PATH=/usr/local/bin", "PYTHONPATH=/usr/lib", "GREETING=hello"]))
        layers = [images.busybox().bytes()]
        cls.build("box", layers, "example.org/box:1", images.config(layers))
        cls.daemon = daemon.Daemon("--config", cls.config, "--armed", "1")
        cls.addClassCleanup(cls.daemon.close)

    @classmethod
    def build(cls, name, layers, tag, about):
        source = images.saved(os.path.join(cls.state, "image.tar"), layers, tag=tag, about=about)
        subprocess.run([daemon.VIAL, "env", "build", "--config", cls.config, "--image", source, name],
                       check=True, stdout=subprocess.DEVNULL)

    def run_in(self, environment, code):
        status, answer, _ = self.daemon.ask("POST", "/v1/runs", {"environment": environment,
                                                                 "code": code})
        self.assertEqual(status, 200, answer)
        return answer["result"]

    def test_they_are_listed_with_their_references(self):
        _, answer, _ = self.daemon.ask("GET", "/v1/environments")
        found = {item["name"]: (item["image"], item["warmth"]) for item in answer["environments"]}
        self.assertEqual(found["warm"], ("python:test", "fork"))
        self.assertEqual(found["cold"], ("python:cold", "cold"))
        self.assertEqual(found["box"], ("example.org/box:1", "cold"))
        self.assertIsNone(found["python"][0])

    def test_runs_by_reference_and_by_name(self):
        code = "import os, sys; print(sys.executable, os.environ['GREETING'], os.path.exists('/usr/bin'))"
        for name in ("warm", "python:test", "docker.io/library/python:test", "python:cold"):
            with self.subTest(name):
                self.assertEqual(self.run_in(name, code)["stdout"],
                                 "/usr/local/bin/python3 hello False\n")
        self.assertEqual(self.run_in("box", "echo $GREETING; ls /bin | head -n 1 || ls")["exit_code"], 0)

    def test_sessions_keep_their_state(self):
        client = vial.Sandbox(self.daemon.path)
        for name in ("python:test", "python:cold"):
            with self.subTest(name), client.session(environment=name) as session:
                session.run("x = 41")
                self.assertEqual(session.run("x + 1").value, 42)

    def test_an_unknown_image_says_how_to_have_it(self):
        status, answer, _ = self.daemon.ask("POST", "/v1/runs", {"environment": "python:9",
                                                                 "code": "1"})
        self.assertEqual((status, answer["error"]["field"]), (400, "environment"))
        self.assertIn("made of the image 'python:9'", answer["error"]["message"])
        self.assertIn("vial env build NAME --image", answer["error"]["hint"])

    def test_the_image_of_python_sandbox_env(self):
        async def ask(image):
            client = vial.AsyncSandbox(self.daemon.path)
            env = PythonSandboxEnv(image=image, client=client) if image else \
                PythonSandboxEnv(client=client)
            try:
                await env.start()
                await env.reset()
                return await env.step("import sys; print(sys.executable)")
            finally:
                await env.aclose()

        self.assertEqual(asyncio.run(ask("python:test")), "/usr/local/bin/python3\n")
        self.assertNotEqual(asyncio.run(ask(None)), "/usr/local/bin/python3\n")
        with self.assertRaisesRegex(RuntimeError, "vial env build NAME --image"):
            asyncio.run(ask("python:9"))

    def test_the_images_of_code_sandbox(self):
        client = vial.Sandbox(self.daemon.path)
        sandbox = CodeSandbox(client=client)
        sandbox.LANGUAGE_CONFIGS = {
            **sandbox.LANGUAGE_CONFIGS,
            "ours": {"image": "python:test", "extension": ".py", "runtime_name": "ours"},
            "nobodys": {"image": "python:9", "extension": ".py", "runtime_name": "nobody's"}}
        code = "import sys; print(sys.executable)"
        self.assertEqual(sandbox.execute(code, "ours").stdout, "/usr/local/bin/python3\n")
        self.assertTrue(sandbox.execute(code, "python").success)
        self.assertIn("vial env build NAME --image",
                      sandbox.execute(code, "nobodys").error_message)
