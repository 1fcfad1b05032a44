/* Who asks: rates, tokens and their file, users of the system. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/rights/auth.h"
#include "api/rights/token-inside.h"
#include "base/auto.h"
#include "base/rate.h"
#include "base/units.h"
#include "http-try.h"
#include "io/file.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

/* ---- rates ---- */

static void test_bucket(void)
{
    static const struct rate RATE = {.per_s = 2, .burst = 4};
    struct bucket b = {0};
    uint64_t wait = 0, t = 100 * NS_PER_S;
    int n = 0;

    while (n < 100 && bucket_take(&b, &RATE, t, &wait))
        n++;
    is_int(n, 4, "a burst of four");
    is_near(s_of_ns(wait), 0.5, 1e-6, "the next in half a second");
    ok(!bucket_take(&b, &RATE, t + wait - 1000, NULL) &&
           bucket_take(&b, &RATE, t + wait, NULL) &&
           !bucket_take(&b, &RATE, t + wait, NULL),
       "then, and not before");
    ok(bucket_take(&b, &RATE, t - 50 * NS_PER_S, NULL) == false,
       "time that goes back gives nothing");
    for (n = 0; bucket_take(&b, &RATE, t + 3600 * NS_PER_S, NULL); n++)
        ;
    is_int(n, 4, "an hour later four again, not more");
}

static void test_rates(void)
{
    struct rates *r = calloc(1, sizeof *r);
    uint64_t t = NS_PER_S;
    int passed = 0;

    r->rate = (struct rate){.per_s = 1, .burst = 2};
    struct bucket *mine = rates_bucket(r, 42, t);
    ok(bucket_take(mine, &r->rate, t, NULL) && bucket_take(mine, &r->rate, t, NULL),
       "two of mine");
    for (uint64_t key = 1000; key < 3000; key++)
        passed += bucket_take(rates_bucket(r, key, t), &r->rate, t, NULL);
    is_int(passed, RATES_MAX - 1 + 2, "a crowd gets a bucket each, then one for all");
    ok(!bucket_take(rates_bucket(r, 42, t), &r->rate, t, NULL),
       "and does not make me forgotten");
    t += 10 * NS_PER_S;
    ok(bucket_take(rates_bucket(r, 5000, t), &r->rate, t, NULL) &&
           bucket_take(rates_bucket(r, 5000, t), &r->rate, t, NULL) &&
           !bucket_take(rates_bucket(r, 5000, t), &r->rate, t, NULL) && r->n == RATES_MAX,
       "who is full again makes room");
    free(r);
}

/* ---- the tokens' file ---- */

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define TOP "underwatt-tokens 1\n"
/* clang-format off */
static const struct {
    const char *name, *text;
    int r;
    size_t n;
} files[] = {
    {"none", TOP, 0, 0},
    {"one", TOP "0a1b2c3d grid read - - 5 10 " HASH "\n", 0, 1},
    {"three", TOP "0a1b2c3d a read - - 5 10 " HASH "\n0a1b2c3e b claim 1000 - 5 10 " HASH
     "\n0a1b2c3f c claim 1000 77 5 10 " HASH "\n", 0, 3},
    {"admin, no end of line", TOP "0a1b2c3d grid admin - - 5 10 " HASH, 0, 1},
    {"nothing", "", -EINVAL, 0},
    {"another head", "underwatt-tokens 2\n", -EINVAL, 0},
    {"no tokens", "hello\n", -EINVAL, 0},
    {"an empty line", TOP "\n0a1b2c3d grid read - - 5 10 " HASH "\n", -EINVAL, 0},
    {"too few fields", TOP "0a1b2c3d grid read - - 5 10\n", -EINVAL, 0},
    {"too many", TOP "0a1b2c3d grid read - - 5 10 " HASH " x\n", -EINVAL, 0},
    {"a short id", TOP "0a1b2c3 grid read - - 5 10 " HASH "\n", -EINVAL, 0},
    {"an id in capitals", TOP "0A1B2C3D grid read - - 5 10 " HASH "\n", -EINVAL, 0},
    {"a name that is none", TOP "0a1b2c3d gr/id read - - 5 10 " HASH "\n", -EINVAL, 0},
    {"a long name", TOP "0a1b2c3d aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa read - - 5 10 " HASH "\n", -EINVAL, 0},
    {"a scope unknown", TOP "0a1b2c3d grid root - - 5 10 " HASH "\n", -EINVAL, 0},
    {"claims without a user", TOP "0a1b2c3d grid claim - - 5 10 " HASH "\n", -EINVAL, 0},
    {"a reader with a user", TOP "0a1b2c3d grid read 1000 - 5 10 " HASH "\n", -EINVAL, 0},
    {"an admin with a job", TOP "0a1b2c3d grid admin - 7 5 10 " HASH "\n", -EINVAL, 0},
    {"job 0", TOP "0a1b2c3d grid claim 1000 0 5 10 " HASH "\n", -EINVAL, 0},
    {"uid -1", TOP "0a1b2c3d grid claim 4294967295 - 5 10 " HASH "\n", -EINVAL, 0},
    {"no time", TOP "0a1b2c3d grid read - - x 10 " HASH "\n", -EINVAL, 0},
    {"half a hash", TOP "0a1b2c3d grid read - - 5 10 0123\n", -EINVAL, 0},
    {"an id twice", TOP "0a1b2c3d a read - - 5 10 " HASH "\n0a1b2c3d b read - - 5 10 " HASH "\n", -EINVAL, 0},
    {"a name twice", TOP "0a1b2c3d a read - - 5 10 " HASH "\n0a1b2c3e a read - - 5 10 " HASH "\n", -EINVAL, 0},
};
/* clang-format on */

