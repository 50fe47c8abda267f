/* Formatted output, both streams, exit code. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

int main(void)
{
	printf("hi %d %5.2f %-6s| %x %c %%\n", 42, 3.14159, "left", 255u, 'z');
	printf("%" PRId64 " %zu %ld %e %g %s\n", INT64_MIN, sizeof(long), LONG_MAX, 12345.678, 1e-10, "žluť 🧪");
	fprintf(stderr, "to stderr\n");
	return 3;
}
