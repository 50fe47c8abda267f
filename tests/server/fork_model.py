"""fork_model - random families of sessions, and what each must be: its own steps in a fresh one.

A sequence does good steps, bad ends, forks, forks of forks and ends, each to somebody of the family
at random.  The model of each is the list of steps that made it: a fork copies the list, a loss
empties it.  At the end a fresh session that never was forked runs each list, and both are asked
what they are.
"""
from rewind_model import BAD, LOOK, SEED, good_step

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
        self.members = [Member(case.open())]
        self.story = []  # what was done, for whoever has to find out
        self.begin(self.members[0])

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
        made = [Member(name, member.done)
                for name in self.case.fork(member.session, count, deterministic=alike)]
        self.members += made
        for one in () if alike else (member, *made):
            self.good(one, "random.seed(%d)" % self.rng.randrange(1000))

    def end(self, member, number):
        if len(self.members) > 1:
            self.story.append((self.members.index(member), "end"))
            self.members.remove(member)
            self.close(member.session)

    def close(self, session):
        self.case.daemon.ask("DELETE", "/v1/sessions/" + session)

    def do(self, number):
        kind = self.rng.choices(["good", "bad", "fork", "end"], [10, 1, 4, 1])[0]
        member = self.rng.choice(self.members)
        if kind == "good":
            make = self.rng.choice((good_step, good_step, more_step))
            self.good(member, make(self.rng, number))
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
