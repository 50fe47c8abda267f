#pragma once
/*
 * kubernetes_pod - a worker's pod, as it is ordered.
 *
 * Whatever the image says, the container is nobody's root, writes to two empty directories and no
 * other place, has no capability, no service account and no variable of the cluster's services.
 * What the operator may choose is in the plan; nothing a client sends is.
 */
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define KUBE_FLEET_LABEL "vial/fleet" /* whose worker it is */

struct kube_plan {                 /* all borrowed; NULL: not wanted */
	const char *fleet;         /* the value of that label */
	const char *const *labels; /* more of them, "name=value", by which others find workers */
	size_t label_count;
	const char *image, *pull_policy, *pull_secret;
	const char *runtime_class; /* "gvisor", "kata" */
	const char *seccomp;    /* a profile on the node, by its path there; NULL: RuntimeDefault */
	bool own_users;         /* a user namespace of the pod's own, with all of /proc in sight */
	const char *allow_weak; /* layers that sandboxes in such a pod cannot have */
	const char *workdir;
	const char *const *environment; /* more variables, "NAME=VALUE" */
	size_t environment_count;
	const char *relay_secret; /* a Secret: its "relay-key" is what we share with workers */
	uint64_t memory_limit, memory_request;   /* bytes */
	uint64_t cpu_limit, cpu_request;         /* thousandths of a core */
	uint64_t storage_limit, storage_request; /* bytes */
	uint64_t user, group, fs_group;
	uint64_t grace_s; /* to finish what it does when it is to end */
	unsigned port;
};

/* The order for one named `name`, which serves as the node of that name: JSON for POST .../pods. */
void kube_pod_write(struct buf *out, const struct kube_plan *plan, const char *name);

/* "app=x,component=y,vial/fleet=z", for a labelSelector. */
void kube_pod_selector(struct buf *out, const struct kube_plan *plan);
