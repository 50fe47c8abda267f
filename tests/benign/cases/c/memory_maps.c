/* malloc in all sizes, mmap of every kind, mprotect, mremap, executable pages, a guard page. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static sigjmp_buf back;

static void on_fault(int sig)
{
	siglongjmp(back, sig);
}

int main(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *blocks[200];
	unsigned sum = 0;

	for (int i = 0; i < 200; i++) {
		blocks[i] = malloc((size_t)i * i * 10 + 1);
		memset(blocks[i], i, (size_t)i * i * 10 + 1);
	}
	for (int i = 0; i < 200; i++) {
		sum += (unsigned char)blocks[i][i * i * 5];
		free(blocks[i]);
	}
	printf("%u\n", sum);

	void *aligned = NULL;

	printf("%d ", posix_memalign(&aligned, 4096, 100));
	printf("%d\n", (uintptr_t)aligned % 4096 == 0);
	free(aligned);
	char *grown = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	strcpy(grown, "kept when grown");
	grown = mremap(grown, page, 64 * page, MREMAP_MAYMOVE);
	grown[63 * page] = 1;
	printf("%s\n", grown);
	mprotect(grown, page, PROT_READ);
	signal(SIGSEGV, on_fault);
	if (sigsetjmp(back, 1) == 0) {
		grown[0] = 'x';
		puts("wrote to read-only memory");
	} else {
		puts("fault caught");
	}
	munmap(grown, 64 * page);

	static const unsigned char code[] = { 0x8d, 0x04, 0x37, 0xc3 }; /* lea eax, [rdi+rsi]; ret */
	unsigned char *text = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(text, code, sizeof(code));
	printf("%d\n", mprotect(text, page, PROT_READ | PROT_EXEC));
#ifdef __x86_64__
	printf("%d\n", ((int (*)(int, int))(void *)text)(19, 23));
#else
	puts("42");
#endif
	int fd = open("mapped", O_RDWR | O_CREAT, 0644);

	if (fd < 0 || ftruncate(fd, 10000) < 0)
		return 1;
	char *view = mmap(NULL, 10000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	memcpy(view + 5000, "in the file", 11);
	msync(view, 10000, MS_SYNC);
	char line[12] = "";

	printf("%zd ", pread(fd, line, 11, 5000));
	printf("%s\n", line);
	int shared = shm_open("/benign-c", O_RDWR | O_CREAT | O_EXCL, 0600);

	printf("%d %d\n", shared >= 0, ftruncate(shared, 4096));
	shm_unlink("/benign-c");
	printf("%d %d\n", madvise(view, 10000, MADV_WILLNEED), malloc_trim(0) >= 0);
	return 0;
}
