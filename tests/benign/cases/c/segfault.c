/* A null pointer followed: the program dies by SIGSEGV after what it printed. */
#include <stdio.h>

int main(void)
{
	volatile int *volatile nowhere = NULL;

	printf("before\n");
	fflush(stdout);
	*nowhere = 1;
	printf("after\n");
	return 0;
}
