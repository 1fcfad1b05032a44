/* Runs a fuzz target over its corpus as a normal test: each file as it is, then
 * cut short and with bytes changed, the same way every time.
 *
 *     replay CORPUS-FOLDER
 */
#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/rng.h"
#include "io/file.h"
#include "tap.h"

enum { CUTS = 16, CHANGES = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of exactly that size, so that a sanitizer sees the first byte beyond. */
static void feed(const char *data, size_t size)
{
    auto_(mem_free) uint8_t *copy = malloc(size > 0 ? size : 1);

    if (!copy)
        return;
    memcpy(copy, data, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
}

static void change(char *data, size_t size, struct rng *rng)
{
    static const char odd[] = {0,   '\n', '"', '{', '[',       ':',
                               '-', '&',  '*', '9', (char)0xff};
    uint64_t n = 1 + rng_below(rng, 3);

    for (; n > 0; n--) {
        size_t at = (size_t)rng_below(rng, size);
        data[at] = rng_below(rng, 2) ? odd[rng_below(rng, sizeof odd)]
                                     : (char)rng_below(rng, 256);
    }
}

static bool replay(const char *path)
{
    auto_(mem_free) char *data = NULL;
    size_t size = 0;
    struct rng rng;

    if (file_read(path, 1 << 20, &data, &size, NULL) < 0)
        return false;
    feed(data, size);
    for (size_t i = 0; i < CUTS; i++)
        feed(data, size * i / CUTS);
    rng_init(&rng, size);
    for (int i = 0; i < CHANGES && size > 0; i++) {
        auto_(mem_free) char *copy = malloc(size);
        if (!copy)
            return false;
        memcpy(copy, data, size);
        change(copy, size, &rng);
        feed(copy, size);
    }
    return true;
}

int main(int argc, char **argv)
{
    DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
    struct dirent *entry;

    if (!ok(dir != NULL, "a corpus"))
        return done();
    while ((entry = readdir(dir))) {
        char path[512];
        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        ok(replay(path), "%s and %d variations", entry->d_name, CUTS + CHANGES);
    }
    (void)closedir(dir);
    ok(tap_n > 1, "the corpus is not empty");
    return done();
}
