"""rewind_model - random sessions with rewind, and what they must be: the same steps in fresh ones.

A sequence does good steps, bad ends, undos, checkpoints and restores.  The model is the list of
steps that count: an undo shortens it, a restore is the list of then.  At the end a fresh session
without rewind runs that list, and both are asked what they are.
"""
import os
import random

SEED = ("import os, random, zlib\nlog, store, total = [], {}, 0\nclass Node: pass\nnode = Node()\n"
        "random.seed(%d)")
LOOK = r"""
def look():
    found = {}
    for root, dirs, names in os.walk('.'):
        for name in dirs + names:
            path = os.path.join(root, name)
            status = os.lstat(path)
            found[path] = [oct(status.st_mode), os.readlink(path) if os.path.islink(path) else
                           open(path).read() if os.path.isfile(path) else None]
    return [log, store, total, sorted(vars(node).items()), random.random(), os.getcwd(), found]
look()"""
BAD = ("os._exit(3)", "os.abort()", "raise SystemExit(4)", "os.kill(os.getpid(), 9)",
       "import ctypes; ctypes.string_at(0)", "os.fork() or os._exit(0); os._exit(5)")
NAMES = "abc"


def play(case, model, name, count, seed, steps):
    """NAME_SEQUENCES of a model, drawn from NAME_SEED, each of so many steps."""
    count = int(os.environ.get(name + "_SEQUENCES", count))
    seed = int(os.environ.get(name + "_SEED", seed))
    for number in range(count):
        rng = random.Random(seed * 1000003 + number)
        with case.subTest(sequence=number, seed=seed):
            model(case, rng).run(rng.randrange(*steps))
        if number % 50 == 49:
            print("# %d sequences" % (number + 1), flush=True)


def good_step(rng, number):
    """Code that changes what a look will show."""
    name = rng.choice(NAMES)
    kinds = [
        "log.append(%d)" % number,
        "store[%r] = [random.random() for _ in range(%d)]" % (name, rng.randrange(1, 50)),
        "total += sum(range(%d)); node.%s = total" % (number + 5, name),
        "store.clear(); store['junk'] = 'x' * %d" % rng.randrange(1, 1 << 18),
        "open(%r, 'a').write('%d' * %d)" % (name, number, rng.randrange(1, 2000)),
        "open(%r, 'w').write('%04d')" % (name, number),
        "os.path.lexists(%r) and not os.path.isdir(%r) and os.unlink(%r)" % (name, name, name),
        "os.makedirs('d/%s', exist_ok=True); open('d/%s/f', 'w').write('%d')" % (name, name, number),
        "import shutil; shutil.rmtree('d', ignore_errors=True)",
        "open('d.%s', 'w').write('%d')" % (name, number),
        "os.path.isfile(%r) and os.chmod(%r, 0o%d)" % (name, name, rng.choice((600, 644, 755))),
        "os.path.lexists('link') and os.unlink('link'); os.symlink('to%d', 'link')" % number,
        "os.path.isfile(%r) and os.replace(%r, 'moved')" % (name, name),
        "log.append(random.random())\n1 / 0",
        "def f%d(): return %d\nlog.append(f%d())" % (number, number, number),
    ]
    return rng.choice(kinds)


class Sequence:
    """`step`, `undo`, `checkpoint`, `restore` and `open` are the caller's: see test_rewind.py."""

    def __init__(self, case, rng):
        self.case, self.rng = case, rng
        self.undo_max = rng.randrange(1, 5)
        self.session = case.open(rewind={"undo": self.undo_max})
        self.done = []     # the steps that count
        self.undos = 0     # how many of them can be taken back
        self.kept = {}     # checkpoints: the steps that counted then
        self.story = []    # what was done, for whoever has to find out
        self.good(SEED % rng.randrange(1000))
        for _ in range(self.undo_max):  # so that what all steps need cannot be undone
            self.good("log.append(None)")

    def good(self, code):
        self.story.append(code)
        self.case.assertEqual(self.case.step(self.session, code)["state"], "kept", self.story)
        self.done.append(code)
        self.undos = min(self.undos + 1, self.undo_max)

    def bad(self, number):
        code = good_step(self.rng, number) + "\n" + self.rng.choice(BAD)
        if "1 / 0" in code:
            return
        self.story.append(code)
        result = self.case.step(self.session, code)
        self.case.assertEqual((result["state"], result["files"]), ("rolled_back", "rolled_back"),
                              self.story)

    def undo(self):
        steps = self.rng.randrange(1, 4)
        self.story.append("undo %d" % steps)
        result = self.case.undo(self.session, steps)
        can = steps <= self.undos
        self.case.assertEqual(result["state"], "rolled_back" if can else "kept", self.story)
        if can:
            del self.done[-steps:]
            self.undos -= steps

    def checkpoint(self):
        name = self.rng.choice(NAMES)
        self.story.append("checkpoint " + name)
        self.case.checkpoint(self.session, name)
        self.kept[name] = list(self.done)

    def restore(self):
        if not self.kept:
            return
        name = self.rng.choice(sorted(self.kept))
        self.story.append("restore " + name)
        self.case.assertEqual(self.case.restore(self.session, name)[0], 200, self.story)
        self.done = list(self.kept[name])
        self.undos = 0

    def run(self, length):
        for number in range(length):
            kind = self.rng.choices(["good", "bad", "undo", "checkpoint", "restore"],
                                    [10, 4, 3, 2, 2])[0]
            if kind == "good":
                self.good(good_step(self.rng, number))
            elif kind == "bad":
                self.bad(number)
            else:
                getattr(self, kind)()
        fresh = self.case.open()
        for code in self.done:
            self.case.step(fresh, code)
        self.case.assertEqual(self.case.value(self.session, LOOK), self.case.value(fresh, LOOK),
                              self.story)
        for session in (fresh, self.session):
            self.case.daemon.ask("DELETE", "/v1/sessions/" + session)
