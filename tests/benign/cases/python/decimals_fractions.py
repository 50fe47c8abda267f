# Exact arithmetic: decimal contexts, fractions, rounding, float corner cases.
import math
from decimal import ROUND_HALF_EVEN, ROUND_UP, Context, Decimal, DivisionByZero, localcontext
from fractions import Fraction

print(Decimal("0.1") + Decimal("0.2"), 0.1 + 0.2)
with localcontext() as context:
    context.prec = 60
    print(Decimal(2).sqrt(), Decimal(1).exp())
print(Decimal("2.675").quantize(Decimal("0.01"), ROUND_HALF_EVEN), Decimal("1.001").quantize(Decimal("0.1"), ROUND_UP))
try:
    Context(traps=[DivisionByZero]).divide(Decimal(1), Decimal(0))
except DivisionByZero as error:
    print(type(error).__name__)
print(sum(Fraction(1, n) for n in range(1, 31)), Fraction(math.pi).limit_denominator(1000))
print(round(2.5), round(-0.5), math.fsum([0.1] * 10), math.nan != math.nan, float.hex(0.1))
print(f"{1234567.891:,.2f} {0.000012345:.3e} {255:#x} {5:08b} {1/3:.15f} {-0.0}")
print(math.nextafter(1, 2), math.ulp(1.0), math.remainder(10, 3), math.hypot(3, 4), math.comb(50, 25))
