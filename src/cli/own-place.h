/* Where the nodes of a user's own commands listen (ask/own-node.h): the user's runtime
 * folder.  Nodes of a simulated world have its name in theirs.
 */
#ifndef CLI_OWN_PLACE_H
#define CLI_OWN_PLACE_H

#include <stddef.h>

#include "ask/own-node.h"
#include "cli/cmd.h"
#include "underwatt/error.h"

/* In a folder of one process: its node's socket, and that for progress pages. */
#define OWN_PLACE_NODE "node.sock"
#define OWN_PLACE_JOB "job.sock"
enum { OWN_PLACE_PATH = 108 };

struct own_place {
    char dir[80];   /* "": none can be had, and nobody else can look */
    char world[48]; /* "": real boards */
};

/* Makes the folder, and removes the sockets and folders of commands that were killed. */
void own_place_open(const struct cli_env *env, const char *boards, struct own_place *ret);

/* Makes a folder of this process, "keep-PID", where no other user can look, and a link to
 * OWN_PLACE_NODE in it from where others look for nodes.  -EACCES, -EPERM: none can be
 * had.
 */
int own_place_folder(const struct own_place *place, char *ret, size_t size,
                     uw_error *err);
/* Removes both; also where there are none. */
void own_place_remove_folder(const struct own_place *place);

/* What each command gives a node of its own: the boards' source, the loop, the place;
 * further options are the command's.  Borrowed by the node while own_node_new() runs.
 */
struct own_setup {
    struct node_opts node;
    struct own_node_opts own;
    struct own_place place;
};
/* Turns logging off: the command says what its user has to know. */
void own_setup(const struct cli_env *env, const char *boards, struct loop *loop,
               struct own_setup *ret);

/* Calls fn with the socket's path and the process of each node there. */
typedef void (*own_place_fn)(const char *path, int pid, void *user);
void own_place_each(const struct own_place *place, own_place_fn fn, void *user);

#endif
