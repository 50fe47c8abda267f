# Integers of thousands of digits.
import math
import sys

fact = math.factorial(1000)
print(len(str(fact)), str(fact)[:20], sum(map(int, str(fact))))
print(pow(3, 10**6, 10**9 + 7), pow(7, -1, 31), math.isqrt(10**100), math.gcd(2**200 - 1, 2**120 - 1))
a, b = 0, 1
for _ in range(5000):
    a, b = b, a + b
print(a % 10**20, a.bit_length())
mersenne = 2**2203 - 1
s = 4
for _ in range(2201):
    s = (s * s - 2) % mersenne
print(s == 0)
print((-7) // 2, (-7) % 3, ~5, 5 ^ 3, 1 << 70, hex(-(2**65)))
try:
    int("9" * 5000)
except ValueError as error:
    print(error)
sys.set_int_max_str_digits(0)
print(len(str(7**20000)))


def pi_digits(count):
    q, r, t, k, n, m = 1, 0, 1, 1, 3, 3
    while count:
        if 4 * q + r - t < n * t:
            yield n
            count -= 1
            q, r, n = 10 * q, 10 * (r - n * t), (10 * (3 * q + r)) // t - 10 * n
        else:
            q, r, t, k, n, m = (q * k, (2 * q + r) * m, t * m, k + 1,
                                (q * (7 * k + 2) + r * m) // (t * m), m + 2)


print("".join(map(str, pi_digits(200))))
