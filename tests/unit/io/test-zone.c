/* Time zones: against the C library's, and damaged files. */
#include "io/zone.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/rng.h"
#include "io/file.h"
#include "tap.h"

static const char *const names[] = {
    "UTC",          "Europe/Berlin",       "America/New_York",  "Asia/Kolkata",
    "Asia/Tokyo",   "Australia/Lord_Howe", "America/Sao_Paulo", "Europe/Dublin",
    "Pacific/Apia", "America/Nuuk",        "Asia/Gaza",         "Antarctica/Troll",
};

/* The C library's offset. */
static int32_t offset_of(int64_t utc_s)
{
    time_t t = (time_t)utc_s;
    struct tm tm;

    (void)localtime_r(&t, &tm);
    return (int32_t)tm.tm_gmtoff;
}

/* The zone, which is the C library's from now on; NULL: this machine does not have it. */
static struct zone *both(const char *name)
{
    struct zone *z = NULL;
    uw_error err = {""};

    if (zone_read(name, &z, &err) < 0) {
        skip_one(name, err.text);
        return NULL;
    }
    (void)setenv("TZ", name, 1);
    tzset();
    return z;
}

/* At random instants of 1950 to 2090: the offset; and that the next change is where the C
 * library's offset changes next.
 */
static void test_zone(const char *name)
{
    auto_(zone_free) struct zone *z = both(name);
    unsigned offsets = 0, changes = 0, early = 0;
    struct zone_now now;
    struct rng g;

    if (!z)
        return;
    rng_init(&g, 1);
    for (int i = 0; i < 20000; i++) {
        int64_t t = -631152000 + (int64_t)rng_below(&g, UINT64_C(4418064000));
        zone_at(z, t, &now);
        offsets += now.offset_s != offset_of(t);
        if (now.change_utc_s == INT64_MAX)
            continue;
        changes += now.change_utc_s <= t || offset_of(now.change_utc_s) != now.after_s ||
                   offset_of(now.change_utc_s - 1) != now.offset_s;
        /* half-way there nothing has changed */
        early += offset_of(t + (now.change_utc_s - t) / 2) != now.offset_s;
    }
    ok(offsets == 0 && changes == 0 && early == 0,
       "%s: %u offsets, %u changes, %u early ones differ", name, offsets, changes, early);
}

static void test_wrong(void)
{
    struct zone *z = NULL;
    uw_error err;

    ok(zone_read("Europe/Berln", &z, &err) == -ENOENT && !z, "a zone that is not known");
    is_str(err.text, "'Europe/Berln' is no time zone known here (/usr/share/zoneinfo)",
           "… and says so");
    ok(zone_read("Europe", &z, &err) < 0 && !z, "a folder of zones");
    ok(zone_read("../zoneinfo/UTC", &z, &err) == -EINVAL,
       "a name that leaves the folder");
    ok(zone_read("/etc/passwd", &z, &err) == -EINVAL, "a path");
    ok(zone_read("", &z, &err) == -EINVAL && !z, "no name");
}

/* Each cut and some changed bytes: refused, or a zone that answers. */
static void test_damaged(void)
{
    auto_(mem_free) char *text = NULL;
    size_t len = 0;
    unsigned refused = 0, answered = 0;
    struct rng g;

    if (file_read(ZONE_FOLDER "/Europe/Berlin", ZONE_FILE_MAX, &text, &len, NULL) < 0) {
        skip_one("damaged files", "no zone files");
        return;
    }
    rng_init(&g, 2);
    for (size_t n = 0; n < len + 2000; n++) {
        auto_(mem_free) char *copy = malloc(len);
        auto_(zone_free) struct zone *z = NULL;
        struct zone_now now;
        if (!copy)
            return;
        memcpy(copy, text, len);
        if (n >= len)
            copy[rng_below(&g, len)] = (char)rng_below(&g, 256);
        if (zone_parse(copy, n < len ? n : len, &z, NULL) < 0) {
            refused++;
            continue;
        }
        answered++;
        zone_at(z, (int64_t)rng_below(&g, UINT64_C(4000000000)), &now);
    }
    ok(refused >= len && answered > 100, "%u damaged files are refused, %u read", refused,
       answered);
}

/* Every half hour of two years as the wall clock shows it: mktime() of the C library, but
 * where it has a choice.
 */
static void test_back(const char *name)
{
    auto_(zone_free) struct zone *z = both(name);
    unsigned wrong = 0, late = 0, skipped = 0;
    struct zone_now now;

    if (!z)
        return;
    for (int64_t wall_s = 1767225600; wall_s < 1830297600; wall_s += 1800) {
        int64_t utc_s = zone_utc_s(z, wall_s);
        zone_at(z, utc_s, &now);
        if (utc_s + now.offset_s != wall_s) {
            skipped++; /* no clock shows it: up to a day on, it must be a change */
            zone_at(z, utc_s - 86400, &now);
            wrong += now.change_utc_s > utc_s || utc_s + now.offset_s != wall_s;
            continue;
        }
        wrong += utc_s + offset_of(utc_s) != wall_s;
        for (int64_t s = utc_s - 7200; s < utc_s; s += 1800)
            late += s + offset_of(s) == wall_s;
    }
    ok(wrong == 0 && late == 0,
       "%s: and back, %u times that no clock shows; %u, %u wrong", name, skipped, wrong,
       late);
}

/* Of TZ, and of the link. */
static void test_own_name(void)
{
    static const struct {
        const char *tz, *link, *want; /* NULL: none */
    } cases[] = {
        {"Europe/Berlin", "/usr/share/zoneinfo/Asia/Tokyo", "Europe/Berlin"},
        {":Europe/Berlin", NULL, "Europe/Berlin"},
        {"/usr/share/zoneinfo/Europe/Berlin", NULL, "Europe/Berlin"},
        {"", "/usr/share/zoneinfo/Asia/Tokyo", "UTC"},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "/usr/share/zoneinfo/Asia/Tokyo", NULL},
        {"/home/anna/zone", NULL, NULL},
        {NULL, "/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"},
        {NULL, "../usr/share/zoneinfo/America/Argentina/Salta",
         "America/Argentina/Salta"},
        {NULL, "/etc/zone", NULL},
        {NULL, "", NULL},
        {NULL, NULL, "UTC"},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        char name[ZONE_NAME_MAX + 1] = "";
        uw_error err = {""};
        int r = zone_own_name(cases[i].tz, cases[i].link, name, &err);
        if (cases[i].want)
            is_str(name, cases[i].want, cases[i].want);
        else
            ok(r == -EINVAL && !name[0] && err.text[0], "none: %s", err.text);
    }
}

int main(void)
{
    for (size_t i = 0; i < n_elements(names); i++)
        test_zone(names[i]);
    for (size_t i = 0; i < n_elements(names); i++)
        test_back(names[i]);
    test_own_name();
    test_wrong();
    test_damaged();
    return done();
}
