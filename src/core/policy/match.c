#include "core/policy/match.h"

#include <string.h>

bool policy_wildcard(const char *pattern, const char *text)
{
    const char *star = NULL, *from = NULL;

    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            from = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            /* the last star takes one more character */
            pattern = star + 1;
            text = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static bool term_matches(const struct policy_term *term, const struct policy_fact *fact)
{
    if (strcmp(term->key, fact->key) != 0)
        return false;
    for (size_t i = 0; i < term->n; i++)
        if (policy_wildcard(term->pattern[i], fact->value))
            return true;
    return false;
}

bool policy_matches(const struct policy_match *match, const struct policy_facts *facts)
{
    for (size_t i = 0; i < match->n; i++) {
        bool found = false;
        for (size_t k = 0; k < facts->n && !found; k++)
            found = term_matches(&match->term[i], &facts->fact[k]);
        if (!found)
            return false;
    }
    return true;
}

/* Whether each text that a pattern of `narrow` matches is matched by a pattern of
 * `wide`: the stars of `wide` match those of `narrow` literally.
 */
static bool term_covers(const struct policy_term *wide, const struct policy_term *narrow)
{
    if (strcmp(wide->key, narrow->key) != 0)
        return false;
    for (size_t i = 0; i < narrow->n; i++) {
        bool found = false;
        for (size_t k = 0; k < wide->n && !found; k++)
            found = policy_wildcard(wide->pattern[k], narrow->pattern[i]);
        if (!found)
            return false;
    }
    return true;
}

bool policy_match_covers(const struct policy_match *wide,
                         const struct policy_match *narrow)
{
    for (size_t i = 0; i < wide->n; i++) {
        bool found = false;
        for (size_t k = 0; k < narrow->n && !found; k++)
            found = term_covers(&wide->term[i], &narrow->term[k]);
        if (!found)
            return false;
    }
    return true;
}
