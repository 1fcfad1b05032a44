/* The process that becomes CMD: it waits until the daemon knows its pid.  Started by
 * `run` as `underwatt exec-gate FD CMD [ARG…]`.
 */
#ifndef CLI_GATE_H
#define CLI_GATE_H

#define GATE_WORD "exec-gate"

/* argv: FD CMD ARG….  folders: PATH.  After one byte on FD, executes CMD and closes FD.
 * If that fails, writes errno to FD as an int and returns 126 or 127.  Returns 125 at end
 * of file.
 */
int gate_run(int argc, char **argv, const char *folders);

#endif