static void test_files(void)
{
    struct tokens *t = calloc(1, sizeof *t);

    for (size_t i = 0; i < n_elements(files); i++) {
        uw_error err = {""};
        t->n = 99;
        int r = tokens_read("f", files[i].text, strlen(files[i].text), t, &err);
        ok(r == files[i].r && t->n == (r == 0 ? files[i].n : 99) &&
               (r == 0 || strncmp(err.text, "f:", 2) == 0),
           "%s: %d %s", files[i].name, r, err.text);
    }
    is_int(tokens_read("f", TOP "\0", sizeof TOP, t, NULL), -EINVAL, "a NUL");
    free(t);
}

static void test_many(void)
{
    auto_(mem_free) char *text = malloc(65536);
    auto_(mem_free) struct tokens *t = calloc(1, sizeof *t);
    size_t n = (size_t)snprintf(text, 65536, TOP);

    for (int i = 0; i <= TOKENS_MAX; i++)
        n += (size_t)snprintf(text + n, 65536 - n, "%08x n%d read - - 5 10 " HASH "\n", i,
                              i);
    is_int(tokens_read("f", text, n, t, NULL), -E2BIG, "%d tokens", TOKENS_MAX + 1);
}

/* ---- tokens ---- */

static void test_forged(const struct tokens *t, const char *text)
{
    char bad[TOKEN_TEXT];
    const char *why = NULL;

    (void)memcpy(bad, text, sizeof bad);
    bad[TOKEN_TEXT - 2] = bad[TOKEN_TEXT - 2] == '0' ? '1' : '0';
    ok(!tokens_find(t, bad, 1001, &why) && strcmp(why, "forged") == 0, "forged");
    bad[5] = bad[5] == '0' ? '1' : '0';
    ok(!tokens_find(t, bad, 1001, &why) && strcmp(why, "no such token") == 0, "unknown");
    bad[TOKEN_TEXT - 2] = '\0';
    ok(!tokens_find(t, bad, 1001, &why) && !tokens_find(t, "", 1001, &why) &&
           strcmp(why, "not of a token's form") == 0,
       "no token");
}

static void test_again(const char *path, const struct token_ask *ask, const char *text)
{
    auto_(mem_free) struct tokens *t = calloc(1, sizeof *t);
    char second[TOKEN_TEXT] = "untouched";
    uw_error err = {""};

    auto_(mem_free) char *kept = NULL;
    size_t len;
    ok(file_read(path, 65536, &kept, &len, &err) == 0 && !strstr(kept, text + 13),
       "the file does not hold it");
    is_int(token_new(path, ask, 1000, second, &err), -EEXIST, "%s", err.text);
    is_str(second, "untouched", "nothing was made");
    is_int(token_new(path, ask, 1100, second, &err), 0,
           "but where the old one is over, another may have its name");
    is_int(token_revoke(path, "nobody", &err), -ENOENT, "%s", err.text);
    is_int(token_revoke(path, "grid", &err), 0, "revoked");
    ok(tokens_load(path, t, &err) == 0 && t->n == 0, "none is left");
    (void)chmod(path, 0640);
    is_int(tokens_load(path, t, &err), -EPERM, "%s", err.text);
    (void)unlink(path);
    ok(symlink("/etc/passwd", path) == 0 && tokens_load(path, t, &err) == -EPERM, "%s",
       err.text);
    (void)unlink(path);
}

