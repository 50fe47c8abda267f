#include "base/fault.h"

#include "base/sys.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static struct shared {
	atomic_uint seen;
	unsigned nth;
	int error;
	char hit[32];
} *shared;

void fault_arm(unsigned nth, int error)
{
	if (!shared) {
		void *page = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED)
			abort();
		shared = page;
	}
	shared->nth = nth;
	shared->error = error;
	shared->hit[0] = '\0';
	atomic_store(&shared->seen, 0);
}

unsigned fault_count(void)
{
	return shared ? atomic_load(&shared->seen) : 0;
}

const char *fault_hit(void)
{
	return shared ? shared->hit : "";
}

bool sys_fault(const char *name)
{
	if (!shared || atomic_fetch_add(&shared->seen, 1) + 1 != shared->nth)
		return false;
	(void)snprintf(shared->hit, sizeof(shared->hit), "%s", name);
	errno = shared->error;
	return true;
}
