/* CMD's process before it is CMD: waits for a word, so that the daemon knows its pid
 * before its first instruction.  `underwatt exec-gate FD CMD [ARG…]`, for `run` alone.
 */
#ifndef CLI_GATE_H
#define CLI_GATE_H

#define GATE_WORD "exec-gate"

/* argv: FD CMD ARG….  One byte on FD: CMD is executed (FD is closed then; where that
 * fails errno is written to it as an int, and 126 or 127 returned); its end: 125.
 */
int gate_run(int argc, char **argv);

#endif
