#pragma once
/*
 * env - the verbs below vial env.
 *
 * Like other verbs: argv[0] is the verb's own name, the return value the exit code.
 */
int env_list_main(int argc, char **argv);
int env_build_main(int argc, char **argv);
int env_show_main(int argc, char **argv);
int env_remove_main(int argc, char **argv);
