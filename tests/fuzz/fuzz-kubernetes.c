/*
 * What an API server sends, and a kubeconfig: read within bounds, or refused with a reason.  The
 * first byte says which it is.
 */
#include "backend/kubernetes_access.h"
#include "backend/kubernetes_read.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What ends up in addresses has nothing in it that could make them others. */
static void told(const struct kube_pod *pod, void *arg)
{
	const struct backend_worker *w = &pod->worker;

	(void)arg;
	if (!w->id[0] || strlen(w->id) > KUBE_NAME_MAX || strpbrk(w->id, "/?#%& \n") ||
	    strpbrk(pod->uid, "\"\\\n") || (w->phase == BACKEND_RUNNING && !w->url) ||
	    (w->url && strncmp(w->url, "http://", 7) != 0))
		abort();
}

static void check_access(const char *text, size_t len)
{
	struct kube_access a;
	struct err e = { 0 };

	if (kube_access_parse(&a, text, len, &e) < 0) {
		if (!e.msg[0])
			abort();
		return;
	}
	if (strncmp(a.server, "https://", 8) != 0 || (a.token && strpbrk(a.token, " \r\n")))
		abort();
	kube_access_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	char version[KUBE_VERSION_MAX] = "";
	struct kube_list list;
	enum kube_event event;
	struct err e = { 0 };
	int got = 0;

	if (size == 0)
		return 0;
	size--;
	switch (data[0]) {
	case 'l':
		got = kube_read_list(&list, text, size, 6000, told, NULL, &e);
		if (got == 0 && (strpbrk(list.version, "&# ") || strpbrk(list.more, "&# ")))
			abort();
		break;
	case 'e':
		got = kube_read_event(&event, version, text, size, 6000, told, NULL, &e);
		if (got == 0 && strpbrk(version, "&# "))
			abort();
		break;
	case 'r':
		got = kube_read_refusal(403, text, size, &e);
		break;
	default:
		check_access(text, size);
	}
	if (got < 0 && !e.msg[0])
		abort();
	return 0;
}
