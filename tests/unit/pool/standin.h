#pragma once
/*
 * standin - the other end of keeper/wire.h, for tests of the pool: real pipes, real cgroups,
 * a tmpfs of its own for each workspace and a process in it that speaks guest/go.h, but no
 * isolation.  Whatever the language, the code is a shell script; a compiler is the script
 * with STAGE=compile, and a session's driver is its file driver.sh, whose channel is descriptor 3.
 */
#include "base/loop.h"
#include "keeper/wire.h"
#include "lib/environment.h"
#include "lib/host.h"

struct standin_box {
	struct standin *owner;
	uint32_t number, flags, environment;
	bool in_use, is_armed, is_empty, is_killed;
	struct lease lease;
	struct cgroup *cgroup;
	struct limits limits;
	char path[32]; /* of the workspace */
	int workspace, pidfd;
	pid_t pid;
	struct watch watch;
};

struct standin {
	struct loop *loop;
	struct watch orders;
	struct vial *host;
	struct cgroup_host *cgroups;
	const struct environments *environments;
	struct standin_box boxes[64];
	unsigned arms, kills, nexts, filers, signals; /* orders so far */
	unsigned cold_arms, live_arms;
	unsigned listens, proxies; /* asked for */
	int proxy;                 /* our end of the first one's channel; 0: there is none */
	/* what goes wrong: */
	unsigned fail_arms;  /* of the next ones */
	unsigned dead_arms;  /* of the next guests: they die before they hear a word */
	unsigned dozing_arms; /* likewise, a little later */
	bool is_deaf;        /* ARM is not answered */
	bool holds_arms;     /* nor is it before it is released: */
	struct wire_msg held[64];
	unsigned held_count;
	bool is_mad;         /* filers answer nonsense */
	unsigned fail_filers; /* of the next ones */
	unsigned fail_listens; /* of the next ones */
	unsigned dead_listens; /* of the next ones: the guest is killed instead */
	bool is_deaf_to_listen, loses_proxy;
	bool loses;          /* guests that end are said to be lost */
	struct err e;
};

/* Takes the socket. */
int standin_open(struct standin *s, struct loop *loop, int socket, struct vial *host,
		 const struct environments *environments);
void standin_close(struct standin *s);
void standin_release(struct standin *s, unsigned place); /* one that is held, as they came */
void standin_release_all(struct standin *s);             /* and none is held any more */
unsigned standin_alive(const struct standin *s); /* sandboxes it has */
