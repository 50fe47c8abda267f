"""fork_model - random families of sessions, and what each must be: its own steps in a fresh one.

A sequence does good steps, bad ends, forks, forks of forks and ends, each to somebody of the family
at random.  The model of each is the list of steps that made it: a fork copies the list, a loss
empties it.  At the end a fresh session that never was forked runs each list, and both are asked
what they are.

In a family that is rewound bad ends change nothing; undos, checkpoints and restores are done as well,
and what they know ends with a fork.
"""
from rewind_model import BAD, LOOK, NAMES, SEED, good_step

FAMILY_MAX = 7
BRANCHES_MAX = 3
# What a fork carries over and a rewind does not take back.
MORE_LOOK = LOOK + r"""
[look(), os.path.exists('/tmp/t') and open('/tmp/t').read(),
 [held.name, held.tell(), held.mode, held.closed] if 'held' in globals() else None]"""


def more_step(rng, number):
    """Code about what the two have not in common."""
    return rng.choice([
        "open('/tmp/t', 'a').write('%d ')" % number,
        "held = open('held', 'a+'); held.write('%d ' * %d); held.flush()" % (number, rng.randrange(9)),
        "'held' in globals() and (held.write('again %d '), held.flush())" % number,
        "'held' in globals() and held.seek(0) and held.read()",
        "junk = bytearray(%d << 20); del junk" % rng.randrange(1, 40),
        "import collections, json; log.append(json.dumps(collections.Counter('%d')))" % number,
    ])


class Member:
    def __init__(self, session, done=()):
        self.session = session
        self.done = list(done)  # the steps that made it


class Family:
    """`step`, `value`, `fork` and `open` are the caller's: see test_fork.py."""

    def __init__(self, case, rng):
        self.case, self.rng = case, rng
        self.members = [self.first()]
        self.story = []  # what was done, for whoever has to find out
        self.begin(self.members[0])

    def first(self):
        return Member(self.case.open())

    def good(self, member, code):
        self.story.append((self.members.index(member), code))
        result = self.case.step(member.session, code)
        self.case.assertEqual(result["state"], "kept", self.story)
        self.case.assertEqual(result["fresh"], not member.done, self.story)
        member.done.append(code)

    def begin(self, member):
        self.good(member, SEED % self.rng.randrange(1000))

    def bad(self, member, number):
        """All of it is gone, and nothing of anybody else."""
        code = self.rng.choice(BAD)
        self.story.append((self.members.index(member), code))
        self.case.assertEqual(self.case.step(member.session, code)["state"], "lost", self.story)
        member.done.clear()
        self.begin(member)

    def fork(self, member, number):
        count = self.rng.randrange(1, BRANCHES_MAX + 1)
        if len(self.members) + count > FAMILY_MAX:
            return
        alike = self.rng.random() < 0.5
        self.story.append((self.members.index(member), "fork %d, alike: %s" % (count, alike)))
        made = [type(member)(name, member.done)
                for name in self.case.fork(member.session, count, deterministic=alike)]
        self.members += made
        for one in (member, *made):
            self.forked(one, alike)

    def forked(self, member, alike):
        if not alike:
            self.good(member, "random.seed(%d)" % self.rng.randrange(1000))

    def end(self, member, number):
        if len(self.members) > 1:
            self.story.append((self.members.index(member), "end"))
            self.members.remove(member)
            self.close(member.session)

    def close(self, session):
        self.case.daemon.ask("DELETE", "/v1/sessions/" + session)

    kinds = {"good": 10, "bad": 1, "fork": 4, "end": 1}
    steps = (good_step, good_step, more_step)

    def do(self, number):
        kind = self.rng.choices(list(self.kinds), list(self.kinds.values()))[0]
        member = self.rng.choice(self.members)
        if kind == "good":
            self.good(member, self.rng.choice(self.steps)(self.rng, number))
        else:
            getattr(self, kind)(member, number)

    def check(self, member):
        fresh = self.case.open()
        for code in member.done:
            self.case.step(fresh, code)
        self.case.assertEqual(self.case.value(member.session, MORE_LOOK),
                              self.case.value(fresh, MORE_LOOK), self.story)
        self.close(fresh)

    def run(self, length):
        try:
            for number in range(length):
                self.do(number)
            for member in self.members:
                self.check(member)
        finally:  # for those that come after it
            for member in self.members:
                self.close(member.session)


