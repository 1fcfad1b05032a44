/* A file in which a process keeps its state over restarts: read at the start, written to
 * a temporary file and renamed, at most once a minute.
 *
 * Owns: the text that is being written.  Touches: the file, in a worker's thread. Thread:
 * the loop's.
 */
#ifndef IO_KEPT_FILE_H
#define IO_KEPT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/loop.h"
#include "underwatt/error.h"

enum { KEPT_FILE_PATH = 640 };

struct kept_file {
    char path[KEPT_FILE_PATH];  /* "": none, nothing is read or written */
    struct loop_worker *worker; /* borrowed */
    /* state: "ignored" (by kept_file_say()), or "not-written", once until a write works
     */
    void (*say)(const char *state, const char *why, void *user);
    void *user;
    uint64_t saved_ns;
    bool saving; /* the worker has the text */
    bool fails;
    bool ends; /* say() is no longer called */
    char *text;
    uw_error why;
};

/* The file FOLDER/NAME.json; folder NULL or "": none. */
void kept_file_init(struct kept_file *f, const char *folder, const char *name,
                    struct loop_worker *worker,
                    void (*say)(const char *state, const char *why, void *user),
                    void *user);
/* The file's text, free() it; its -errno, -ENOENT also where there is none. */
int kept_file_read(const struct kept_file *f, char **ret_text, size_t *ret_len,
                   uw_error *why);
void kept_file_say(const struct kept_file *f, const char *state, const char *why);
/* Whether a text would be written now. */
bool kept_file_due(const struct kept_file *f, uint64_t now_ns);
/* Takes the text, unless another one is being written. */
void kept_file_write(struct kept_file *f, char *text, uint64_t now_ns);

#endif