static void test_tokens(const char *path)
{
    auto_(mem_free) struct tokens *t = calloc(1, sizeof *t);
    struct token_ask ask = {
        .name = "grid", .scope = TOKEN_CLAIM, .uid = 1000, .job = 7, .ttl_s = 100};
    char text[TOKEN_TEXT];
    const char *why = NULL;
    struct stat st;
    uw_error err = {""};

    is_int(token_new(path, &ask, 1000, text, &err), 0, "a token %s", err.text);
    ok(strlen(text) == TOKEN_TEXT - 1 && strncmp(text, "uwt_", 4) == 0, "%.13s…", text);
    ok(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600, "its file is its owner's");
    is_int(tokens_load(path, t, &err), 0, "read again %s", err.text);
    const struct token *found = tokens_find(t, text, 1099, &why);
    ok(found && found->uid == 1000 && found->job == 7 && found->scope == TOKEN_CLAIM &&
           !why,
       "found until its last second");
    ok(!tokens_find(t, text, 1100, &why) && strcmp(why, "expired") == 0, "then over");
    test_forged(t, text);
    test_again(path, &ask, text);
}
/* clang-format off */
static const struct {
    const char *name;
    struct token_ask ask;
} refused[] = {
    {"no name", {.name = "", .scope = TOKEN_READ, .uid = (uid_t)-1}},
    {"a name with a blank", {.name = "a b", .scope = TOKEN_READ, .uid = (uid_t)-1}},
    {"a name with a slash", {.name = "a/", .scope = TOKEN_READ, .uid = (uid_t)-1}},
    {"no scope", {.name = "a", .uid = (uid_t)-1}},
    {"claims of nobody", {.name = "a", .scope = TOKEN_CLAIM, .uid = (uid_t)-1}},
    {"a reader with a user", {.name = "a", .scope = TOKEN_READ, .uid = 5}},
    {"an admin with a job", {.name = "a", .scope = TOKEN_ADMIN, .uid = (uid_t)-1, .job = 4}},
    {"for eleven years", {.name = "a", .scope = TOKEN_READ, .uid = (uid_t)-1, .ttl_s = 11ull * 366 * 86400}},
};
/* clang-format on */

static void test_asks(const char *path)
{
    char text[TOKEN_TEXT] = "untouched";
    uw_error err = {""};
    FILE *out = tmpfile();
    char line[256] = "";

    for (size_t i = 0; i < n_elements(refused); i++)
        ok(token_new(path, &refused[i].ask, 1000, text, &err) == -EINVAL &&
               strcmp(text, "untouched") == 0 && access(path, F_OK) < 0,
           "%s: %s", refused[i].name, err.text);
    struct token_ask ask = {.name = "reader", .scope = TOKEN_READ, .uid = (uid_t)-1};
    ok(token_new(path, &ask, 0, text, &err) == 0 && token_list(path, 5, out, &err) == 0,
       "a list");
    rewind(out);
    ok(fgets(line, sizeof line, out) && fgets(line, sizeof line, out) &&
           strstr(line, "reader") && strstr(line, "1970-04-01 00:00") &&
           !strstr(line, "over"),
       "ninety days unless said otherwise: %.60s", line);
    (void)fclose(out);
    (void)unlink(path);
}

/* ---- users and doors ---- */

struct rig {
    struct loop *loop;
    int lookups, hang;
    struct auth_who who;
    char name[96];
    int told;
    struct auth *auth;
    const char *tokens;
};
static struct rig *rig_now; /* lookups have no user data */

static void made_lookup(uid_t uid, const char *admin_group, struct auth_user *ret)
{
    rig_now->lookups++;
    *ret = (struct auth_user){.name = ""};
    if (rig_now->hang)
        loop_spend(rig_now->loop, 10 * NS_PER_S);
    if (uid < 2000)
        (void)snprintf(ret->name, sizeof ret->name, "u%u", uid);
    ret->admin = uid == 1001 && strcmp(admin_group, "wheel") == 0;
}

static void on_who(struct http_exchange *x, const struct auth_who *who, void *user)
{
    struct rig *rig = user;

    rig->who = *who;
    (void)snprintf(rig->name, sizeof rig->name, "%s", who->node.name);
    rig->told++;
    http_reply(x, 200, "text/plain", "ok", 2, NULL);
}

