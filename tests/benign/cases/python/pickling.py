# pickle, copy and shelve: protocols, cycles, custom reduction, refusal.
import copy
import pickle
import shelve
from dataclasses import dataclass, field


@dataclass
class Node:
    name: str
    children: list = field(default_factory=list)
    parent: object = None

    def add(self, name):
        child = Node(name, parent=self)
        self.children.append(child)
        return child


class Celsius:
    def __init__(self, degrees):
        self.degrees = degrees

    def __reduce__(self):
        return Celsius, (self.degrees + 0,)


root = Node("root")
root.add("left").add("leaf")
for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
    again = pickle.loads(pickle.dumps(root, protocol))
    leaf = again.children[0].children[0]
    print(protocol, leaf.name, leaf.parent.parent is again)
print(pickle.loads(pickle.dumps(Celsius(21))).degrees, pickle.dumps([1, "a"], 2))
deep = copy.deepcopy(root)
deep.children[0].name = "changed"
print(root.children[0].name, deep.children[0].parent is deep)
try:
    pickle.dumps(lambda: 0)
except (pickle.PicklingError, AttributeError) as error:
    print(type(error).__name__)
with shelve.open("shelf") as shelf:
    shelf["list"] = [1, 2, 3]
    shelf["bytes"] = b"\0" * 1000
with shelve.open("shelf") as shelf:
    print(sorted(shelf), shelf["list"], len(shelf["bytes"]))
