#include "core/job/lifetime.h"

#include <string.h>

static bool is_late(const struct lifetime *l, uint64_t now_ns)
{
    uint64_t age_ns = now_ns - l->began_ns;

    return l->limit_ns && age_ns >= LIFETIME_ALONE_NS &&
           age_ns - LIFETIME_ALONE_NS >= l->limit_ns;
}

/* The verdict before the job's first step: after salloc, a job may wait for it. */
static enum lifetime_end before_the_first(const struct lifetime *l, uint64_t now_ns)
{
    if (is_late(l, now_ns))
        return LIFETIME_IS_LATE;
    if (l->followed_ns && now_ns - l->followed_ns >= LIFETIME_ALONE_NS)
        return LIFETIME_IS_FOLLOWED;
    return !l->limit_ns && now_ns - l->began_ns >= LIFETIME_UNSEEN_NS ? LIFETIME_IS_UNSEEN
                                                                      : LIFETIME_GOES_ON;
}

enum lifetime_end lifetime_look(struct lifetime *l, enum lifetime_seen seen,
                                bool followed, uint64_t now_ns)
{
    if (seen != LIFETIME_NOBODY) {
        l->had |= seen == LIFETIME_SOMEBODY;
        l->alone_ns = l->followed_ns = 0;
        return LIFETIME_GOES_ON;
    }
    if (!l->alone_ns)
        l->alone_ns = now_ns;
    if (followed && !l->followed_ns)
        l->followed_ns = now_ns;
    if (l->had && followed)
        return LIFETIME_IS_REPLACED;
    if (now_ns - l->alone_ns < LIFETIME_ALONE_NS)
        return LIFETIME_GOES_ON;
    return l->had ? LIFETIME_IS_ALONE : before_the_first(l, now_ns);
}

bool lifetime_may_come_back(const struct lifetime *l, uint64_t ended_ns, uint64_t now_ns)
{
    uint64_t ago_ns = now_ns - ended_ns;

    return ago_ns <= LIFETIME_BACK_NS ||
           (l->limit_ns ? !is_late(l, now_ns) : ago_ns <= LIFETIME_OPEN_NS);
}

uint64_t lifetime_stepd(const char *cmdline, size_t n)
{
    static const char title[] = "slurmstepd: [";
    size_t at = sizeof title - 1;
    uint64_t job = 0;

    if (n <= at || memcmp(cmdline, title, at) != 0 || cmdline[at] == '0')
        return 0;
    for (; at < n && cmdline[at] >= '0' && cmdline[at] <= '9'; at++) {
        job = job * 10 + (uint64_t)(cmdline[at] - '0');
        if (job > UINT32_MAX)
            return 0;
    }
    return at < n && cmdline[at] == '.' ? job : 0;
}
