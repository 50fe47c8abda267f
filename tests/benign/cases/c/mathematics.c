/* libm, floating point environment, complex numbers, rounding, random sequences. */
#include <complex.h>
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	volatile double one = 1, three = 3, zero = 0, ten = 10;

	printf("%.17g %.17g %.17g\n", sqrt(2), sin(1e6), exp(ten));
	printf("%.17g %.17g %.17g\n", pow(three, 0.3), atan2(one, -three), lgamma(ten + 0.5));
	printf("%g %g %d %d\n", one / zero, -one / zero, isnan(zero / zero) != 0, fpclassify(DBL_MIN / 2) == FP_SUBNORMAL);
	fesetround(FE_UPWARD);
	printf("%.20f\n", one / three);
	fesetround(FE_TONEAREST);
	printf("%.20f %d\n", one / three, fetestexcept(FE_DIVBYZERO) != 0);
	double complex z = cpow(1 + 2 * I, 3);

	printf("%.10f %.10f %.10f\n", creal(z), cimag(z), cabs(z));
	printf("%g %g %g %ld %g\n", floor(-2.5), round(-2.5), trunc(-2.5), lrint(2.5), fmod(-7, 3));
	srand(1);
	srandom(7);
	printf("%d %d %ld %d\n", rand(), rand(), random(), (int)(drand48() * 0));
	printf("%.3f %Lg %a\n", hypot(three, 4), 1.0L / 3, 0.1);
	long double series = 0;

	for (int n = 0; n < 1000000; n++)
		series += (n % 2 ? -1.0L : 1.0L) / (2 * n + 1);
	printf("%.12Lf\n", 4 * series);
	return 0;
}
