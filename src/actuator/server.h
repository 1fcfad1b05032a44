/* The guard's sockets: the one that a command handed over (local mode), or the listening
 * one (service).
 */
#ifndef ACTUATOR_SERVER_H
#define ACTUATOR_SERVER_H

#include "actuator/guard.h"
#include "base/auto.h"
#include "io/loop.h"
#include "underwatt/error.h"

struct server;

struct server_opts {
    struct loop *loop;
    struct guard *guard; /* NULL: nothing can be done, and excuse says why */
    const uid_t *client; /* who may connect besides root and our own uid; borrowed */
    size_t n_clients;
    const struct gpu_counters *counters; /* handed to clients; or NULL */
    const char *excuse;
    void (*say)(const char *text, void *user);
    /* Local mode: the client has gone. */
    void (*on_gone)(void *user);
    void *user;
};

/* One client at this socket, which is taken over.  Its right to be here is that
 * whoever started this process handed it over.
 */
int server_new_local(const struct server_opts *opts, int fd, struct server **ret,
                     uw_error *err);
/* Clients connect to this listening socket.  Others than those above are refused, once
 * each is said so.
 */
int server_new_listening(const struct server_opts *opts, int fd, struct server **ret,
                         uw_error *err);
/* PATH as a listening socket of mode 0600; an old one is replaced.  owner: whose it is
 * to be, where that can be done; (uid_t)-1: ours.
 */
int server_bind(const char *path, uid_t owner, int *ret_fd, uw_error *err);
/* Ends the sessions. */
void server_free(struct server *server);
DEFINE_AUTO(struct server *, server_free);

#endif
