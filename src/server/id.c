#include "server/id.h"

#include "base/node.h"

#include <stdint.h>
#include <string.h>
#include <sys/random.h>

static uint32_t own_node;

void id_set_node(uint32_t node)
{
	own_node = node;
}

uint32_t id_own_node(void)
{
	return own_node;
}

/* For many at once: most requests need no system call for theirs. */
static int draw(unsigned char *ret, size_t len, struct err *e)
{
	static unsigned char drawn[256];
	static size_t left;

	if (left < len && getrandom(drawn, sizeof(drawn), 0) != (ssize_t)sizeof(drawn)) {
		left = 0;
		return err_sys(e, "random numbers");
	}
	if (left < len)
		left = sizeof(drawn);
	left -= len;
	memcpy(ret, drawn + left, len);
	return 0;
}

int id_make(char ret[ID_LEN + 1], struct err *e)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[ID_LEN / 2];

	if (draw(bytes, sizeof(bytes), e) < 0)
		return -1;
	for (size_t i = 0; own_node && i < NODE_DIGITS / 2; i++)
		bytes[i] = (unsigned char)(own_node >> (24 - 8 * i));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		ret[2 * i] = digits[bytes[i] >> 4];
		ret[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret[ID_LEN] = '\0';
	return 0;
}
