/* Answers where memory is short: each allocation fails once. */
#include "oom.h"
#include "source-play.h"

static const struct {
    const char *type, *zone, *unit, *as, *file, *body;
    unsigned given;
} kinds[] = {
    {"uk", "", "", "", "",
     "{\"data\":[{\"from\":\"2026-11-26T12:30Z\",\"to\":\"2026-11-26T13:00Z\","
     "\"intensity\":{\"forecast\":250,\"actual\":null}}]}",
     0},
    {"entsoe", "10YFR-RTE------C", "", "", "",
     "<Publication_MarketDocument><TimeSeries><currency_Unit.name>EUR</"
     "currency_Unit.name>"
     "<price_Measure_Unit.name>MWH</price_Measure_Unit.name><Period><timeInterval>"
     "<start>2026-11-26T12:00Z</start><end>2026-11-26T13:00Z</end></timeInterval>"
     "<resolution>PT60M</resolution><Point><position>1</position>"
     "<price.amount>70</price.amount></Point></Period></TimeSeries>"
     "</Publication_MarketDocument>",
     KEY_ZONE | KEY_KEY_FILE},
    {"csv", "", "EUR/MWh", "x", "/t.csv", "2026-11-26T12:00Z,80\n2026-11-26T13:00Z,90\n",
     KEY_FILE | KEY_UNIT},
};

static int take_one(void *user)
{
    auto_(source_values_fini) struct source_values v = {.n = 0};
    const struct play *begin = user;
    struct source_state s = begin->s;
    enum source_outcome outcome = SOURCE_OUTCOMES;
    struct source_answer a = {.status = 200, .utc_s = begin->utc_s, .modified_utc_s = 0};

    a.body = begin->secret;
    a.len = strlen(a.body);
    int r = source_take(&begin->c, NULL, &s, &a, &outcome, &v, NULL);
    if (r == -ENOMEM && s.step != begin->s.step)
        return -EBUSY; /* it has moved on without the answer */
    return r < 0 ? r : outcome == SOURCE_VALUES ? 0 : -EINVAL;
}

int main(void)
{
    for (size_t i = 0; i < n_elements(kinds); i++) {
        struct play p = {.secret = NULL};
        (void)snprintf(p.c.zone, sizeof p.c.zone, "%s", kinds[i].zone);
        (void)snprintf(p.c.unit, sizeof p.c.unit, "%s", kinds[i].unit);
        (void)snprintf(p.c.as, sizeof p.c.as, "%s", kinds[i].as);
        (void)snprintf(p.c.file, sizeof p.c.file, "%s", kinds[i].file);
        p.c.given = kinds[i].given;
        (void)checked(&p, kinds[i].type);
        p.secret = kinds[i].body; /* the answer, for take_one() */
        (void)ask_next(&p);
        oom_each(kinds[i].type, take_one, &p);
    }
    return done();
}
