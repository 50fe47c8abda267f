#pragma once
/*
 * ids - host uids for sandboxes, and the leases on them.
 *
 * Budgets of the kernel (inotify, pipe pages, keys) are per uid, so no two
 * concurrent sandboxes share one.  A lease is a lock on one byte of a file:
 * the kernel gives it back when its holder dies, however it dies.  Lease n
 * stands for the uids base + 2n (the guest) and base + 2n + 1 (its init), and
 * for every name derived from n (cgroups).
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { IDS_COUNT = 4096 };

/* Above what systemd hands to containers, below 2^31. */
#define IDS_DEFAULT_BASE 0x70000000u

struct ids {
	int lock_fd;
	bool own_uids;      /* a uid per sandbox; else all share the caller's */
	bool mappable;      /* may write any map (CAP_SETUID, CAP_SETGID) */
	uid_t base;
	unsigned count;
	const char *why;    /* why not own_uids, for people */
	char place[112];    /* the directory of the leases; ours alone */
};

struct lease {
	int fd;             /* holds the lock */
	unsigned index;
	bool own_uids, mappable;
	uid_t guest_uid, init_uid; /* host ids */
	uid_t base;                /* all of them: base .. base + 2 * count */
	unsigned count;
};

/* `base` 0: the default range, or what fits into the map of the namespace we live in. */
int ids_open(struct ids *ret, uid_t base, struct err *e) MUST_USE;
void ids_close(struct ids *ids);

int ids_lease(struct lease *ret, const struct ids *ids, struct err *e) MUST_USE;
void lease_done(struct lease *lease);
int ids_claim(unsigned index,
	      void *ids); /* that very lease, as a descriptor; -1: held, or no luck */

/* Whose namespaces a sandbox lies in, by their leases: its nest's, then those of the sandboxes that
 * it descends from by live forks. */
enum { LINEAGE_MAX = 32 };
struct lineage {
	unsigned count;
	uint16_t index[LINEAGE_MAX];
};

/*
 * The maker's side: write uid_map and gid_map of a process cloned into a new user namespace.  A
 * nest's root is its own, and every other id of the range is itself, so that sandboxes made inside
 * can have them.  So it is in a sandbox (with a lineage): those that a live fork makes inside of it
 * have ids of their own.  Nobody there can become any of them: that takes a capability.
 */
int idmap_write(pid_t pid, const struct lease *lease, const struct lineage *lineage,
		struct err *e) MUST_USE; /* no lineage: a nest, or a sandbox that is in none */
int idmap_write_nest(pid_t pid, const struct lease *lease, struct err *e) MUST_USE;

/*
 * A user namespace that maps `disk` to `host` and nothing else, for idmapped
 * mounts: returns a descriptor of it.
 */
int idmap_userns(uid_t disk_uid, gid_t disk_gid, uid_t host, struct err *e) MUST_USE;
