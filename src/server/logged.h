#pragma once
/*
 * logged - which events there are in the log, and what each of them says.
 */
#include "server/http.h"
#include "server/log.h"

struct config_server;
struct egress_event;
struct record;
struct server;

/* As the operator has it; also after a reload. */
int logged_setup(struct log *log, const struct config_server *settings, struct err *e) MUST_USE;

void logged_exchange(struct log *log, const struct exchange_end *end);
void logged_run(struct log *log, const struct record *r);
/* A guest's connection; `id` is that of its run, or of the interpreter of a session. */
void logged_egress(struct server *s, const struct egress_event *event, uint64_t id);
void logged_start(struct server *s, size_t listeners);
void logged_stop(struct log *log, const char *event, enum log_level level);
