#pragma once
/*
 * spec - what a sandbox is made of, as plain data.
 *
 * Written by the side that plans (runtime, lib), read by the side that enters
 * (init.c, enter.c) after clone(): hence no pointers into anything that a
 * process of its own would not have, and nothing to free on the far side.
 */
#include "engine/ids.h"
#include "engine/landlock.h"
#include "engine/limits.h"

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum layer {
#define LAYER(id, name, need, title) LAYER_##id,
#include "engine/layers.def"
#undef LAYER
	LAYER_COUNT_,
};

enum layer_need { LAYER_WHERE_PRESENT, LAYER_NEEDED, LAYER_ALWAYS };

struct layer_row {
	const char *name, *title;
	enum layer_need need;
};

extern const struct layer_row layer_rows[LAYER_COUNT_];

/* "cgroup,uid" to a set of 1u << LAYER_x; refuses what no sandbox can do without. */
int layers_parse(unsigned *ret, const char *text, struct err *e) MUST_USE;

/* Ids inside every sandbox: a plain user, and the owner of the root tree. */
enum { BOX_UID = 1000, BOX_ROOT_UID = 0 };

/*
 * A plan makes the tree first: directories, links, files, what is shared with the
 * host.  MOUNT_SEAL makes all of that read-only in one call.  After it come the
 * mounts that have a life of their own, on targets that exist by then.
 */
enum mount_kind {
	MOUNT_DIR,   /* make a directory */
	MOUNT_LINK,  /* make a symbolic link to `source` */
	MOUNT_TEXT,  /* make a file that holds the `bytes` at `source` */
	MOUNT_SHARE, /* the host's `source` */
	MOUNT_SEAL,
	MOUNT_NODE, /* the host's device `source` */
	MOUNT_TREE,   /* `source`, or the tree in `tree_fd` when >= 0, with flags of its own */
	MOUNT_TMPFS, /* fresh, limited; `source` is its mode */
	MOUNT_PROC,
	MOUNT_PTS,
	MOUNT_MASK, /* hide what is at `target`: a file reads empty, a directory is empty */
	MOUNT_LOCK, /* make what is at `target` read-only */
	MOUNT_KIND_COUNT_,
};

enum mount_flag {
	MOUNT_WRITABLE = 1u << 0, /* a tree of its own: default is read-only */
	MOUNT_NOEXEC = 1u << 1,
	MOUNT_FILE = 1u << 2,     /* what is shared is no directory */
	MOUNT_OPTIONAL = 1u << 3, /* a missing source is no error */
	MOUNT_OWN = 1u << 4,      /* belongs to the guest, not to the sandbox's root */
	MOUNT_GIVEN =
		1u << 5, /* the caller chose the target: it may lie in a tree with links in it */
};

struct mount_spec {
	enum mount_kind kind;
	const char *target; /* relative to the new root, no leading slash */
	const char *source;
	unsigned flags;
	int tree_fd;           /* MOUNT_TREE: a detached tree made by the keeper, or -1 */
	uint64_t bytes, files; /* MOUNT_TMPFS: its limits; MOUNT_TEXT: the length */
};

struct bare;
/* Directories of a guest's own: its workspace, /tmp, /dev/shm. */
enum { BOX_COPIES = 3 };

struct box_spec {
	const struct lease *lease;
	const struct mount_spec *mounts;
	size_t mount_count;
	int root_fd;           /* a root that has all the rows make, detached; 0: a fresh one */
	const char *workspace; /* absolute path inside; its mount is among `mounts` */
	bool workspace_writable;
	bool share_network;
	uint16_t listen_port;  /* on its loopback, for box_take_listener(); 0: none */
	int listen_backlog;
	bool is_nest;          /* others are made inside it: every sandbox's uid is known there */
	bool in_nest;          /* made inside one: the tree is there, `mounts` go on top of it */
	int mapped_fd;         /* in_nest: readable when its ids are mapped, by whoever made it */
	bool is_below;         /* ... and in a sandbox there, for a fork of its guest: pid 1 makes
				* the network, too, which must be the new sandbox's own */
	struct {
		int from;       /* a directory */
		const char *to; /* as `target` */
	} copies[BOX_COPIES];  /* is_below: what it begins with */
	unsigned weak;         /* layers that may be missing */
	const char *bare; /* no namespaces, and no mounts: a directory that will be made for it */
	struct bare *bare_memory; /* set by box_create() */
	/* Bare, and of a process that has no threads: others read the workspace when all inside are
	 * dead; its init looks that its directories do not grow by more than this. */
	bool is_outlived;
	uint64_t bare_bytes, bare_files;
};

/* Where a guest finds its control socket: above what a program gets by itself. */
enum { BOX_CONTROL_FD = 1000 };

struct guest_spec {
	const char *const *argv; /* argv[0] is the absolute path inside */
	const char *const *envp;
	const char *cwd;
	int stdio[3];
	const struct limits *limits;
	uint64_t data_bytes;     /* RLIMIT_DATA; 0: none */
	struct cgroup *cgroup;   /* NULL: none */
	const int *entry_fds;    /* instead of `cgroup`: the guest writes "0" to each */
	size_t entry_count;
	const struct landlock_rule *rules;
	size_t rule_count;
	int landlock_abi;        /* 0: none */
	const struct sock_fprog *seccomp; /* NULL: none; probes of a weaker host only */
	int control_fd;          /* a socket that becomes BOX_CONTROL_FD; 0: none */
	bool control_survives;   /* ... and an exec */
	bool keeps_signals;      /* what it catches and ignores is its own already */
	bool stands_up;          /* its makers stood back (base/sys.h) */
	bool will_exec;          /* later than at once, as with `argv` */
	bool is_bare;            /* its box is */
	uint64_t other_processes; /* of its uid, and in no namespace of their own */
	bool is_trusted;         /* part of us: keeps its power over the box, and is not confined */
	int (*main)(void);       /* instead of argv: a function of ours */
};
