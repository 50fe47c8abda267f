#pragma once
/*
 * link - lists: a ring with a head.
 */
#include <stddef.h>

struct link {
	struct link *prev, *next; /* NULL: in no list */
};

static inline void list_init(struct link *head)
{
	head->prev = head->next = head;
}

static inline void list_add_before(struct link *at, struct link *l)
{
	l->prev = at->prev;
	l->next = at;
	at->prev->next = l;
	at->prev = l;
}

static inline void list_remove(struct link *l) /* twice is fine */
{
	if (!l->next)
		return;
	l->prev->next = l->next;
	l->next->prev = l->prev;
	l->prev = l->next = NULL;
}

#define list_each(head, l) for (struct link *l = (head)->next; l != (head); l = l->next)
