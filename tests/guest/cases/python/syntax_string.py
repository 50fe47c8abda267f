x = 'abc
print(x)
