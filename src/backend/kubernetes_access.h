#pragma once
/*
 * kubernetes_access - where the API server is, and who we are to it.
 *
 * In a pod that is its service account: a directory that the kubelet keeps up to date, since a
 * token is good for an hour or so.  Elsewhere it is a kubeconfig, of which we know what needs no
 * other program: tokens and certificates.  Plugins that are to be executed are refused, and so is
 * a server that nobody checks.
 */
#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define KUBE_ACCOUNT_PATH "/var/run/secrets/kubernetes.io/serviceaccount"

struct kube_access {
	char *server;            /* "https://10.0.0.1:6443", without a slash at its end */
	char *authority;         /* PEM; NULL: those that this host trusts */
	char *certificate, *key; /* ours, PEM; NULL: none */
	char *token;             /* NULL: none */
	char *token_path;        /* read it again from there; NULL: it stays */
	char *namespace;         /* NULL: not said */
	uint64_t read_us;        /* when the token was read */
};

/* What is in `dir`, and the two variables that every pod has. */
int kube_access_account(struct kube_access *ret, const char *dir, struct err *e) MUST_USE;
/* A kubeconfig, its current context; files that it names are beside it. */
int kube_access_file(struct kube_access *ret, const char *path, struct err *e) MUST_USE;
/* The same of a text, without opening anything: what would be opened is NULL in `ret`. */
int kube_access_parse(struct kube_access *ret, const char *text, size_t len,
		      struct err *e) MUST_USE;
void kube_access_done(struct kube_access *access);

/* Read the token again if it may be another by now; the old one stays when that fails. */
int kube_access_refresh(struct kube_access *access, uint64_t now_us, struct err *e) MUST_USE;
