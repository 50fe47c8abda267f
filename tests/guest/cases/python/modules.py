import sys
# What a fresh interpreter has, a warm one has too.
for name in 'sys builtins os site io abc codecs encodings.utf_8 stat posixpath time zipimport __main__'.split():
    print(name, name in sys.modules)
print('sitecustomize' in sys.modules, [n for n in sys.modules if 'vial' in n], sys.modules['__main__'].__name__)
