/* dcgm-exporter's files: one a board, job ids a line, written only on change. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/mapping.h"
#include "base/auto.h"
#include "io/file.h"
#include "made.h"
#include "tap.h"

static struct made made;
static char dir[] = "/tmp/uw-mapping-XXXXXX";

static char *content(const char *name)
{
    char path[128];
    char *text = NULL;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return file_read(path, 4096, &text, NULL, NULL) == 0 ? text : strdup("(none)");
}

static void holds(const char *name, const char *want, const char *what)
{
    auto_(mem_free) char *got = content(name);

    is_str(got, want, what);
}

static ino_t inode(const char *name)
{
    char path[128];
    struct stat st = {0};

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    (void)stat(path, &st);
    return st.st_ino;
}

static void remove_all(void)
{
    char path[128];
    static const char *const names[] = {"0", "1", ".0.new", "x"};

    for (size_t i = 0; i < n_elements(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        (void)unlink(path);
        (void)rmdir(path);
    }
    (void)rmdir(dir);
}

static void take_away(const char *name)
{
    char path[128];

    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s/%d", dir, name, i);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    (void)rmdir(path);
}

static void plain(void)
{
    auto_(mapping_free) struct mapping *m = NULL;

    made_init(&made, 2, 3); /* jobs 100 and 102 on board 0, 101 on board 1 */
    (void)snprintf(made.entry[2].name, JOB_NAME, "slurm:4711_3");
    made.entry[2].source = JOB_REGISTERED;
    ok(mapping_new(dir, &m, NULL) == 0 && mapping_update(m, &made.view, NULL) == 0,
       "files are written");
    holds("0", "100\n4711_3\n", "a job a line, Slurm's by its own id");
    holds("1", "101\n", "one a board");
    ino_t before = inode("0");
    ok(mapping_update(m, &made.view, NULL) == 0 && inode("0") == before,
       "not written again where nothing has changed");
    made.entry[0].ended_ns = 5;
    ok(mapping_update(m, &made.view, NULL) == 0 && inode("0") != before,
       "written when a job ends");
    holds("0", "4711_3\n", "without that job");
    (void)snprintf(made.entry[2].name, JOB_NAME, "slurm:a\nb");
    made.entry[1].ended_ns = 5;
    (void)mapping_update(m, &made.view, NULL);
    holds("0", "102\n", "a name that is no plain word stands as our number");
    holds("1", "", "a board without a job: empty, as the file may be being read");
}

/* Slurm's number is not a user's to say. */
static void forged(void)
{
    auto_(mapping_free) struct mapping *m = NULL;
    struct job_entry *job = &made.entry[0];

    made_init(&made, 1, 1);
    (void)mapping_new(dir, &m, NULL);
    (void)snprintf(job->name, JOB_NAME, "slurm:4711");
    job->label[0] = (struct label){"slurm", "4711"};
    job->n_labels = 1;
    job->source = JOB_RUN;
    (void)mapping_update(m, &made.view, NULL);
    holds("0", "100\n", "a run job calls itself and its label slurm's: our number");
    job->n_labels = 0;
    job->source = JOB_FOUND;
    (void)mapping_update(m, &made.view, NULL);
    holds("0", "100\n", "a program calls itself so: our number");
    job->label[0] = (struct label){"slurm", "4712"};
    job->n_labels = 1;
    (void)mapping_update(m, &made.view, NULL);
    holds("0", "4712\n", "its cgroup says so: Slurm's");
}

static void end(void)
{
    struct mapping *m = NULL;

    made_init(&made, 2, 2);
    (void)mapping_new(dir, &m, NULL);
    (void)mapping_update(m, &made.view, NULL);
    holds("0", "100\n", "a job");
    mapping_free(m);
    holds("0", "", "nothing once the daemon is stopping");
}

static void failing(void)
{
    struct mapping *m = NULL;
    char path[128], victim[128];
    uw_error err = {""};

    (void)snprintf(victim, sizeof victim, "%s/x", dir);
    made_init(&made, 2, 2);
    (void)snprintf(path, sizeof path, "%s/later", dir);
    ok(mapping_new(path, &m, &err) == 0 &&
           mapping_update(m, &made.view, &err) == -ENOENT && strstr(err.text, path),
       "a folder that is not there: %s", err.text);
    (void)mkdir(path, 0755);
    ok(mapping_update(m, &made.view, NULL) == 0, "once it is there");
    holds("later/0", "100\n", "its files are written");
    take_away("later");
    made.entry[0].id = 400;
    ok(mapping_update(m, &made.view, NULL) < 0, "a folder taken away");
    (void)mkdir(path, 0755);
    ok(mapping_update(m, &made.view, NULL) == 0, "and made anew");
    holds("later/0", "400\n", "is written to");
    mapping_free(take(m));
    take_away("later");
    (void)mapping_new(dir, &m, NULL);
    (void)mapping_update(m, &made.view, NULL);
    /* A folder in the file's place: rename fails, the other board is written. */
    (void)snprintf(path, sizeof path, "%s/0", dir);
    (void)unlink(path);
    (void)mkdir(path, 0755);
    made.entry[0].id = 500;
    made.entry[1].id = 501;
    err.text[0] = '\0';
    ok(mapping_update(m, &made.view, &err) < 0 && strstr(err.text, "/0: "),
       "a file that cannot be written is told: %s", err.text);
    holds("1", "501\n", "the other board's is written all the same");
    holds(".0.new", "(none)", "nothing is left beside it");
    (void)rmdir(path);
    ok(mapping_update(m, &made.view, NULL) == 0, "tried again");
    holds("0", "500\n", "and written then");
    (void)snprintf(path, sizeof path, "%s/.0.new", dir);
    ok(symlink(victim, path) == 0, "a link laid out where we write first");
    made.entry[0].id = 600;
    ok(mapping_update(m, &made.view, NULL) == 0 && access(victim, F_OK) != 0,
       "is not followed");
    holds("0", "600\n", "the file is written");
    mapping_free(m);
}

int main(void)
{
    if (!mkdtemp(dir))
        return 1;
    plain();
    forged();
    end();
    failing();
    remove_all();
    return done();
}
