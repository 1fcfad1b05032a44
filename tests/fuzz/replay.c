/* Runs a fuzz target over its corpus as a normal test: each seed as it is, which has to
 * come out as expected, then cut short and with bytes changed, the same way every time.
 *
 *     replay CORPUS-FOLDER EXPECT-FILE
 *
 * The file has lines "SEED<TAB>WORD<TAB>TEXT" (fuzz.h): the target says WORD of SEED, and
 * TEXT is a part of its text.  Each seed has such a line, may have several, and each line
 * has its seed.  Lines that begin with # are comments.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/rng.h"
#include "fuzz.h"
#include "io/file.h"
#include "tap.h"

enum { CUTS = 16, CHANGES = 200, LINES_MAX = 200 };

struct line {
    char *seed, *word, *text;
    bool met;
};

struct expected {
    char *text;
    struct line line[LINES_MAX];
    size_t n;
};

/* A copy of exactly that size, so that a sanitizer sees the first byte beyond. */
static void feed(const char *data, size_t size)
{
    auto_(mem_free) uint8_t *copy = malloc(size > 0 ? size : 1);

    fuzz_said = (struct fuzz_said){"", ""};
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

/* The seed as it is comes out as its lines say. */
static void compare(const char *seed, struct expected *e)
{
    size_t lines = 0;

    for (size_t i = 0; i < e->n; i++) {
        struct line *l = &e->line[i];
        if (strcmp(l->seed, seed) != 0)
            continue;
        lines++;
        l->met = true;
        if (!ok(strcmp(l->word, fuzz_said.word) == 0 && strstr(fuzz_said.text, l->text),
                "%s: %s, %s", seed, l->word, l->text))
            printf("# said: %s, %s\n", fuzz_said.word, fuzz_said.text);
    }
    if (lines == 0) {
        ok(false, "%s: has a line in the expect file", seed);
        printf("# said: %s, %s\n", fuzz_said.word, fuzz_said.text);
    }
}

static bool replay(const char *path, const char *seed, struct expected *e)
{
    auto_(mem_free) char *data = NULL;
    size_t size = 0;
    struct rng rng;

    if (file_read(path, 1 << 20, &data, &size, NULL) < 0)
        return false;
    feed(data, size);
    compare(seed, e);
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

static bool read_expected(const char *path, struct expected *e)
{
    char *rest, *row;

    if (file_read(path, 1 << 16, &e->text, NULL, NULL) < 0)
        return false;
    for (rest = e->text; (row = strsep(&rest, "\n"));) {
        if (!*row || *row == '#')
            continue;
        if (e->n == LINES_MAX)
            return false;
        struct line *l = &e->line[e->n++];
        l->seed = strsep(&row, "\t");
        l->word = strsep(&row, "\t");
        l->text = row;
        if (!l->word || !l->text)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct expected e;
    DIR *dir = argc == 3 ? opendir(argv[1]) : NULL;
    struct dirent *entry;
    size_t seeds = 0;

    if (!ok(dir != NULL, "a corpus") ||
        !ok(read_expected(argv[2], &e), "lines of SEED, WORD, TEXT"))
        return done();
    while ((entry = readdir(dir))) {
        char path[512];
        if (entry->d_name[0] == '.')
            continue;
        seeds++;
        (void)snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        ok(replay(path, entry->d_name, &e), "%s and %d variations", entry->d_name,
           CUTS + CHANGES);
    }
    (void)closedir(dir);
    ok(seeds > 0, "the corpus is not empty");
    for (size_t i = 0; i < e.n; i++)
        if (!e.line[i].met)
            ok(false, "%s: has a line, and is no seed", e.line[i].seed);
    free(e.text);
    return done();
}
