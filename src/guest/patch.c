#include "guest/patch.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A jump to the address behind it, which is all that is needed to never come back. */
#if defined(__x86_64__)
static const unsigned char jump[] = { 0xff, 0x25, 0, 0, 0, 0 }; /* jmp *0(%rip) */
#elif defined(__aarch64__)
static const unsigned char jump[] = { 0x50, 0, 0, 0x58, 0, 2, 0x1f, 0xd6 }; /* ldr x16, 8; br x16 */
#else
static const unsigned char jump[1]; /* not known */
#endif

enum { SIZE = sizeof(jump) + sizeof(void *) };
_Static_assert((size_t)SIZE <= sizeof(((struct patch *)0)->before), "what is overwritten is kept");

static int write_code(void *at, const void *code)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)at & ~(page - 1);
	size_t len = (((uintptr_t)at + SIZE + page - 1) & ~(page - 1)) - start;

	/* Executable all the while: other threads may be passing by. */
	if (mprotect((void *)start, len, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
		return -1;
	memcpy(at, code, SIZE);
	__builtin___clear_cache((char *)at, (char *)at + SIZE);
	return mprotect((void *)start, len, PROT_READ | PROT_EXEC);
}

int patch_in(struct patch *p, void *function, void (*instead)(void))
{
	unsigned char code[SIZE];

	if (sizeof(jump) == 1)
		return -1;
	memcpy(code, jump, sizeof(jump));
	memcpy(code + sizeof(jump), &instead, sizeof(instead));
	memcpy(p->before, function, SIZE);
	p->function = function;
	return write_code(function, code);
}

void patch_out(const struct patch *p)
{
	(void)write_code(p->function, p->before);
}
