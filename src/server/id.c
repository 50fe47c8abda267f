#include "server/id.h"

#include <sys/random.h>

int id_make(char ret[ID_LEN + 1], struct err *e)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[ID_LEN / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_sys(e, "random numbers");
	for (size_t i = 0; i < sizeof(bytes); i++) {
		ret[2 * i] = digits[bytes[i] >> 4];
		ret[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret[ID_LEN] = '\0';
	return 0;
}
