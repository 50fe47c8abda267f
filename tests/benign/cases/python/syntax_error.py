# A program that cannot even be read.
print("never printed")
total = (1 + 2
print(total)
