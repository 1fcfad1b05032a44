/* A job's progress as the node sees it: its page read again and again, the steps of its
 * processes, whether they are stopped.  The page was made here (`underwatt run` in local
 * mode) or handed over by its maker (the daemon).  Where nobody tells steps and the page
 * has room for launches, the steps are those that the launches show.
 */
#ifndef NODE_PAGE_H
#define NODE_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "core/progress/launches.h"
#include "core/progress/rate.h"
#include "core/progress/steps.h"
#include "io/loop.h"
#include "io/progress.h"
#include "underwatt/error.h"

struct page;

typedef int (*page_steps_fn)(const struct steps *steps, uint64_t now_ns, void *user);

struct page_opts {
    struct loop *loop;
    uint64_t poll_ns;       /* between looks; 0: 100 ms */
    page_steps_fn on_steps; /* after each look; may be NULL */
    void *user;
    /* What the job may cost in looking for steps, which outlives the page; NULL: one of
     * the page's own.
     */
    struct launches_budget *budget;
};
/* Takes the file over, on success alone.  Looks from the next poll on. */
int page_new(const struct page_opts *opts, struct progress_page *file, struct page **ret,
             uw_error *err);
void page_free(struct page *p);
DEFINE_AUTO(struct page *, page_free);

const char *page_path(const struct page *p); /* "": handed over, or over */
const struct steps *page_steps(const struct page *p);
/* Did some process that reports live at the last look?  (False before the first.) */
bool page_alive(const struct page *p);
/* What the launches show so far, in words for a human; "": the page has no room for them.
 */
enum { PAGE_LAUNCHES = 96 };
void page_launches(const struct page *p, char ret[PAGE_LAUNCHES]);
/* Their rate; borrowed until page_free(), NULL: no room for them. */
struct rate *page_rate(const struct page *p);
/* A last look: the job is over, who was alive when anybody last was counts as live.  The
 * file is let go of.  Once.
 */
int page_end(struct page *p);

/* Every process that reports is stopped (T of ps); own's alone where none does (0: no
 * such).  Reads /proc; never on a virtual loop.
 */
bool page_stopped(const struct page *p, pid_t own);
/* Is pid own or a descendant of it?  Reads /proc; on a virtual loop own alone. */
bool page_owns(const struct loop *loop, pid_t own, pid_t pid);

#endif
