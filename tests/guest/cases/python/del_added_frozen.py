import gc, json
class D:
    def __del__(self): print('del')
json.keeper = D()
gc.freeze()
