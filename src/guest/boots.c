#include "guest/boots.h"

#define BOOT      "run/vial/boot/"
#define SESSION   BOOT "session/"
#define REHEARSAL "sandbox/" /* the default workspace, which a guest has one of its own over */

/* One row per file: its name in meson.build, whose it is, where it lies. */
#define BOOTS(X)                                                            \
	X(guest_so, NULL, BOOT "guest.so")                                  \
	X(rewind_so, NULL, BOOT "rewind.so")                                \
	X(python, "python", BOOT "sitecustomize.py")                        \
	X(python_main, "python", REHEARSAL "main.py")                       \
	X(python_cold, "python", BOOT "cold.py")                            \
	X(python_session___init__, "python", SESSION "__init__.py")         \
	X(python_session_callbacks, "python", SESSION "callbacks.py")       \
	X(python_session_channel, "python", SESSION "channel.py")           \
	X(python_session_failure, "python", SESSION "failure.py")           \
	X(python_session_interrupt, "python", SESSION "interrupt.py")       \
	X(python_session_policy, "python", SESSION "policy.py")             \
	X(python_session_rewind, "python", SESSION "rewind.py")             \
	X(python_session_rich, "python", SESSION "rich.py")                 \
	X(python_session_serving, "python", SESSION "serving.py")           \
	X(python_session_step, "python", SESSION "step.py")                 \
	X(python_session_streams, "python", SESSION "streams.py")           \
	X(python_session_values, "python", SESSION "values.py")             \
	X(node, "javascript", BOOT "boot.js")                               \
	X(node_session, "javascript", BOOT "session.js")                    \
	X(node_session_code, "javascript", BOOT "session-code.js")          \
	X(node_session_say, "javascript", BOOT "session-say.js")            \
	X(ruby, "ruby", BOOT "boot.rb")                                     \
	X(ruby_main, "ruby", REHEARSAL "main.rb")                           \
	X(ruby_session, "ruby", BOOT "session.rb")                          \
	X(bash_session, "bash", BOOT "session.sh")                          \
	X(bash_step, "bash", BOOT "step.sh")

/* By tools/embed. */
#define DECLARE(name, language, path) \
	extern const char boot_##name[]; \
	extern const size_t boot_##name##_len;
BOOTS(DECLARE)
#undef DECLARE

#define ROW(name, language, path) { language, path, boot_##name, &boot_##name##_len },
const struct boot_file boot_files[] = { BOOTS(ROW){ 0 } };
#undef ROW
