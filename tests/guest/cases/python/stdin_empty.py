print(repr(input()))
