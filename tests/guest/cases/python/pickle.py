import pickle, dataclasses, copy
@dataclasses.dataclass
class P:
    x: int
    y: list = dataclasses.field(default_factory=list)
p = P(1, [2])
d = pickle.dumps(p)
print(pickle.loads(d) == p, P.__module__, P.__qualname__, repr(p), b'__main__' in d, copy.deepcopy(p))
