import typing, dataclasses
class D:
    def __init__(self, n): self.n = n
    def __del__(self): print('del', self.n)
@dataclasses.dataclass
class P:
    x: typing.List['P']
    y: typing.Optional[D] = None
l: typing.Dict[str, typing.List[P]] = {}
d = D('d'); p = P([], D('in p'))
f = open('data.txt', 'w'); f.write('data')
print(typing.get_type_hints(P))
