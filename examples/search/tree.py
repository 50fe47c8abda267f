"""A tree search over live sessions: each node is a session, each try a fork of one.

The sine shall be a sum of few powers of x.  The beginning, data and what works on it, is run once.
A node's ways on are tried in forks of it, each in a sandbox of its own with all that the node
had; the best live on, the others are closed.  docs/FORKS.md walks through it.
"""
import os

import vial

PREPARE = """
import math
points = [(x / 50, math.sin(x / 50)) for x in range(-100, 101)]
powers = []

def solve(rows):                       # Gauss and Jordan
    for i in range(len(rows)):
        best = max(range(i, len(rows)), key=lambda k: abs(rows[k][i]))
        rows[i], rows[best] = rows[best], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(len(rows)):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i])]
    return [row[-1] for row in rows]

def error(powers):                     # of the best sum of these powers
    rows = [[sum(x ** (p + q) for x, _ in points) for q in powers] +
            [sum(y * x ** p for x, y in points)] for p in powers]
    factors = solve(rows)
    return max(abs(y - sum(f * x ** p for f, p in zip(factors, powers))) for x, y in points)
"""
WAYS = range(8)  # a power to add
WIDTH, DEPTH = 2, 3


def expand(node):
    """Every way on from a node, each in a branch of its own: [(error, powers, session)]."""
    tried = []
    for way, branch in zip(WAYS, node.fork(len(WAYS))):
        found = branch.run("powers.append(%d); [error(powers), powers]" % way)
        if found.value:
            tried.append((*found.value, branch))
        else:  # a dead end: here, the same power twice
            branch.close()
    return tried


def search(root):
    level = [(None, [], root)]
    for _ in range(DEPTH):
        tried = [one for _, _, node in level for one in expand(node)]
        for _, _, node in level:
            node.close()
        tried.sort(key=lambda one: one[:2])
        for _, _, node in tried[WIDTH:]:
            node.close()
        level = tried[:WIDTH]
        print("the best of %d: powers %s, error %.5f" % (len(tried), level[0][1], level[0][0]))
    for _, _, node in level:
        node.close()


sandbox = vial.Sandbox(os.environ.get("SANDBOX_URL"))
with sandbox.session() as first:
    first.run(PREPARE)
    search(first)
# prints:
# the best of 8: powers [1], error 0.39097
# the best of 14: powers [1, 3], error 0.02678
# the best of 12: powers [1, 3, 5], error 0.00074
