#pragma once
/*
 * cgroup_impl - what the three implementations of cgroup.h share.
 *
 * A version is a vtable and two tables: what to write when a group is made, and
 * what to read when it is asked.  Both are a list of *trees*: v1 has one per
 * hierarchy (co-mounted controllers share one), v2 has exactly one, none has
 * none.  A group is a directory of the same name in every tree.
 *
 * A host never changes after cgroup_find(), so threads may share it.
 */
#include "base/buf.h"
#include "engine/cgroup.h"

#include <stddef.h>

enum cgroup_controller {
	CGROUP_MEMORY = 1u << 0,
	CGROUP_PIDS = 1u << 1,
	CGROUP_CPU = 1u << 2,
	CGROUP_CPUACCT = 1u << 3, /* v1 only: v2 accounts in every group */
};

enum { CGROUP_TREES = 4, CGROUP_NAME = 64, CGROUP_READINGS = 8 };
enum { CGROUP_NO_READING = -2 }; /* in the place of a descriptor: this kernel has none */

struct cgroup_tree {
	int fd;               /* the directory that groups go below; owned */
	unsigned controllers; /* set of enum cgroup_controller */
	char *path;           /* of fd, for people; owned */
};

struct cgroup_host {
	const struct cgroup_ops *ops;
	struct cgroup_tree trees[CGROUP_TREES];
	size_t tree_count;
	unsigned controllers; /* of all trees */
	const char *parent;   /* v2: a group of ours between tree and groups, or NULL */
	bool parent_is_ours;  /* v2: nobody configured the parent, so an empty one goes */
	char *where;          /* owned */
	struct buf why;
};

struct cgroup {
	struct cgroup_host *host;
	char name[CGROUP_NAME];
	char path[2 * CGROUP_NAME]; /* below the tree: "vial/vial-3" */
	int dir_fds[CGROUP_TREES];  /* -1: not made (any more) */
	int task_fds[CGROUP_TREES]; /* v1: `tasks`, opened with the creator's credentials */
	int reading_fds[CGROUP_READINGS]; /* -1: not opened yet; or NO_READING */
	int oom_fd;
	short oom_events;
	bool is_view; /* somebody else's: not ours to remove */
	struct limits limits; /* as they were set, */
	unsigned holding;     /* of these controllers */
};

enum cgroup_need { ALWAYS, IF_PRESENT }; /* IF_PRESENT: kernels that lack the file are fine */

/* One limit.  Rows of controllers that the host lacks are skipped: cgroup_why() has said so. */
struct cgroup_setting {
	unsigned controller;
	enum cgroup_need need;
	const char *file;
	uint64_t (*value)(const struct limits *lim);
	/* NULL, or: does the limit hold all the same, although it could not be written? */
	bool (*holds_anyway)(const struct cgroup *cg, const struct limits *lim, int error);
};

/* One account: the number in `file`, or the one behind `key`, goes to the field at `offset`. */
struct cgroup_reading {
	unsigned controller; /* 0: any tree */
	enum cgroup_need need;
	const char *file, *key;
	size_t offset;
	uint64_t divisor;
};

struct cgroup_reset {
	unsigned controller;
	enum cgroup_need need;
	const char *file, *text;
};

struct cgroup_ops {
	enum cgroup_version version;
	const struct cgroup_setting *settings; /* ends with a row without a file */
	const struct cgroup_reading *readings; /* likewise */
	/* Make the way to the groups again, when somebody removed it.  NULL: it cannot go. */
	int (*restore)(const struct cgroup_host *host, struct err *e);
	/* Descriptors for entering and watching, once the directories are there. */
	int (*prepare)(struct cgroup *cg, struct err *e);
	void (*rearm)(const struct cgroup *cg);
	/* What takes its accounts back, and lifts what stands in the way of other limits.
	 * NULL: this version has no such thing. */
	const struct cgroup_reset *resets;
	bool (*kill_at_once)(int dir_fd); /* NULL, or false: this kernel cannot */
};

extern const struct cgroup_ops cgroup_ops_none, cgroup_ops_v1, cgroup_ops_v2;

uint64_t cgroup_limit_memory(const struct limits *lim);
uint64_t cgroup_limit_processes(const struct limits *lim);
uint64_t cgroup_limit_cpu_quota_us(const struct limits *lim); /* per 100 ms, the default period */
uint64_t cgroup_limit_zero(const struct limits *lim);
uint64_t cgroup_limit_one(const struct limits *lim);

/*
 * What the kernel says about itself: /proc/self/mountinfo and /proc/self/cgroup.
 */
struct cgroup_mount {
	bool is_v2;
	unsigned controllers;     /* v1 */
	const char *root, *point; /* into the text that was parsed */
};

/* Cut `text` up in place; returns how many of the mounts are cgroup file systems, at most `max`. */
size_t cgroup_parse_mounts(struct cgroup_mount *ret, size_t max, char *text);

/* The path of our group in the hierarchy of `controller` (0: v2); false when it is out of sight. */
bool cgroup_parse_own(char *ret, size_t size, const char *text, unsigned controller);

/* Where group `path` is in the file system; false when the mount does not show it. */
bool cgroup_locate(char *ret, size_t size, const struct cgroup_mount *mount, const char *path);

/* The inverse of a group's name: "vial-12-compile" is of lease 12. */
bool cgroup_parse_name(unsigned *ret_lease, const char *name);

/* "memory pids" holds the word "pids"; "max 3\noom_kill 1\n" has 1 behind the key "oom_kill". */
bool cgroup_has_word(const char *text, const char *word);
bool cgroup_parse_key(uint64_t *ret, const char *text, const char *key);

/* Small files: bytes read, NUL-terminated; or -1 with errno. */
int cgroup_read(int dir_fd, const char *file, char *ret, size_t size);
int cgroup_write(int dir_fd, const char *file, const char *text);

struct cgroup_view { /* what the finders look at */
	const struct cgroup_mount *mounts;
	size_t mount_count;
	const char *own;  /* text of /proc/self/cgroup */
	const char *path; /* configured, or NULL */
};

/* Fill in host, or leave it CGROUP_NONE with the reason in host->why. */
int cgroup_find_v1(struct cgroup_host *host, const struct cgroup_view *view,
		   struct err *e) MUST_USE;
int cgroup_find_v2(struct cgroup_host *host, const struct cgroup_view *view,
		   struct err *e) MUST_USE;

/* Takes the descriptor, also on failure. */
int cgroup_add_tree(struct cgroup_host *host, int fd, const char *path, unsigned controllers,
		    struct err *e) MUST_USE;
void cgroup_drop_trees(struct cgroup_host *host);

/* "; " between sentences. */
void cgroup_say(struct cgroup_host *host, const char *fmt, ...) PRINTF(2, 3);

bool cgroup_has_swap(void); /* this host swaps, so that an uncounted swap matters */
