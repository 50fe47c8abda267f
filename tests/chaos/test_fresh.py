"""What is random in a program is so in each run, also where all are forks of one interpreter."""
import json
import threading
import unittest

from chaos import Daemon, run_of

RUNS = 200
AT_ONCE = 4

PROGRAMS = {
    "python": """
import json, multiprocessing.process, os, random, secrets, ssl, tempfile, uuid
from email.utils import make_msgid
print(json.dumps({
    "random": random.random(), "Random()": random.Random().random(), "shuffle": random.sample(range(10**9), 3),
    "SystemRandom": random.SystemRandom().random(), "uuid1": str(uuid.uuid1()), "uuid4": str(uuid.uuid4()),
    "urandom": os.urandom(8).hex(), "secrets": secrets.token_hex(8), "choice": secrets.randbelow(10**18),
    "ssl": ssl.RAND_bytes(8).hex(), "mkdtemp": tempfile.mkdtemp(), "mkstemp": tempfile.mkstemp()[1],
    "NamedTemporaryFile": tempfile.NamedTemporaryFile().name, "message": make_msgid(),
    "authkey": bytes(multiprocessing.process.current_process().authkey).hex(),
    "state": hash(random.getstate()[1])}))
""",
    "numpy": """
import json, numpy, random
print(json.dumps({
    "rand": numpy.random.rand(), "randint": int(numpy.random.randint(10**18)), "random": random.random(),
    "default_rng": numpy.random.default_rng().random(), "RandomState": numpy.random.RandomState().rand(),
    "permutation": numpy.random.permutation(100).tolist(), "state": numpy.random.get_state()[1].tolist()}))
""",
    "ruby": """
require 'json'; require 'securerandom'; require 'tempfile'
puts JSON.generate({rand: rand, Random: Random.new.rand, seed: Random.new_seed, srand: srand,
                    shuffle: (1..50).to_a.shuffle, secure: SecureRandom.hex, uuid: SecureRandom.uuid,
                    bytes: Random.bytes(8).unpack1('H*'), tempfile: Tempfile.new.path})
""",
    "javascript": """
const crypto = require('crypto'), fs = require('fs')
console.log(JSON.stringify({random: Math.random(), uuid: crypto.randomUUID(), int: crypto.randomInt(2 ** 47),
    bytes: crypto.randomBytes(8).toString('hex'), dir: fs.mkdtempSync('/tmp/x'),
    values: crypto.getRandomValues(new Uint32Array(2)).join()}))
""",
    "bash": """echo "{\\"random\\": [$RANDOM, $RANDOM, $RANDOM], \\"dir\\": \\"$(mktemp -d)\\"}" """,
}


class Fresh(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("--listen", "none")
        cls.rows = cls.daemon.ask("GET", "/v1/environments")[1]["environments"]

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close()

    def ask(self, request, answers):
        connection = self.daemon.connect()
        for _ in range(RUNS // AT_ONCE):
            answers.append(self.daemon.ask("POST", "/v1/runs", request, connection=connection)[1])
        connection.close()

    def check(self, request):
        answers = []
        threads = [threading.Thread(target=self.ask, args=(request, answers)) for _ in range(AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(answers), RUNS)
        values = {}
        for answer in answers:
            result = answer.get("result") or self.fail(answer)
            self.assertEqual((result["stderr"], result["exit_code"]), ("", 0))
            for name, value in json.loads(result["stdout"]).items():
                values.setdefault(name, []).append(json.dumps(value))
        for name, found in values.items():
            self.assertEqual(len(set(found)), RUNS, name)

    def check_language(self, name):
        if name not in {row["name"] for row in self.rows}:
            self.skipTest(name + " is not installed")
        self.check(run_of(PROGRAMS[name], name))

    def test_python(self):
        self.check_language("python")

    def test_ruby(self):
        self.check_language("ruby")

    def test_node(self):
        self.check_language("javascript")

    def test_bash(self):
        self.check_language("bash")

    def test_numpy(self):
        names = {row["name"] for row in self.rows}
        for name in ("python-data", "python-data-small"):
            if name in names:
                self.check({"environment": name, "code": PROGRAMS["numpy"]})
                return
        self.skipTest("there is no environment with numpy (vial env build)")
