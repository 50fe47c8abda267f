print('bom')
print('crlf')
