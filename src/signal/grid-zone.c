#include "signal/grid-zone.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/utf8.h"

static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
static const char part_bytes[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

static bool is_formed(const char *zone)
{
    if (strlen(zone) > GRID_ZONE_MAX || strspn(zone, capitals) != 2)
        return false;
    for (zone += 2; *zone == '-';) {
        size_t n = strspn(++zone, part_bytes);
        if (n == 0)
            return false;
        zone += n;
    }
    return !*zone;
}

/* Common names of a country, and its code. */
static const char *const often[][2] = {{"UK", "GB"}, {"EL", "GR"}, {"USA", "US"}};

/* The next line of the table that is not a comment: code and name; false: none is left.
 */
static bool next_country(const char **at, char code[3], char name[64])
{
    while (**at) {
        const char *line = *at;
        size_t n = strcspn(line, "\n");
        *at += n + (line[n] == '\n');
        if (n < 4 || strspn(line, capitals) != 2 || line[2] != '\t')
            continue;
        (void)snprintf(code, 3, "%.2s", line);
        (void)snprintf(name, 64, "%.*s", (int)(n - 3), line + 3);
        return true;
    }
    return false;
}

/* XK (Kosovo) is no code of the standard; the European Union and Electricity Maps use it.
 */
static bool is_country(const char *countries, const char *text, size_t n)
{
    char code[3], name[64];

    if (n != 2)
        return false;
    if (strncmp(text, "XK", 2) == 0)
        return true;
    while (next_country(&countries, code, name))
        if (strncmp(code, text, 2) == 0)
            return true;
    return false;
}

/* The one country whose name begins with the text, else the one with the nearest name;
 * false: none.
 */
static bool by_name(const char *countries, const char *text, size_t n, char ret[3])
{
    struct nearest near = {0};
    char code[3], name[64];
    size_t begins = 0;

    for (const char *at = countries; n >= 3 && next_country(&at, code, name);) {
        if (strncasecmp(name, text, n) != 0)
            continue;
        begins++;
        memcpy(ret, code, sizeof code);
    }
    if (begins > 0)
        return begins == 1;
    for (const char *at = countries; n > 3 && next_country(&at, code, name);) {
        struct nearest before = near;
        nearest_try(&near, text, n, name);
        if (near.word && (!before.word || near.distance < before.distance))
            memcpy(ret, code, sizeof code);
    }
    return near.word != NULL;
}

/* The code for which the first n characters are often mistaken; NULL. */
static const char *mistaken(const char *text, size_t n)
{
    for (size_t i = 0; i < n_elements(often); i++)
        if (strlen(often[i][0]) == n && strncmp(often[i][0], text, n) == 0)
            return often[i][1];
    return NULL;
}

/* The zone that was probably intended; "". */
static void guess(const char *zone, const char *countries, char ret[GRID_ZONE_MAX + 3])
{
    size_t n = strcspn(zone, "-");
    char big[GRID_ZONE_MAX + 1], code[3];
    const char *to;

    ret[0] = '\0';
    if (strlen(zone) > GRID_ZONE_MAX)
        return;
    for (size_t i = 0; i <= strlen(zone); i++)
        big[i] = (char)toupper((unsigned char)zone[i]);
    to = mistaken(big, n);
    if (!to && countries && !is_country(countries, big, n) &&
        by_name(countries, zone, n, code))
        to = code;
    if (to)
        (void)snprintf(ret, GRID_ZONE_MAX + 3, "%s%s", to, big + n);
    else if (countries && is_country(countries, big, n))
        memcpy(ret, big, strlen(big) + 1);
    if (!is_formed(ret))
        ret[0] = '\0';
}

int grid_zone_check(const char *zone, const char *countries, uw_error *err)
{
    char near[GRID_ZONE_MAX + 3];
    const char *shown = utf8_is_plain(zone) ? zone : "?";
    bool formed = is_formed(zone);

    if (formed && (!countries || is_country(countries, zone, 2)))
        return 0;
    guess(zone, countries, near);
    return fail(err, -EINVAL, "'%.40s' is not a zone of the grid: %s%s%s%s", shown,
                !formed ? "a country in two capital letters and parts of it "
                          "(DE, US-CAL-CISO)"
                        : "no country has this code",
                near[0] ? "; did you mean '" : "", near, near[0] ? "'?" : "");
}
