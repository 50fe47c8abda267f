import sys
sys.path.insert(0, 'modules.zip')
try:
    import inside
except ImportError as e:
    print(e)
