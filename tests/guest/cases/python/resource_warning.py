import warnings
warnings.simplefilter('always')
f = open(__file__)
def g(): return f
