import warnings
warnings.warn('user'); warnings.warn('old', DeprecationWarning)
def f(): warnings.warn('up', stacklevel=2)
f()
'\d'
import helper
