/* All byte values, then a large block, straight to the descriptors. */
#include <string.h>
#include <unistd.h>

int main(void)
{
	unsigned char bytes[256], block[65536];

	for (int i = 0; i < 256; i++)
		bytes[i] = (unsigned char)i;
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (unsigned char)(i * i >> 3);
	if (write(STDOUT_FILENO, bytes, sizeof(bytes)) < 0 || write(STDERR_FILENO, bytes + 128, 128) < 0)
		return 1;
	for (size_t done = 0; done < sizeof(block);) {
		ssize_t n = write(STDOUT_FILENO, block + done, sizeof(block) - done);

		if (n < 0)
			return 1;
		done += (size_t)n;
	}
	return 0;
}
