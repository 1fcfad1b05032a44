/* gres.conf, as the SPANK plugin reads it in slurmd: which device files a node has. */
#include <string.h>

#include "fuzz.h"
#include "slurm/gres.h"

struct seen {
    unsigned n;
    char last[GRES_PATH_MAX];
};

static void on_device(unsigned index, const char *file, void *user)
{
    struct seen *s = user;

    must(index == s->n && index < GRES_DEVICES_MAX);
    must(*file == '/' && strlen(file) < GRES_PATH_MAX);
    s->n++;
    memcpy(s->last, file, strlen(file) + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen s = {0};
    struct gres_types types;
    uw_error err;
    int r;

    /* The same text as slurm.conf, too. */
    if (gres_types((const char *)data, size, "node07", &types, NULL) == 0) {
        must(types.n <= GRES_TYPES_MAX);
        r = gres_read((const char *)data, size, "node07", &types, on_device, &s, NULL);
        must(r < 0 || (unsigned)r == s.n);
        s = (struct seen){0};
    }

    r = gres_read((const char *)data, size, "node07", NULL, on_device, &s, &err);
    if (r < 0)
        return fuzz_say("refused", "%s", err.text);
    must((unsigned)r == s.n);
    return fuzz_say("accepted", "%d, the last is %s", r, s.last);
}
