/* What the compiler says of a program it cannot take. */
#include <stdio.h>

int main(void)
{
	int count = 3
	printf("%d\n", count);
	return undefined_name;
}
