/* The file of judged forecasts, of any content: what is read is within its bounds, is
 * judged on, and is written so that it is read again.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "signal/facts.h"
#include "signal/judged.h"

enum { NOW_S = 1795696496 }; /* 2026-11-26T12:34:56Z */

static void drop(struct judged **list, size_t n)
{
    while (n > 0)
        free(list[--n]);
}

static void check_judge(const struct judged *d)
{
    must(utf8_is_plain(d->signal) && utf8_is_plain(d->source) && utf8_is_plain(d->unit));
    must(d->judge.n <= JUDGE_OPEN && d->judge.worse < 1u << JUDGE_HORIZONS);
    for (size_t i = 0; i < d->judge.n; i++) {
        const struct judge_case *c = &d->judge.open[i];
        must(c->horizon < JUDGE_HORIZONS && c->issued_utc_s >= 0);
        must(isfinite(c->forecast) && isfinite(c->last) && !isinf(c->yesterday));
    }
}

/* An hour for each of two days before now and one behind. */
static void judge_on(struct judge *j)
{
    enum { HOURS = 72 };
    struct judge_point point[HOURS];
    struct judge_series s = {point, HOURS};
    struct signal_facts f = {.n_judged = 0};

    for (int i = 0; i < HOURS; i++)
        point[i] = (struct judge_point){NOW_S + (i - 48) * 3600, NOW_S + (i - 47) * 3600,
                                        100 + i, i % 7 == 0};
    judge_step(j, NOW_S, NOW_S, &s, &s);
    (void)judge_verdict(j, NOW_S);
    (void)judge_is_over(j, NOW_S);
    facts_judge(&f, j, NOW_S);
    must(j->n <= JUDGE_OPEN && f.n_judged <= JUDGE_HORIZONS);
    for (size_t i = 0; i < f.n_judged; i++)
        must(f.judged[i].score.n == 0 ||
             (isfinite(f.judged[i].score.forecast) && isfinite(f.judged[i].score.last)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct judged *list[JUDGED_MAX] = {NULL}, *again[JUDGED_MAX] = {NULL};
    auto_(mem_free) char *text = NULL;
    size_t n = 0, n_again = 0, waits = 0;
    uw_error err = {""};

    if (judged_read("judged", (const char *)data, size, list, &n, &err) < 0) {
        must(utf8_is_plain(err.text));
        return fuzz_say("refused", "%s", err.text);
    }
    must(n <= JUDGED_MAX);
    for (size_t i = 0; i < n; i++) {
        check_judge(list[i]);
        waits += list[i]->judge.n;
        judge_on(&list[i]->judge);
    }
    (void)fuzz_say("judged", "%zu forecasts, %zu wait", n, waits);
    must(judged_write((const struct judged *const *)list, n, &text, &err) == 0);
    must(judged_read("judged", text, strlen(text), again, &n_again, &err) == 0 &&
         n_again == n);
    drop(again, n_again);
    drop(list, n);
    return 0;
}
