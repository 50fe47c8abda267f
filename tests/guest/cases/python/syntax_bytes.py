x = 'ÿþ'
print(x)
