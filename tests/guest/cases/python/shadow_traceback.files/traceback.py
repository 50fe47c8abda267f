print('not the library')
