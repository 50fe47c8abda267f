import warnings
warnings.warn('hidden', DeprecationWarning)
warnings.warn('seen')
