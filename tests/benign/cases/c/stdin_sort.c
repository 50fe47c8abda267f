/* Lines of standard input, sorted by length, then bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	size_t m = strlen(x), n = strlen(y);

	return m == n ? strcmp(x, y) : m < n ? -1 : 1;
}

int main(void)
{
	char **lines = NULL, *line = NULL;
	size_t count = 0, room = 0;

	while (getline(&line, &room, stdin) >= 0) {
		lines = realloc(lines, (count + 1) * sizeof(*lines));
		line[strcspn(line, "\n")] = '\0';
		lines[count++] = strdup(line);
	}
	qsort(lines, count, sizeof(*lines), compare);
	for (size_t i = 0; i < count; i++)
		printf("%2zu %s\n", strlen(lines[i]), lines[i]);
	return (int)count;
}
