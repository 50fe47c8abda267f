import locale, sys
print(locale.setlocale(locale.LC_ALL), sys.stdout.encoding, sys.getfilesystemencoding())
