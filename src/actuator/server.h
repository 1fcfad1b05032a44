/* The guard's sockets: the socket that a command passed on (local mode), or the listening
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
    struct guard *guard; /* NULL: no request can be served, and excuse has the reason */
    const uid_t
        *client; /* uids that may connect besides root and this process's uid; borrowed */
    size_t n_clients;
    const struct gpu_counters *counters; /* passed to clients; or NULL */
    const char *excuse;
    void (*say)(const char *text, void *user);
    /* Local mode: the client has disconnected. */
    void (*on_gone)(void *user);
    void *user;
};

/* Serves one client at this socket, which is taken over.  The client is authorized
 * because it passed the socket to this process.
 */
int server_new_local(const struct server_opts *opts, int fd, struct server **ret,
                     uw_error *err);
/* Serves clients at this listening socket.  Other uids than those above are refused; each
 * is logged once.
 */
int server_new_listening(const struct server_opts *opts, int fd, struct server **ret,
                         uw_error *err);
/* Creates PATH as a listening socket of mode 0600; replaces an old one.  owner: the owner
 * of the socket, where this can be set; (uid_t)-1: this process's uid.
 */
int server_bind(const char *path, uid_t owner, int *ret_fd, uw_error *err);
/* Ends the sessions. */
void server_free(struct server *server);
DEFINE_AUTO(struct server *, server_free);

#endif
