#include "server/id.h"

#include "base/node.h"

#include <stdint.h>
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

int id_make(char ret[ID_LEN + 1], struct err *e)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[ID_LEN / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_sys(e, "random numbers");
	for (size_t i = 0; own_node && i < NODE_DIGITS / 2; i++)
		bytes[i] = (unsigned char)(own_node >> (24 - 8 * i));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		ret[2 * i] = digits[bytes[i] >> 4];
		ret[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret[ID_LEN] = '\0';
	return 0;
}
