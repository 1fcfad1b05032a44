/* What the files of node.h share. */
#ifndef NODE_NODE_INSIDE_H
#define NODE_NODE_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/node.h"
#include "node/sampler.h"

enum {
    NODE_TICK_MS = 1000,
    NODE_REOPEN_S = 10, /* between looks for boards where there are none */
    REASON_BITS = VIEW_REASONS,
};

/* What the node keeps of a board beside the others' parts. */
struct node_board {
    struct sampler *sampler;
    uint64_t seen_ns; /* the sample that was told to caps last */
    double throttle_s[REASON_BITS];
};

struct node {
    struct loop *loop;
    struct node_opts opts;
    struct node_config config;
    char library[CONFIG_PATH];
    char hostname[CONFIG_WORD];
    struct boards *boards;
    bool open;  /* boards are there */
    bool ready; /* … and on_ready has been called */
    uw_error boards_error;
    struct node_board board[BOARDS_MAX];
    size_t n;
    struct loop_timer *tick, *reopen;
    uint64_t began_ns, ticked_ns;
    node_listen_fn listen;
    void *listen_user;
    int (*on_end)(struct node *node, void *user);
    void *end_user;
    struct loop_timer *end_timer;
    uint64_t config_loads, config_failures;
    struct view_board view_board[BOARDS_MAX];
    struct node_view view;
};

void node_tell(struct node *node, enum node_event event, const void *what);

#endif
