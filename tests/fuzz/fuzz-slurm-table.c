/* The table of a cluster's boards, as srun and sbatch read it, and a user's cap. */
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "slurm/wish.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct table t;
    char value[100];
    struct wish w = {0};
    uw_error err;

    (void)snprintf(value, sizeof value, "%.*s", (int)(size < 99 ? size : 99),
                   (const char *)data);
    if (wish_cap(value, &w, NULL) == 0)
        must(w.key && strlen(w.text) < sizeof w.text);
    if (wish_goal(value, &w, NULL) == 0 || wish_class(value, &w, NULL) == 0)
        must(*w.text);
    if (table_read((const char *)data, size, &t, &err) < 0)
        return fuzz_say("refused", "%s", err.text);
    must(t.n_boards <= TABLE_MAX && t.n_classes <= TABLE_MAX);
    must(wish_cap("250", &w, NULL) == 0);
    int r = table_check(&t, &w, &err);
    return fuzz_say("accepted", "%zu boards, %zu classes: %d", t.n_boards, t.n_classes,
                    r);
}