static void handler(struct http_exchange *x, void *user)
{
    struct rig *rig = user;

    auth_ask(rig->auth, x, on_who, rig);
}

static struct http_try *ask(struct rig *rig, const struct http_try_ask *what)
{
    struct http_try *t = NULL;

    rig->told = 0;
    (void)http_try_new(rig->loop, handler, rig, what, &t);
    return t;
}

static int stop(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)now_ns;
    loop_timer_free(timer);
    loop_stop(user, 0);
    return 0;
}

static void pass(struct loop *loop, uint64_t ns)
{
    struct loop_timer *timer = NULL;

    (void)loop_timer_new(loop, loop_now_ns(loop) + ns, 0, stop, loop, &timer, NULL);
    (void)loop_run(loop, NULL);
}

static unsigned local(struct rig *rig, uid_t uid, uint64_t after_ns)
{
    struct http_try_ask what = {
        .method = "GET", .target = "/", .peer = {.local = true, .uid = uid}};
    struct http_try *t = ask(rig, &what);

    pass(rig->loop, after_ns);
    unsigned status = http_try_status(t);
    http_try_free(t);
    return status;
}

static void test_local(struct rig *rig)
{
    ok(local(rig, 0, 1) == 200 && rig->who.node.admin && rig->lookups == 0 &&
           strcmp(rig->name, "user root") == 0,
       "root, without a question");
    ok(local(rig, 1000, 1) == 200 && !rig->who.node.admin && rig->who.node.may_claim &&
           rig->who.node.uid == 1000 && rig->lookups == 1 &&
           strcmp(rig->name, "user u1000") == 0,
       "a user");
    ok(local(rig, 1000, 1) == 200 && rig->lookups == 1, "remembered");
    ok(local(rig, 1001, 1) == 200 && rig->who.node.admin, "an admin by its group");
    ok(local(rig, 2001, 1) == 200 && strcmp(rig->name, "uid 2001") == 0 &&
           !rig->who.node.admin,
       "nobody known");
    pass(rig->loop, 11 * NS_PER_S);
    ok(local(rig, 1000, 1) == 200 && rig->lookups == 4, "asked again after ten seconds");
    struct auth_opts other = {.admin_group = "staff", .tokens = rig->tokens};
    is_int(auth_configure(rig->auth, &other, NULL), 0, "configured anew");
    ok(local(rig, 1001, 1) == 200 && !rig->who.node.admin, "another admin group");
    int passed = 0;
    for (int i = 0; i < 300; i++)
        passed += local(rig, 1002, 1) == 200;
    is_int(passed, 200, "a hundred a second, two seconds' worth at once");
    is_int(local(rig, 1002, 1), 429, "then no more");
    ok(local(rig, 1003, 1) == 200 && local(rig, 0, 1) == 200, "others may");
    pass(rig->loop, NS_PER_S);
    is_int(local(rig, 1002, 1), 200, "a second later again");
    for (uid_t uid = 100000; uid < 101000; uid++)
        passed += local(rig, uid, 20 * NS_PER_MS) == 200;
    ok(passed == 1200, "a thousand users one after another");
}

static void test_hanging(struct rig *rig)
{
    struct http_try_ask what = {
        .method = "GET", .target = "/", .peer = {.local = true, .uid = 1004}};

    rig->hang = 1;
    struct http_try *a = ask(rig, &what), *b = ask(rig, &what), *c = ask(rig, &what);
    int before = rig->lookups;
    ok(http_try_status(a) == 0 && rig->told == 0,
       "the directory hangs: nobody waits here");
    http_try_free(c);
    pass(rig->loop, NS_PER_S);
    is_int(http_try_status(b), 0, "for a second");
    pass(rig->loop, 2 * NS_PER_S);
    ok(http_try_status(a) == 200 && http_try_status(b) == 200 && rig->told == 2 &&
           strcmp(rig->name, "uid 1004") == 0 && !rig->who.node.admin,
       "after two they are served as nobody known; who left is not");
    is_int(rig->lookups, before, "asked once");
    ok(local(rig, 1001, 1) == 200 && !rig->who.node.admin,
       "nobody is an admin while it hangs");
    pass(rig->loop, 30 * NS_PER_S);
    http_try_free(a);
    http_try_free(b);
}

