#include "engine/landlock.h"
#include "base/own.h"
#include "base/sys.h"

#include <fcntl.h>
#include <sys/stat.h>

/* What Debian 12's header lacks.  The kernel takes a longer struct whose unknown tail is zero. */
struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net; /* ABI 4; not used: the guest's network is its own */
	uint64_t scoped;             /* ABI 6 */
};

enum {
	ACCESS_TRUNCATE = 1u << 14,  /* ABI 3 */
	ACCESS_IOCTL_DEV = 1u << 15, /* ABI 5 */

	SCOPE_ABSTRACT_UNIX_SOCKET = 1u << 0, /* ABI 6 */
	SCOPE_SIGNAL = 1u << 1,

	SELF_LOG_SAME_EXEC_OFF = 1u << 0, /* ABI 7 */
	SELF_LOG_SUBDOMAINS_OFF = 1u << 2,
};

/* All that ABI 1 can forbid, device nodes included: those are handled and never granted. */
#define ACCESS_ABI_1 ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)

#define ACCESS_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_WRITE                                                                               \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                           \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                            \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |                              \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER |   \
	 ACCESS_TRUNCATE | ACCESS_IOCTL_DEV)

/* The kernel refuses a rule on a file that grants what only a directory has. */
#define ACCESS_OF_FILES                                                                            \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |                               \
	 LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE | ACCESS_IOCTL_DEV)

static uint64_t access_known(int abi)
{
	uint64_t known = ACCESS_ABI_1;

	if (abi >= 2)
		known |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		known |= ACCESS_TRUNCATE;
	if (abi >= 5)
		known |= ACCESS_IOCTL_DEV;
	return known;
}

static uint64_t access_granted(unsigned access)
{
	return (access & LANDLOCK_READ ? ACCESS_READ : 0) |
	       (access & LANDLOCK_WRITE ? ACCESS_WRITE : 0) |
	       (access & LANDLOCK_EXEC ? LANDLOCK_ACCESS_FS_EXECUTE : 0);
}

static int add_rule(int ruleset_fd, const struct landlock_rule *rule, uint64_t known, struct err *e)
{
	auto_close int fd = SYS(open, rule->path, O_PATH | O_CLOEXEC);
	struct landlock_path_beneath_attr attr = {
		.allowed_access = access_granted(rule->access) & known,
		.parent_fd = fd,
	};
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "landlock: %s", rule->path);
	if (SYS(fstat, fd, &st) < 0)
		return err_sys(e, "landlock: %s", rule->path);
	if (!S_ISDIR(st.st_mode))
		attr.allowed_access &= ACCESS_OF_FILES;
	if (SYS(sys_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &attr) < 0)
		return err_sys(e, "landlock: rule for %s", rule->path);
	return 0;
}

static int restrict_self(int ruleset_fd, int abi)
{
	/*
	 * From ABI 7 on the kernel would log what a guest is refused: an audit log
	 * that guests can fill.
	 */
	unsigned flags = abi >= 7 ? SELF_LOG_SAME_EXEC_OFF | SELF_LOG_SUBDOMAINS_OFF : 0;

	return sys_landlock_restrict_self(ruleset_fd, flags);
}

int landlock_abi(void)
{
	int abi = sys_landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : abi;
}

int landlock_restrict(const struct landlock_rule *rules, size_t count, int abi, struct err *e)
{
	struct ruleset_attr attr = {
		.handled_access_fs = access_known(abi),
		.scoped = abi >= 6 ? SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL : 0,
	};
	auto_close int fd = -1;

	if (abi < 1)
		return err_set(e, ERR_HOST, "landlock: not in this kernel, or off");
	fd = SYS(sys_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (fd < 0)
		return err_sys(e, "landlock: ruleset");
	for (size_t i = 0; i < count; i++)
		if (add_rule(fd, &rules[i], attr.handled_access_fs, e) < 0)
			return -1;
	if (SYS(restrict_self, fd, abi) < 0)
		return err_sys(e, "landlock: restrict");
	return 0;
}

int landlock_scope_signals(struct err *e)
{
	const struct ruleset_attr attr = { .scoped = SCOPE_SIGNAL };
	int abi = landlock_abi();
	auto_close int fd = -1;

	if (abi < LANDLOCK_ABI_SCOPED)
		return err_set(e, ERR_HOST, "landlock: ABI %d, where %d (Linux 6.12) is needed",
			       abi, LANDLOCK_ABI_SCOPED);
	fd = SYS(sys_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (fd < 0)
		return err_sys(e, "landlock: ruleset");
	if (SYS(restrict_self, fd, abi) < 0)
		return err_sys(e, "landlock: restrict");
	return 0;
}
