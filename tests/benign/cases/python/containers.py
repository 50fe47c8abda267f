# heapq, bisect, collections, itertools, functools at work.
import bisect
import functools
import heapq
import itertools
import operator
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple

graph = {"a": {"b": 7, "c": 3}, "b": {"d": 2}, "c": {"b": 1, "d": 8}, "d": {}}


def shortest(start):
    found, queue = {}, [(0, start)]
    while queue:
        distance, node = heapq.heappop(queue)
        if node not in found:
            found[node] = distance
            for other, length in graph[node].items():
                heapq.heappush(queue, (distance + length, other))
    return found


@functools.lru_cache(maxsize=None)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


print(shortest("a"), heapq.nlargest(3, [5, 1, 9, 7]), list(heapq.merge([1, 4], [2, 3])))
print(fibonacci(90), fibonacci.cache_info())
print(bisect.bisect([10, 20, 30], 20), Counter("mississippi").most_common(2))
print(list(itertools.accumulate([1, 2, 3, 4], operator.mul)), list(itertools.pairwise("abcd")))
print([(k, "".join(g)) for k, g in itertools.groupby("aabccc")], len(list(itertools.permutations(range(5)))))
ring = deque([1, 2, 3], maxlen=3)
ring.append(4)
ring.rotate(1)
print(ring, ChainMap({"x": 1}, {"x": 2, "y": 3})["y"], namedtuple("P", "x y")(1, 2))
groups = defaultdict(list)
for word in "one two three four five".split():
    groups[len(word)].append(word)
order = OrderedDict(groups)
order.move_to_end(3)
print(dict(order), functools.reduce(operator.xor, range(20)))
