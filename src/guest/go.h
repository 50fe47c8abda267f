#pragma once
/*
 * go - what an armed guest is told, over the control socket that only it holds.
 *
 * A guest is armed with everything but its code.  What it gets is a stream of records,
 * each a struct go_record and `len` bytes, the last one GO_RUN.  All of it arrives
 * before a byte of the user's code runs, so the reader is still ours; it writes the
 * files into the workspace (the current directory) with an old time stamp, see
 * engine/workspace.h.  Where it cannot write there, a descriptor comes with the first byte: another
 * view of the same directory, that is closed before anything else happens.
 *
 *   GO_NAME  the program's file name in the workspace; once, if it is not the usual
 *   GO_STAGE "compile" or "run"; once, for languages with two stages
 *   GO_FILE  name, NUL, contents
 *   GO_SOURCE the name of another file that is compiled with the program
 *   GO_ARG   an argument of the program
 *   GO_ENV   NAME=value
 *   GO_HEAP  a uint64_t: so many bytes more of data than it was armed with
 *   GO_KEY   GO_KEY_LEN bytes that nobody can guess; once, for interpreters that are warm
 *   GO_SESSION no program: become the language's session driver, and keep the socket.  What comes
 *              over it from then on is docs/SESSION-PROTOCOL.md
 *   GO_RUN   nothing more: run
 *
 * One that cannot become its program says GO_FAILED and a struct err.  Else the socket is closed
 * before the program runs: that finds nothing but its three descriptors.  A session is sent nothing
 * before it has said that it is ready.
 *
 * When its interpreter has finished and is about to exit, it says so on stderr, as long as that is
 * the pipe that it was given: the key and a byte, its exit status, in one piece, for
 * the reader to take out.  It is only a word, good for an early answer; the end
 * itself is the keeper's to tell.  A program that finds the key and says it ends its own
 * run with a status of its choice, as exit() would.
 *
 * Integers are little-endian.  Names were checked by the sender (workspace_check_name)
 * and are checked again here.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum go_kind {
	GO_NAME = 'n', GO_STAGE = 's', GO_FILE = 'f', GO_SOURCE = 'm', GO_ARG = 'a', GO_ENV = 'e',
	GO_HEAP = 'h', GO_KEY = 'k', GO_SESSION = 'l', GO_RUN = 'r',
	GO_FAILED = 'x',
};

enum { GO_KEY_LEN = 16, GO_WORD_LEN = GO_KEY_LEN + 1 };

struct go_record {
	uint32_t kind; /* enum go_kind */
	uint32_t len;
};

/* Where guests find things; both are above any descriptor a program gets by itself. */
enum {
	GO_FD = 1000,       /* the control socket, in warm interpreters */
	GO_WORDS_FD = 1001, /* a memory file: what the interpreter itself must know (words) */
};

/* A session driver that is started as a program finds its channel here: low, since some
 * interpreters keep only such descriptors from their children. */
enum { GO_SESSION_FD = 3 };
#define GO_SESSION_ENV "VIAL_SESSION_FD=3"

/*
 * Guest side, in C.  Reads up to GO_RUN, writes the files.  What is left for the interpreter
 * is in `words`: every GO_NAME, GO_STAGE, GO_SOURCE, GO_ARG and GO_ENV as its kind's letter, its
 * text and a NUL, in the order they came.  free() it.
 */
struct go_words {
	char *bytes;
	size_t len;
	unsigned file_count; /* written: all that there is in a fresh workspace */
	bool has_key, is_session;
	char key[GO_KEY_LEN];
};

/* Ahead of all that, while nobody waits: an empty file, in which most programs will be.  If it is
 * not among those that come, it is gone again.  The name is not copied. */
void go_make_ready(const char *name);

int go_receive(struct go_words *ret, int control, struct err *e) MUST_USE;

/* Say why there will be no program, and exit.  That nobody is there to tell is no reason. */
_Noreturn void go_fail(int control, const struct err *e);

/* Sender's side: append one record. */
struct buf;
void go_add(struct buf *out, enum go_kind kind, const void *bytes, size_t len);
void go_add_file(struct buf *out, const char *name, const void *bytes, size_t len);
/* As send(), without waiting; `place` goes with it: where files are written.  -1: none. */
ssize_t go_send(int control, const char *bytes, size_t len, int place);
