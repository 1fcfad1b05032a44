#include "signal/facts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "signal/held-utc.h"

enum { HORIZON_MAX_S = 30 * 86400 };

void facts_judge(struct signal_facts *f, const struct judge *j, int64_t utc_s)
{
    f->n_judged = 0;
    for (size_t h = 0; h < JUDGE_HORIZONS; h++) {
        struct signal_judged *to = &f->judged[f->n_judged];
        if (!judge_score(j, h, utc_s, &to->score))
            continue;
        to->horizon_s = judge_horizon_s(h);
        to->worse = j->worse >> h & 1;
        f->n_judged++;
    }
}

const char *facts_worse(const struct signal_facts *f, char ret[FACTS_WORSE])
{
    size_t n = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < f->n_judged && n < FACTS_WORSE; i++)
        if (f->judged[i].worse)
            n += (size_t)snprintf(ret + n, FACTS_WORSE - n, "%s%.6g h", n ? ", " : "",
                                  (double)f->judged[i].horizon_s / 3600);
    return ret;
}

/* ---- writing ---- */

static void show_judged(struct json_out *o, const struct signal_judged *j)
{
    const struct judge_score *s = &j->score;

    json_out_object(o, NULL);
    json_out_int(o, "horizon_s", j->horizon_s);
    json_out_int(o, "n", (int64_t)s->n);
    json_out_int(o, "missed", (int64_t)s->missed);
    json_out_known_double(o, "mae", s->n > 0, s->forecast);
    json_out_known_double(o, "persistence_mae", s->n > 0, s->last);
    json_out_known_double(o, "yesterday_mae", s->n_yesterday > 0, s->yesterday);
    json_out_bool(o, "worse", j->worse);
    json_out_end(o);
}

void facts_show(struct json_out *o, const struct signal_facts *f)
{
    if (f->asked.by[0]) {
        json_out_object(o, "asked");
        json_out_text(o, "by", f->asked.by);
        json_out_int(o, "requests", (int64_t)f->asked.requests);
        json_out_int(o, "failures", (int64_t)f->asked.failures);
        held_put_utc(o, "success_utc", f->asked.success_utc_s);
        held_put_utc(o, "next_utc", f->asked.next_utc_s);
        json_out_end(o);
    } else {
        json_out_null(o, "asked");
    }
    json_out_array(o, "judged");
    for (size_t i = 0; i < f->n_judged; i++)
        show_judged(o, &f->judged[i]);
    json_out_end(o);
}

/* ---- reading ---- */

/* A mean of absolute errors, or null. */
static bool read_mean(const struct json_value *v, const char *key, bool must, double *ret)
{
    const struct json_value *at = json_get(v, key);

    *ret = (double)NAN;
    return (!must && json_is_none(at)) ||
           (json_as_double(at, ret) && isfinite(*ret) && *ret >= 0);
}

static bool read_judged(const struct json_value *v, struct signal_judged *ret)
{
    struct signal_judged j = {.worse = false};
    uint64_t horizon = 0;

    if (!json_as_u64(json_get(v, "horizon_s"), &horizon) || horizon > HORIZON_MAX_S ||
        !json_as_u64(json_get(v, "n"), &j.score.n) ||
        !json_as_u64(json_get(v, "missed"), &j.score.missed) ||
        !read_mean(v, "mae", j.score.n > 0, &j.score.forecast) ||
        !read_mean(v, "persistence_mae", j.score.n > 0, &j.score.last) ||
        !read_mean(v, "yesterday_mae", false, &j.score.yesterday) ||
        !json_as_bool(json_get(v, "worse"), &j.worse))
        return false;
    j.horizon_s = (int64_t)horizon;
    j.score.n_yesterday = isfinite(j.score.yesterday) ? j.score.n : 0;
    *ret = j;
    return true;
}

static void read_asked(const struct json_value *v, struct signal_asked *ret)
{
    const char *by = json_as_text(json_get(v, "by"));
    struct signal_asked a = {.by = ""};

    if (!by || !by[0] || strlen(by) >= sizeof a.by || !utf8_is_plain(by) ||
        !json_as_u64(json_get(v, "requests"), &a.requests) ||
        !json_as_u64(json_get(v, "failures"), &a.failures) ||
        !held_read_utc(v, "success_utc", &a.success_utc_s) ||
        !held_read_utc(v, "next_utc", &a.next_utc_s))
        return;
    (void)snprintf(a.by, sizeof a.by, "%s", by);
    *ret = a;
}

void facts_read(const struct json_value *signal, struct signal_facts *ret)
{
    const struct json_value *list = json_get(signal, "judged");
    struct signal_facts f = {.n_judged = 0};

    read_asked(json_get(signal, "asked"), &f.asked);
    if (!held_read_utc(signal, "issued_utc", &f.issued_utc_s))
        f.issued_utc_s = 0;
    for (size_t i = 0; i < json_count(list) && f.n_judged < JUDGE_HORIZONS; i++)
        if (read_judged(json_at(list, i), &f.judged[f.n_judged]))
            f.n_judged++;
    *ret = f;
}
