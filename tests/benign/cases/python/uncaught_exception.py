# An uncaught exception: traceback on stderr, exit code 1.
def average(values):
    return sum(values) / len(values)


print("so far so good")
print(average([1, 2, 3]))
print(average([]))
