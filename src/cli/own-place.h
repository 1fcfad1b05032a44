/* Where the nodes of a user's own commands listen (ask/own-node.h): the user's runtime
 * folder.  Nodes of a simulated world have its name in theirs.
 */
#ifndef CLI_OWN_PLACE_H
#define CLI_OWN_PLACE_H

#include <stddef.h>

#include "ask/own-node.h"
#include "cli/cmd.h"
#include "underwatt/error.h"

struct own_place {
    char dir[80];   /* "": none can be had, and nobody else can look */
    char world[48]; /* "": real boards */
};

/* Makes the folder, and removes the sockets of commands that were killed. */
void own_place_open(const struct cli_env *env, const char *boards, struct own_place *ret);

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
