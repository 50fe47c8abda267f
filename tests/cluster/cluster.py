"""cluster - what tests of one control plane share."""
import itertools
import os
import unittest

import agent
import drive
import plane as planes
import proxy

PLANE = None  # set by `run`
numbers = itertools.count(1)


class Case(unittest.TestCase):
    """A namespace of its own, and a proxy before the API server."""

    def setUp(self):
        self.plane = PLANE
        self.space = "space-%d" % next(numbers)
        self.plane.make_namespace(self.space)
        self.addCleanup(self.remove_space)
        # The strictest of the cluster's own checks holds for every pod of ours.
        self.plane.patch("/api/v1/namespaces/" + self.space, {
            "metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
        self.proxy = proxy.Proxy(self.plane.port)
        self.addCleanup(self.proxy.close)
        self.token_path = self.plane.path(self.space + ".token")
        self.put_token(self.plane.token(self.space))
        self.config = self.plane.write_kubeconfig(self.space + ".conf", None, self.proxy.url, self.token_path)

    def put_token(self, token):
        with open(self.token_path + ".new", "w", encoding="ascii") as file:
            file.write(token)
        os.rename(self.token_path + ".new", self.token_path)

    def remove_space(self):
        for name in self.pods():
            try:
                self.plane.ask("DELETE", self.path(name), {"gracePeriodSeconds": 0})
            except planes.Refused:
                pass
        self.plane.ask("DELETE", "/api/v1/namespaces/" + self.space)

    def path(self, *names):
        return "/".join(("/api/v1/namespaces", self.space, "pods", *names))

    def pods(self):
        return self.plane.pods(self.space)

    def settings(self, **more):
        return {"VIAL_KUBERNETES_NAMESPACE": self.space,
                "VIAL_KUBERNETES_CONFIG": self.config, "VIAL_DRAIN_GRACE": "1s",
                "VIAL_KUBERNETES_RELAY_SECRET": "relay", **more}

    def drive(self, **more):
        made = drive.Drive(self.settings(**more))
        self.addCleanup(made.process.stdout.close)
        self.addCleanup(made.process.wait)
        self.addCleanup(made.process.kill)
        made.wait("synced")
        return made

    def node(self, vial=None):
        made = agent.Agent(self.plane, vial)
        self.addCleanup(made.close)
        return made
