#pragma once
/*
 * attach - vial session attach: a terminal in the sandbox of a session.
 */
int session_attach_main(int argc, char **argv);
