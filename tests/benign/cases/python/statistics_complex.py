# Statistics, complex numbers, numerical corner cases.
import cmath
import math
import statistics

data = [2.5, 3.25, 5.5, 11.25, 11.5, 3.25]
print(statistics.mean(data), statistics.median(data), statistics.mode(data), round(statistics.stdev(data), 12))
print(statistics.quantiles(data, n=4), statistics.linear_regression([1, 2, 3], [2.0, 4.1, 5.9]))
print(round(statistics.NormalDist(100, 15).cdf(130), 12), statistics.correlation([1, 2, 3], [1, 2, 4]))
print(cmath.sqrt(-4), (1 + 2j) * (3 - 1j), round(abs(cmath.exp(1j * math.pi) + 1), 12), cmath.polar(1j))
print(math.sin(1e6), math.lgamma(10.5), math.erf(0.5), math.expm1(1e-10), math.log2(10), math.tan(1.5))
print(sum(1 / n**2 for n in range(1, 10000)), math.prod(range(1, 15)), math.dist((0, 0), (1, 1)))
for attempt in (lambda: math.sqrt(-1), lambda: math.exp(1000), lambda: 1.0 / 0, lambda: int(math.inf)):
    try:
        attempt()
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        print(type(error).__name__, error)
