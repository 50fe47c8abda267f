#include "cli/editor.h"

#include <errno.h>
#include <histedit.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum { HISTORY_MAX = 2000 };

struct editor {
	EditLine *line; /* NULL: stdin is no terminal */
	History *history;
	HistEvent event;
	const char *prompt, *file;
	char *plain; /* the last line, when there is no terminal */
	size_t room;
	sigset_t mask; /* while it waits for a key: at no other time does a signal come */
};

static char *prompt_of(EditLine *line)
{
	struct editor *ed = NULL;

	(void)el_get(line, EL_CLIENTDATA, &ed);
	return (char *)ed->prompt;
}

/* As libedit's own, but that it does not miss a signal that came before it had begun to wait. */
static int next_char(EditLine *line, wchar_t *ret)
{
	struct pollfd in = { STDIN_FILENO, POLLIN, 0 };
	mbstate_t state = { 0 };
	struct editor *ed = NULL;
	char byte;

	(void)el_get(line, EL_CLIENTDATA, &ed);
	for (;;) {
		if (ppoll(&in, 1, NULL, &ed->mask) < 0)
			return -1;
		ssize_t n = read(STDIN_FILENO, &byte, 1);
		if (n <= 0)
			return (int)n;
		*ret = (unsigned char)byte;
		size_t len = MB_CUR_MAX > 1 ? mbrtowc(ret, &byte, 1, &state) : 1;
		if (len == (size_t)-1)
			state = (mbstate_t){ 0 }; /* no character: the next byte may be one */
		else if (len != (size_t)-2)
			return 1;
	}
}

void editor_free(struct editor *ed)
{
	if (!ed)
		return;
	if (ed->history && ed->file)
		(void)history(ed->history, &ed->event, H_SAVE, ed->file);
	if (ed->line)
		el_end(ed->line);
	if (ed->history)
		history_end(ed->history);
	free(ed->plain);
	free(ed);
}

int editor_create(struct editor **ret, const char *file, struct err *e)
{
	AUTO(editor_freep) struct editor *ed = calloc(1, sizeof(*ed));

	if (!ed)
		return err_sys(e, "editor");
	if (isatty(STDIN_FILENO)) {
		ed->history = history_init();
		ed->line = el_init("vial", stdin, stdout, stderr);
		if (!ed->history || !ed->line)
			return err_set(e, ERR_SYS, "this terminal cannot be edited on");
		(void)history(ed->history, &ed->event, H_SETSIZE, HISTORY_MAX);
		(void)history(ed->history, &ed->event, H_SETUNIQUE, 1);
		(void)el_set(ed->line, EL_CLIENTDATA, ed);
		(void)el_set(ed->line, EL_PROMPT, prompt_of);
		(void)el_set(ed->line, EL_EDITOR, "emacs");
		(void)el_set(ed->line, EL_HIST, history, ed->history);
		(void)el_set(ed->line, EL_SIGNAL, 0); /* Ctrl-C is the caller's */
		(void)el_set(ed->line, EL_GETCFN, next_char);
		(void)el_source(ed->line, NULL);      /* ~/.editrc */
		ed->file = file;
		if (file)
			(void)history(ed->history, &ed->event, H_LOAD, file);
	}
	*ret = take_ptr(&ed);
	return 0;
}

static int take_line(const char **ret, size_t *ret_len, const char *text, ssize_t len)
{
	*ret = text;
	*ret_len = (size_t)len - (len > 0 && text[len - 1] == '\n');
	return 1;
}

int editor_line(const char **ret, size_t *ret_len, struct editor *ed, const char *prompt)
{
	int count = 0;

	errno = 0;
	if (!ed->line) {
		ssize_t len = getline(&ed->plain, &ed->room, stdin);
		if (len >= 0)
			return take_line(ret, ret_len, ed->plain, len);
		if (errno != EINTR)
			return 0;
		clearerr(stdin);
		return -1;
	}
	ed->prompt = prompt;
	sigset_t interrupt;
	(void)sigemptyset(&interrupt);
	(void)sigaddset(&interrupt, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &interrupt, &ed->mask);
	(void)el_set(ed->line, EL_PREP_TERM, 1); /* before who sees the prompt types a Ctrl-D */
	const char *text = el_gets(ed->line, &count);
	int why = errno;
	(void)sigprocmask(SIG_SETMASK, &ed->mask, NULL);
	errno = why;
	if (text && count > 0)
		return take_line(ret, ret_len, text, count);
	if (count < 0 && errno == EINTR) {
		(void)el_set(ed->line, EL_REFRESH);
		return -1;
	}
	return 0;
}

void editor_remember(struct editor *ed, const char *text)
{
	if (ed->history && text[0])
		(void)history(ed->history, &ed->event, H_ENTER, text);
}
