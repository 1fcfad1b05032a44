/* What ask.c shares with the two ways to a node: ask-http.c and ask-handler.c. */
#ifndef ASK_ASK_INSIDE_H
#define ASK_ASK_INSIDE_H

#include "ask/ask.h"

/* A request that is not answered yet. */
struct ask_call {
    struct ask_call *next;
    struct ask *ask;
    char *method, *path, *body; /* body NULL: none */
    ask_fn fn;                  /* NULL: the answer is dropped */
    void *user;
    /* Of the two ways. */
    struct httpc_reply reply;
    struct http_local *local;
    int r;
    uw_error error;
};

struct ask_way {
    int (*request)(struct ask *a, struct ask_call *call, uw_error *err);
    /* Ends what a call has begun. */
    void (*drop)(struct ask_call *call);
    void (*free)(struct ask *a);
};

struct ask {
    const struct ask_way *way;
    struct loop *loop;
    struct ask_call *calls;
    bool freed;
};

/* Gives the answer to the call's function and frees the call.  r < 0: no answer. */
int ask_answered(struct ask_call *call, int r, const uw_error *err, unsigned status,
                 const char *body, size_t len);

#endif
