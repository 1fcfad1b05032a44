#include "cli/view.h"

#include <math.h>
#include <string.h>

#include "cli/figures.h"

static const char *const names[SWEEP_METRICS] = {"E", "EDP", "EDS(2)", "EDS(1.5)"};

const char *view_goal_name(const struct view *v, size_t optimum, char buf[VIEW_TEXT])
{
    if (optimum < SWEEP_METRICS)
        (void)snprintf(buf, VIEW_TEXT, "%s", names[optimum]);
    else
        (void)goal_text(&v->sweep->optimum[optimum].goal, buf);
    return buf;
}

const char *view_goal_title(const struct view *v, size_t optimum, char buf[VIEW_TEXT])
{
    char name[VIEW_TEXT];
    bool bound = v->sweep->optimum[optimum].goal.kind == GOAL_SLOWDOWN;

    (void)snprintf(buf, VIEW_TEXT, "%s%.50s", bound ? "" : "min ",
                   view_goal_name(v, optimum, name));
    return buf;
}

const char *view_change(double fraction, bool typeset, char buf[VIEW_TEXT])
{
    double percent = round(fraction * 1000) / 10;
    const char *minus = typeset ? "\u2212" : "-";

    (void)snprintf(buf, VIEW_TEXT, "%s%.1f %%",
                   percent > 0   ? "+"
                   : percent < 0 ? minus
                                 : "",
                   fabs(percent));
    return buf;
}

const char *view_watts(uint32_t mw, char buf[VIEW_TEXT])
{
    (void)snprintf(buf, VIEW_TEXT, "%.10g W", mw / 1000.0);
    return buf;
}

void view_extent(const struct view *v, char *ret, size_t size)
{
    const struct sweep *s = v->sweep;
    unsigned least = s->point[0].runs, most = least;
    char runs[VIEW_TEXT];

    for (size_t i = 0; i < s->n; i++) {
        if (i == s->ref && s->n > 1)
            continue; /* has more runs than the others */
        least = s->point[i].runs < least ? s->point[i].runs : least;
        most = s->point[i].runs > most ? s->point[i].runs : most;
    }
    if (least == most)
        (void)snprintf(runs, sizeof runs, "%u run%s each", most, most == 1 ? "" : "s");
    else
        (void)snprintf(runs, sizeof runs, "%u to %u runs each", least, most);
    if (s->point[s->ref].runs > most)
        (void)snprintf(runs + strlen(runs), sizeof runs - strlen(runs),
                       ", the default limit %u times", s->point[s->ref].runs);
    (void)snprintf(ret, size, "%zu cap%s from %.10g to %.10g W, %s", s->n,
                   s->n == 1 ? "" : "s", s->point[0].cap_mw / 1000.0,
                   s->point[s->n - 1].cap_mw / 1000.0, runs);
}

void view_drift(const struct view *v, bool typeset, char *ret, size_t size)
{
    char t[VIEW_TEXT], e[VIEW_TEXT], known[VIEW_TEXT] = "";
    const char *pm = typeset ? "\u00b1" : "+-";

    ret[0] = '\0';
    if (!v->drift || !v->drift->known)
        return;
    if (isfinite(v->drift->time_half))
        (void)snprintf(known, sizeof known, " (%s%.1f and %s%.1f points)", pm,
                       v->drift->time_half * 100, pm, v->drift->energy_half * 100);
    (void)snprintf(
        ret, size,
        "Over the sweep the %u runs at the default limit changed by %s in time "
        "and %s in energy%s: %s",
        v->drift->refs, view_change(v->drift->time_change, typeset, t),
        view_change(v->drift->energy_change, typeset, e), known,
        !v->drift->drifts ? "no significant drift."
        : v->corrected    ? "this drift was removed from all figures."
                          : "the machine drifted; --correct-drift removes it.");
}

/* Length of the UTF-8 character at p; 0: invalid. */
static size_t character(const unsigned char *p)
{
    size_t n = p[0] < 0x80                   ? 1
               : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
               : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
               : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                             : 0;

    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool too_long = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool no_character = (p[0] == 0xed && p[1] >= 0xa0) || (p[0] == 0xf4 && p[1] >= 0x90);
    return too_long || no_character ? 0 : n;
}

void view_label(const char *text, char *ret, size_t size)
{
    static const char cut[] = "\u2026";
    size_t at = 0, keep = 0; /* length kept if the text is cut */

    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        size_t n = character(p);
        bool plain = n > 0 && *p >= ' ' && *p != 127;
        size_t len = plain ? n : 1;
        if (at + sizeof cut <= size)
            keep = at;
        if (at + len + 1 > size) {
            memcpy(ret + keep, cut, sizeof cut);
            return;
        }
        if (plain)
            memcpy(ret + at, p, n);
        else
            ret[at] = n > 0 ? ' ' : '?';
        at += len;
        p += n > 0 ? n : 1;
    }
    ret[at] = '\0';
}

int view_digits(double value)
{
    return value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
}

struct view_unit view_energy_unit(const struct view *v)
{
    double factor;
    const char *name =
        figure_joules_unit(v->sweep->point[v->sweep->ref].energy_j, &factor);

    return (struct view_unit){1 / factor, name};
}

struct view_unit view_time_unit(const struct view *v)
{
    double s = v->sweep->point[v->sweep->ref].time_s;

    if (s >= 2e4)
        return (struct view_unit){1 / 3600.0, "h"};
    if (s >= 2)
        return (struct view_unit){1, "s"};
    return (struct view_unit){1e3, "ms"};
}
