def f(x):
    return g(x) + 1

def g(x):
    try:
        return 1 / x
    except ZeroDivisionError as e:
        raise ValueError("no", x) from e

f(0)
