#pragma once
/*
 * seccomp - the system calls a guest may make, those of the server, which reads what clients
 * send, of the egress proxy, which reads what guests send, and of a warm interpreter, which loads
 * packages.
 *
 * seccomp.def is an allow-list with a reason per row, seccomp_server.def and seccomp_egress.def
 * are others, seccomp_zygote.def and seccomp_bare.def are what differs from the first.  Each is
 * compiled to BPF at build time by seccomp_gen.c (libseccomp for the numbers), so that a run pays
 * one system call and no library.  What is not listed answers ENOSYS, so that libc falls back; what
 * must look forbidden answers EPERM; foreign ABIs (x32, i386) are refused.
 */
#include "base/err.h"

#include <linux/filter.h>
#include <stdbool.h>

/*
 * Generated.  The server's is linked into the server alone, the proxy's into the proxy, the
 * zygote's into the keeper.  What is forked from a zygote has its filter, and needs the rest only:
 * on the calls that seccomp_zygote.def names, seccomp_forked answers as seccomp_guest does.
 */
extern const struct sock_fprog seccomp_guest, seccomp_zygote, seccomp_forked, seccomp_server,
	seccomp_egress;

/* Generated: a guest's without namespaces (bare.c). */
extern const struct sock_fprog seccomp_bare;

/* Child side: install for this process and all it will become.  Needs no_new_privs. */
int seccomp_install(const struct sock_fprog *prog, struct err *e) MUST_USE;

/* Parent side, asked by the probe: does this kernel have filters? */
bool seccomp_available(void);
