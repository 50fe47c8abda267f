import json
class D:
    __slots__ = ()
    def __del__(self): print('del')
json.keeper = D()
