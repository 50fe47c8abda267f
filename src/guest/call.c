#include "guest/call.h"

#include "guest/go.h"
#include "guest/python.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

int call_take_code(void)
{
	vial_receive();
	python_set_loading_time();
	bool has_words = fcntl(GO_WORDS_FD, F_GETFD) >= 0;
	return python_told(has_words, vial_has_session(), vial_file_count()) |
	       (has_words ? CALL_HAS_WORDS : 0) | (vial_has_session() ? CALL_SESSION : 0) |
	       (vial_is_rehearsal() ? CALL_REHEARSAL : 0);
}

static int wait_for_code(void)
{
	python_renew();
	if (vial_has_session())
		return call_take_code();
	if (!vial_is_rehearsal() && python_usual_name()) /* that one has its program already */
		go_make_ready(python_usual_name());
	return vial_may_wait_late() && python_wait_late() ? CALL_LATER : call_take_code();
}

__attribute__((visibility("default"))) int getpriority(__priority_which_t which, id_t who)
{
	int answer = 0;

	switch ((unsigned)which ? (unsigned)which : who) {
	case CALL_LOADING:
		python_loading();
		break;
	case CALL_PREPARE:
		answer = python_prepare();
		break;
	case CALL_SERVE:
		vial_serve();
		break;
	case CALL_WAIT:
		answer = wait_for_code();
		break;
	case CALL_REHEARSED:
		vial_rehearsed();
		break;
	case CALL_AFRESH:
		start_afresh();
	default: {
		int (*real)(__priority_which_t, id_t) =
			(int (*)(__priority_which_t, id_t))dlsym(RTLD_NEXT, "getpriority");
		return real(which, who);
	}
	}
	errno = 0; /* by which a caller tells a failure from a priority of -1 */
	return answer;
}
