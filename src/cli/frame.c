#include "cli/frame.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

enum { FINAL = 0x80, RESERVED = 0x70, MASKED = 0x80, CONTROL = 0x08, SHORT_MAX = 125 };

int frame_read(struct frame *ret, size_t *ret_taken, const char *bytes, size_t len, struct err *e)
{
	const unsigned char *at = (const unsigned char *)bytes;
	size_t head = 2;
	uint64_t size;

	if (len < head)
		return 0;
	unsigned opcode = at[0] & 0x0f;
	size = at[1] & 0x7f;
	if (at[0] & RESERVED || at[1] & MASKED ||
	    (opcode & CONTROL && (size > SHORT_MAX || !(at[0] & FINAL))))
		return err_set(e, ERR_HOST, "the daemon sends no proper frames");
	if (size > SHORT_MAX) {
		size_t more = size == 126 ? 2 : 8;
		if (len < head + more)
			return 0;
		size = 0;
		for (size_t i = 0; i < more; i++)
			size = size << 8 | at[head + i];
		head += more;
	}
	if (size > FRAME_MAX)
		return err_set(e, ERR_HOST, "the daemon sends too much at once");
	if (len - head < size)
		return 0;
	*ret = (struct frame){ opcode, bytes + head, (size_t)size };
	*ret_taken = head + (size_t)size;
	return 1;
}

void frame_write(struct buf *out, unsigned opcode, const char *bytes, size_t len,
		 const unsigned char mask[4])
{
	buf_add_char(out, (char)(FINAL | opcode));
	if (len <= SHORT_MAX) {
		buf_add_char(out, (char)(MASKED | len));
	} else if (len <= UINT16_MAX) {
		uint16_t size = htobe16((uint16_t)len);
		buf_add_char(out, (char)(MASKED | 126));
		buf_add(out, &size, sizeof(size));
	} else {
		uint64_t size = htobe64(len);
		buf_add_char(out, (char)(MASKED | 127));
		buf_add(out, &size, sizeof(size));
	}
	buf_add(out, mask, 4);
	for (size_t i = 0; i < len; i++)
		buf_add_char(out, (char)((unsigned char)bytes[i] ^ mask[i % 4]));
}
