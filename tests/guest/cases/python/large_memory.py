x = 'y' * (64 << 20)
print(len(x))
