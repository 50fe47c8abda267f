import sys
def hook(t, v, tb):
    print('hook', t.__name__, v, tb.tb_lineno)
sys.excepthook = hook
1 / 0
