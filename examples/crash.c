/* Writes where nothing is: ended by a signal, and only this program. */
#include <stdio.h>

int main(void)
{
	volatile int *nowhere = NULL;

	puts("about to crash");
	(void)fflush(stdout);
	*nowhere = 1;
	return 0;
}
