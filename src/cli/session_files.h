#pragma once
/*
 * session_files - the verbs of vial session that are about files.
 */
int session_put_main(int argc, char **argv);
int session_get_main(int argc, char **argv);
int session_ls_main(int argc, char **argv);
int session_rm_main(int argc, char **argv);
