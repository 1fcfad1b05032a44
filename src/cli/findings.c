#include "cli/findings.h"

#include <stdarg.h>

#include "base/names.h"
#include "cli/figures.h"

void finding_add(struct findings *to, const char *what, enum finding_state state,
                 const char *format, ...)
{
    va_list args;

    if (to->n == FINDINGS_MAX)
        return;
    struct finding *f = &to->f[to->n++];
    *f = (struct finding){.what = what, .state = state};
    va_start(args, format);
    (void)vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
}

void finding_remedy(struct findings *to, const char *format, ...)
{
    va_list args;

    if (to->n == 0)
        return;
    struct finding *f = &to->f[to->n - 1];
    va_start(args, format);
    (void)vsnprintf(f->remedy, sizeof f->remedy, format, args);
    va_end(args);
}

enum finding_state findings_worst(const struct findings *of)
{
    enum finding_state worst = FINDING_OK;

    for (size_t i = 0; i < of->n; i++) {
        if (of->f[i].state > worst)
            worst = of->f[i].state;
    }
    return worst;
}

void findings_print(const struct findings *of, enum finding_state from, FILE *to)
{
    for (size_t i = 0; i < of->n; i++) {
        const struct finding *f = &of->f[i];
        if (f->state < from)
            continue;
        (void)fprintf(to, "%-4s  %-11s  ", names_word(NAMES_FINDING, f->state), f->what);
        text_wrap(to, 19, 19, f->text);
        if (f->remedy[0])
            (void)fprintf(to, "      %-11s  -> %s\n", "", f->remedy);
    }
}

void findings_json(const struct findings *of, struct json_out *o, const char *key)
{
    json_out_array(o, key);
    for (size_t i = 0; i < of->n; i++) {
        const struct finding *f = &of->f[i];
        json_out_object(o, NULL);
        json_out_text(o, "what", f->what);
        json_out_text(o, "state", names_word(NAMES_FINDING, f->state));
        json_out_text(o, "text", f->text);
        json_out_text(o, "remedy", f->remedy[0] ? f->remedy : NULL);
        json_out_end(o);
    }
    json_out_end(o);
}