# In C, where no interrupt is looked at; memory that the interpreter cannot refuse.
HANG = "sum(range(10 ** 12))"
GREED = "import mmap\nm = mmap.mmap(-1, 1 << 30)\nwhile True: m.write(b'x' * (1 << 20))"


def rewound_step(rng, number):
    """One whose effects are all taken back: nothing outside of the workspace."""
    while True:
        code = more_step(rng, number)
        if "/tmp" not in code:
            return code


class Rewindable(Member):
    def __init__(self, session, done=()):
        super().__init__(session, done)
        self.forget()

    def forget(self):
        self.kept = {}  # checkpoints: the steps that counted then
        # How many of them can be taken back, at least and at most: memory may have been short.
        self.sure = self.most = 0


class Rewound(Family):
    """Needs `undo`, `checkpoint`, `checkpoints` and `restore`, too: see test_fork_rewind.py."""

    kinds = {"good": 12, "bad": 5, "undo": 4, "checkpoint": 2, "restore": 2, "fork": 4, "end": 1}
    steps = (good_step, good_step, good_step, rewound_step)

    def first(self):
        self.undo_max = self.rng.randrange(1, 5)
        return Rewindable(self.case.open(rewind={"undo": self.undo_max}, limits={"memory": "128m"}))

    def begin(self, member):
        super().begin(member)
        self.secure(member)

    def secure(self, member):
        """What was before cannot be undone: all steps need it, or nobody could do it again."""
        for _ in range(self.undo_max):
            self.good(member, "log.append(None)")

    def good(self, member, code):
        self.story.append((self.members.index(member), code))
        result = self.case.step(member.session, code)
        self.case.assertEqual((result["state"], result["rewind"]), ("kept", "ready"), self.story)
        member.done.append(code)
        member.sure, member.most = (min(n + 1, self.undo_max) for n in (member.sure, member.most))

    def bad(self, member, number):
        kind = self.rng.choices(["end", "hang", "greed"], [10, 1, 1])[0]
        before = good_step(self.rng, number)
        if "1 / 0" in before:
            return
        code = before + "\n" + {"end": self.rng.choice(BAD), "hang": HANG, "greed": GREED}[kind]
        more = {"timeout": 0.4} if kind == "hang" else {}
        self.story.append((self.members.index(member), code))
        result = self.case.step(member.session, code, **more)
        self.case.assertEqual((result["state"], result["files"]), ("rolled_back", "rolled_back"), self.story)
        if kind == "greed":  # what is old may have given way
            left = {one["name"] for one in self.case.checkpoints(member.session)}
            self.case.assertLessEqual(left, set(member.kept), self.story)
            member.kept = {name: member.kept[name] for name in left}
            member.sure = 0

    def undo(self, member, number):
        steps = self.rng.randrange(1, 4)
        self.story.append((self.members.index(member), "undo %d" % steps))
        state = self.case.undo(member.session, steps)["state"]
        if steps <= member.sure or steps > member.most:
            self.case.assertEqual(state, "rolled_back" if steps <= member.sure else "kept", self.story)
        if state == "rolled_back":
            del member.done[-steps:]
            member.sure, member.most = max(member.sure - steps, 0), member.most - steps
        else:
            member.most = min(member.most, steps - 1)

    def checkpoint(self, member, number):
        name = self.rng.choice(NAMES)
        self.story.append((self.members.index(member), "checkpoint " + name))
        self.case.checkpoint(member.session, name)
        member.kept[name] = list(member.done)

    def restore(self, member, number):
        if member.kept:
            name = self.rng.choice(sorted(member.kept))
            self.story.append((self.members.index(member), "restore " + name))
            self.case.assertEqual(self.case.restore(member.session, name)[0], 200, self.story)
            member.done = list(member.kept[name])
            member.sure = member.most = 0

    def forked(self, member, alike):
        member.forget()
        super().forked(member, alike)
        if not alike:
            self.secure(member)
