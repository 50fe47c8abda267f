import locale, sys, time, os
print(locale.getpreferredencoding(), locale.getlocale(), time.tzname, sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
print('ä€', ascii('ä'), os.fsencode('ä'))
print(sys.maxsize, sys.hash_info, sys.float_info.dig, sys.int_info)
