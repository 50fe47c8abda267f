/* setjmp, varargs, function pointers, qsort and bsearch, bit fields, unions, goto, recursion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static jmp_buf escape;

struct person {
	char name[16];
	int age;
};

static int by_age(const void *a, const void *b)
{
	const struct person *x = a, *y = b;

	return (x->age > y->age) - (x->age < y->age);
}

static long sum(int count, ...)
{
	va_list ap;
	long total = 0;

	va_start(ap, count);
	while (count--)
		total += va_arg(ap, int);
	va_end(ap);
	return total;
}

static void dig(int depth)
{
	if (depth == 50)
		longjmp(escape, depth);
	dig(depth + 1);
}

static double apply(double (*f)(double, double), double x, double y)
{
	return f(x, y);
}

static double area(double x, double y)
{
	return x * y;
}

int main(int argc, char **argv)
{
	struct person people[] = { { "Cy", 52 }, { "Ada", 36 }, { "Bob", 25 } };
	union {
		float f;
		uint32_t bits;
	} pun = { .f = 1.5f };
	struct {
		unsigned low : 3, high : 5;
	} packed = { 7, 19 };
	int jumped;

	qsort(people, 3, sizeof(people[0]), by_age);
	struct person *found = bsearch(&(struct person){ .age = 36 }, people, 3, sizeof(people[0]), by_age);

	printf("%s %s %s, found %s\n", people[0].name, people[1].name, people[2].name, found->name);
	jumped = setjmp(escape);
	if (jumped == 0)
		dig(0);
	printf("jumped from %d\n", jumped);
	printf("%ld %.1f %08x %u %u %zu\n", sum(4, 1, 2, 3, 4), apply(area, 2.5, 4), pun.bits, packed.low,
	       packed.high, offsetof(struct person, age));
	for (int i = 1; i < argc; i++)
		printf("[%s]", argv[i]);
	putchar('\n');
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			if (i * j == 2) {
				printf("%d %d\n", i, j);
				goto out;
			}
out:
	{
		char text[] = "a:b::c", *save = NULL;

		for (char *t = strtok_r(text, ":", &save); t; t = strtok_r(NULL, ":", &save))
			printf("%s ", t);
	}
	printf("%ld %lu %d\n", strtol("0x1f", NULL, 0), strtoul("777", NULL, 8), atoi("12ab"));
	return argc == 4 ? EXIT_SUCCESS : 99;
}