/* What a remote peer is answered; auth: its header. */
static unsigned remote(struct rig *rig, const char *address, const char *auth)
{
    struct http_field headers[] = {{"Authorization", auth}, {NULL, NULL}};
    struct http_try_ask what = {.method = "GET",
                                .target = "/",
                                .headers = auth ? headers : NULL,
                                .peer = {.uid = (uid_t)-1}};

    (void)snprintf(what.peer.address, sizeof what.peer.address, "%s", address);
    struct http_try *t = ask(rig, &what);
    unsigned status = http_try_status(t);
    if (status == 401)
        ok(http_try_header(t, "WWW-Authenticate") != NULL &&
               strstr(http_try_body(t, NULL), "\"a valid token is required\""),
           "challenged, and not told why");
    if (status == 429)
        ok(http_try_header(t, "Retry-After") != NULL, "told when to come again");
    http_try_free(t);
    return status;
}

static void test_refused_tokens(struct rig *rig, const char *path, const char *reader,
                                const char *admin)
{
    char basic[128], forged[128];

    (void)snprintf(basic, sizeof basic, "Basic %.77s", admin + 7);
    is_int(remote(rig, "192.0.2.1", basic), 401, "not as Basic");
    (void)snprintf(forged, sizeof forged, "%s", admin);
    forged[40] = forged[40] == '0' ? '1' : '0';
    is_int(remote(rig, "192.0.2.1", forged), 401, "forged");
    is_int(token_revoke(path, "a", NULL), 0, "revoked …");
    is_int(remote(rig, "192.0.2.1", admin), 401, "… is refused at once");
    int late = 0;
    for (int i = 0; i < 20; i++)
        late += remote(rig, "192.0.2.9", forged) == 429;
    is_int(late, 10, "who fails ten times is told to wait");
    is_int(remote(rig, "192.0.2.9", reader), 200, "but not with a good token");
}

/* One host has every address of its /64. */
static void test_networks(struct rig *rig)
{
    static const struct {
        const char *before, *after; /* of its number */
        int late;
        const char *name;
    } cases[] = {
        {"2001:db8:0:1::", "", 10, "all addresses of a /64 are one"},
        {"2001:db8:0:1:", "::", 20, "from whichever end"},
        {"2001:db8:0:", "::1", 1,
         "other networks are others"}, /* one of them is the first */
        {"::ffff:192.0.2.77", NULL, 10, "an IPv4 address in IPv6 …"},
        {"192.0.2.77", NULL, 20, "… is the same in IPv4"},
        {"198.51.100.", "", 0, "IPv4 addresses are one each"},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        int late = 0;
        for (int k = 0; k < 20; k++) {
            char address[64];
            char number[8] = "";
            if (cases[i].after)
                (void)snprintf(number, sizeof number, "%d", k + 1);
            (void)snprintf(address, sizeof address, "%s%s%s", cases[i].before, number,
                           cases[i].after ? cases[i].after : "");
            late += remote(rig, address, "Bearer nonsense") == 429;
        }
        is_int(late, cases[i].late, "%s", cases[i].name);
    }
}

/* Configured anew with another file: its tokens let in, and those of before do not. */
static void test_other_file(struct rig *rig, const char *path, const char *bearer)
{
    struct token_ask read = {.name = "o", .scope = TOKEN_READ, .uid = (uid_t)-1};
    struct auth_opts opts = {.admin_group = "staff"};
    char other[128], text[TOKEN_TEXT], theirs[128];
    int64_t now_s = loop_utc_ns(rig->loop) / (int64_t)NS_PER_S;

    (void)snprintf(other, sizeof other, "%s-other", path);
    is_int(token_new(other, &read, now_s, text, NULL), 0, "a token in another file");
    (void)snprintf(theirs, sizeof theirs, "Bearer %.77s", text);
    opts.tokens = other;
    is_int(auth_configure(rig->auth, &opts, NULL), 0, "which is the one from now on");
    is_int(remote(rig, "203.0.113.77", theirs), 200, "its token lets in");
    is_int(remote(rig, "203.0.113.77", bearer), 401, "that of the file before does not");
    opts.tokens = path;
    is_int(auth_configure(rig->auth, &opts, NULL), 0, "(back)");
    ok(remote(rig, "203.0.113.77", bearer) == 200, "and lets in again");
    (void)unlink(other);
    (void)snprintf(other, sizeof other, "%s-other.lock", path);
    (void)unlink(other);
}

