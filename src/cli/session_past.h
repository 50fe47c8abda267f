#pragma once
/*
 * session_past - the verbs of vial session that are about what a session was, and might become.
 */
int session_undo_main(int argc, char **argv);
int session_fork_main(int argc, char **argv);
int session_checkpoint_main(int argc, char **argv);
int session_checkpoints_main(int argc, char **argv);
int session_restore_main(int argc, char **argv);
int session_forget_main(int argc, char **argv);