static void test_remote(struct rig *rig, const char *path)
{
    struct token_ask read = {.name = "r", .scope = TOKEN_READ, .uid = (uid_t)-1},
                     claim = {.name = "c", .scope = TOKEN_CLAIM, .uid = 1000, .job = 9},
                     admin = {.name = "a", .scope = TOKEN_ADMIN, .uid = (uid_t)-1};
    char text[3][TOKEN_TEXT], bearer[3][128];
    int64_t now_s = loop_utc_ns(rig->loop) / (int64_t)NS_PER_S;

    is_int(remote(rig, "192.0.2.1", NULL), 401, "no token");
    ok(token_new(path, &read, now_s, text[0], NULL) == 0 &&
           token_new(path, &claim, now_s, text[1], NULL) == 0 &&
           token_new(path, &admin, now_s, text[2], NULL) == 0,
       "three tokens, made while the daemon runs");
    for (int i = 0; i < 3; i++)
        (void)snprintf(bearer[i], sizeof bearer[i], "Bearer %.77s", text[i]);
    ok(remote(rig, "192.0.2.1", bearer[0]) == 200 && !rig->who.node.may_claim &&
           !rig->who.node.admin && rig->who.node.uid == (uid_t)-1 &&
           strcmp(rig->name, "token r") == 0,
       "reads");
    ok(remote(rig, "192.0.2.1", bearer[1]) == 200 && rig->who.node.may_claim &&
           !rig->who.node.admin && rig->who.node.uid == 1000 &&
           rig->who.node.only_job == 9,
       "claims for a job");
    ok(remote(rig, "192.0.2.1", bearer[2]) == 200 && rig->who.node.admin, "admin");
    test_refused_tokens(rig, path, bearer[0], bearer[2]);
    test_networks(rig);
    test_other_file(rig, path, bearer[0]);
    pass(rig->loop, 91ull * 86400 * NS_PER_S);
    is_int(remote(rig, "192.0.2.2", bearer[0]), 401, "expired");
    (void)chmod(path, 0666);
    is_int(remote(rig, "192.0.2.3", bearer[1]), 401,
           "a file that others may write is no file");
    (void)unlink(path);
}

static void test_doors(const char *path)
{
    struct rig rig = {0};
    uw_error err = {""};
    struct auth_opts opts = {
        .admin_group = "wheel", .tokens = path, .lookup = made_lookup};

    rig_now = &rig;
    rig.tokens = path;
    if (loop_new_virtual(NS_PER_S, 1700000000, &rig.loop, &err) < 0)
        return;
    opts.loop = rig.loop;
    is_int(auth_new(&opts, &rig.auth, &err), 0, "%s", err.text);
    test_local(&rig);
    test_remote(&rig, path);
    test_hanging(&rig);
    struct http_try_ask what = {
        .method = "GET", .target = "/", .peer = {.local = true, .uid = 1005}};
    rig.hang = 0;
    struct http_try *t = ask(&rig, &what);
    auth_free(rig.auth);
    ok(http_try_status(t) != 0, "nobody is left without an answer: %u",
       http_try_status(t));
    http_try_free(t);
    loop_free(rig.loop);
}

/* The system's own word: whatever this machine says, it says of root's group and ours. */
static void test_system(void)
{
    struct rig rig = {0};
    uw_error err = {""};
    struct auth_opts opts = {.admin_group = "daemon"};

    if (loop_new_virtual(NS_PER_S, 1700000000, &rig.loop, &err) < 0)
        return;
    opts.loop = rig.loop;
    is_int(auth_new(&opts, &rig.auth, &err), 0, "%s", err.text);
    ok(local(&rig, 1, 1) == 200 && strcmp(rig.name, "user daemon") == 0 &&
           rig.who.node.admin,
       "user daemon is of group daemon: %s", rig.name);
    ok(local(&rig, 65534, 1) == 200 && !rig.who.node.admin, "nobody is not: %s",
       rig.name);
    auth_free(rig.auth);
    loop_free(rig.loop);
}

int main(void)
{
    char dir[] = "/tmp/uw-auth-XXXXXX", path[64], lock[80];

    if (!mkdtemp(dir))
        return 1;
    (void)snprintf(path, sizeof path, "%s/tokens", dir);
    (void)snprintf(lock, sizeof lock, "%s.lock", path);
    test_bucket();
    test_rates();
    test_files();
    test_many();
    test_tokens(path);
    test_asks(path);
    test_doors(path);
    test_system();
    (void)unlink(lock);
    is_int(rmdir(dir), 0, "nothing is left behind");
    return done();
}
