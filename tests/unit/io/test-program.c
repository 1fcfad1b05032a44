#include "io/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "io/file.h"
#include "remove-tree.h"
#include "tap.h"

enum { NO_MACHINE = 0xfeff }; /* an e_machine that no handler of the kernel has */

static char dir[64] = "/tmp/uw-test-program.XXXXXX";

static const char *at(const char *name)
{
    static char path[4][300];
    static unsigned i;

    i = (i + 1) % 4;
    (void)snprintf(path[i], sizeof path[i], "%s/%s", dir, name);
    return path[i];
}

static void put(const char *name, mode_t mode, const void *data, size_t len)
{
    ok(file_write(at(name), data, len, mode, NULL) == 0, "%s is there", name);
}

static void put_text(const char *name, mode_t mode, const char *text)
{
    put(name, mode, text, strlen(text));
}

/* A program of this machine's kind, but for `machine` (0: its own), with a loader. */
static void put_elf(const char *name, ElfW(Half) machine, const char *loader)
{
    struct {
        ElfW(Ehdr) head;
        ElfW(Phdr) segment;
        char loader[64];
    } elf;
    auto_(fd_close) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    memset(&elf, 0, sizeof elf);
    ok(read(fd, &elf.head, sizeof elf.head) == (ssize_t)sizeof elf.head, "own kind");
    elf.head.e_phnum = 1;
    elf.head.e_phoff = sizeof elf.head;
    if (machine)
        elf.head.e_machine = machine;
    (void)snprintf(elf.loader, sizeof elf.loader, "%s", loader);
    elf.segment = (ElfW(Phdr)){.p_type = PT_INTERP,
                               .p_offset = offsetof(__typeof__(elf), loader),
                               .p_filesz = strlen(loader) + 1};
    put(name, 0755, &elf, sizeof elf);
}

/* Scripts NAME-1 to NAME-N: each is the interpreter of the next, `last` that of the
 * first.
 */
static void put_chain(const char *name, unsigned n, const char *last)
{
    char script[300], file[40];

    (void)snprintf(script, sizeof script, "#!%s/second/%s\n", dir, last);
    for (unsigned i = 1; i <= n; i++) {
        (void)snprintf(file, sizeof file, "second/%s-%u", name, i);
        put_text(file, 0755, script);
        (void)snprintf(script, sizeof script, "#!%s/%s\n", dir, file);
    }
}

static void make(void)
{
    char script[300];

    ok(mkdir(at("first"), 0755) == 0 && mkdir(at("second"), 0755) == 0, "folders");
    put_text("first/plain", 0644, "true\n");
    put_text("first/both", 0644, "true\n");
    put_text("second/both", 0755, "true\n");
    put_text("second/shell", 0755, "exit 41\n");
    put_text("second/script", 0755, "#! /bin/sh -e\ntrue\n");
    put_text("second/old", 0755, "#!/nowhere/python\n");
    put_text("second/windows", 0755, "#!/bin/sh\r\n");
    put_text("second/cut", 0755, "#!");
    (void)snprintf(script, sizeof script, "#!%s\n", at("second/old"));
    put_text("second/chain", 0755, script);
    (void)snprintf(script, sizeof script, "#!%s\n", at("second/ring"));
    put_text("second/ring", 0755, script);
    put_elf("second/musl", 0, "/nowhere/ld.so");
    put_elf("second/native", 0, "/bin/sh");
    put_elf("second/foreign", NO_MACHINE, "/nowhere/ld.so");
    put_elf("second/short", 0, "/bin/sh");
    ok(truncate(at("second/short"), sizeof(ElfW(Ehdr)) + sizeof(ElfW(Phdr)) - 1) == 0,
       "without all of its program headers");
    put_elf("second/object", 0, "/bin/sh");
    const ElfW(Half) object = ET_REL;
    auto_(fd_close) int fd = open(at("second/object"), O_WRONLY | O_CLOEXEC);
    ok(pwrite(fd, &object, sizeof object, offsetof(ElfW(Ehdr), e_type)) == sizeof object,
       "an object file");
    put("second/magic", 0755, ELFMAG, SELFMAG);
    ok(mkdir(at("second/folder"), 0755) == 0, "a folder in PATH");
    put_chain("of-short", 1, "short");
    put_chain("five", 5, "native");
    put_chain("six", 6, "native");
}

static void finds(void)
{
    const struct {
        const char *name;
        bool in_path;
        int r;
        const char *says; /* the error, or the end of the path */
    } cases[] = {
        {"none", true, -ENOENT, "none: no such program in PATH"},
        {"", true, -ENOENT, "'': No such file or directory"},
        {"first", true, -ENOENT, "first: no such program in PATH"},
        {"none", false, -ENOENT, "second/none: No such file or directory"},
        {"script/x", false, -ENOTDIR, "second/script/x: Not a directory"},
        {".", false, -EISDIR, "second/.: Is a directory"},
        {"folder", true, -EISDIR, "second/folder: Is a directory"},
        {"magic", true, -ENOEXEC, "magic: Exec format error"},
        {"object", true, -ENOEXEC, "object: Exec format error"},
        {"plain", true, -EACCES, "first/plain: Permission denied"},
        {"both", true, 0, "second/both"},
        {"shell", true, 0, "second/shell"},
        {"script", true, 0, "second/script"},
        {"cut", true, 0, "second/cut"},
        {"old", true, -ENOENT, "second/old: its interpreter /nowhere/python: No such"},
        {"old", false, -ENOENT, "its interpreter /nowhere/python: No such file or"},
        {"windows", false, -ENOENT, "its interpreter /bin/sh?: No such file"},
        {"chain", false, -ENOENT,
         "its interpreter /nowhere/python: No such file or directory"},
        {"ring", false, -ELOOP, "second/ring: interpreters of interpreters, 5 at most"},
        {"musl", false, -ENOENT, "its loader /nowhere/ld.so: No such file or directory"},
        {"native", true, 0, "second/native"},
        {"foreign", true, 0, "second/foreign"},
        {"short", true, -ENOEXEC, "short: Exec format error"},
        {"of-short-1", false, -ENOEXEC, "second/short: Exec format error"},
        {"five-5", false, 0, "second/five-5"},
        {"six-6", false, -ELOOP, "interpreters of interpreters, 5 at most"},
    };
    char folders[800];

    (void)snprintf(folders, sizeof folders, "%s:%s/none:%s", at("first"), dir,
                   at("second"));
    for (size_t i = 0; i < n_elements(cases); i++) {
        char name[100], path[PATH_MAX];
        uw_error err = {""};
        (void)snprintf(name, sizeof name, "second/%s", cases[i].name);
        int r = program_find(cases[i].in_path ? cases[i].name : at(name), folders, path,
                             sizeof path, &err);
        is_int(r, cases[i].r, "%s: the result", cases[i].name);
        ok(strstr(r < 0 ? err.text : path, cases[i].says), "%s: %s", cases[i].name,
           r < 0 ? err.text : path);
    }
    char path[PATH_MAX], few[8];
    static char entries[2 * PATH_MAX];
    uw_error err = {""};
    memset(entries, 'x', PATH_MAX);
    is_int(program_find("shell", entries, path, sizeof path, &err), -ENOENT,
           "an entry of PATH too long");
    is_str(err.text, "shell: no such program in PATH", "… is skipped");
    (void)snprintf(entries + PATH_MAX, PATH_MAX, ":%s/second", dir);
    ok(program_find("shell", entries, path, sizeof path, &err) == 0,
       "… and the next one searched: %s", path);
    ok(program_find("sh", NULL, path, sizeof path, NULL) == 0, "without PATH: %s", path);
    is_int(program_find("/bin/sh -c nothing", NULL, few, sizeof few, NULL), -ENAMETOOLONG,
           "a name that is too long");
}

static void executes(void)
{
    char name[300];
    char *foreign[] = {name, NULL};

    (void)snprintf(name, sizeof name, "%s", at("second/foreign"));
    is_int(program_exec(name, foreign, environ), -ENOEXEC,
           "another machine's: no shell reads it");
}

/* Writes the kind of a program into the header of the file. */
static void set_kind(const char *name, unsigned char class, unsigned char data,
                     unsigned machine)
{
    const unsigned char ident[] = {class, data};
    const unsigned char low = (unsigned char)machine,
                        high = (unsigned char)(machine >> 8);
    const unsigned char bytes[] = {data == ELFDATA2MSB ? high : low,
                                   data == ELFDATA2MSB ? low : high};
    auto_(fd_close) int fd = open(at(name), O_WRONLY | O_CLOEXEC);

    ok(pwrite(fd, ident, 2, EI_CLASS) == 2 &&
           pwrite(fd, bytes, 2, offsetof(ElfW(Ehdr), e_machine)) == 2,
       "a program for machine %u", machine);
}

static void explains(void)
{
    static const struct {
        unsigned char class, data;
        unsigned machine;
        int r;
        const char *says;
    } cases[] = {
        {ELFCLASS64, ELFDATA2LSB, NO_MACHINE, -ENOEXEC,
         "Exec format error: it is a program for machine type 65279, this machine is "},
        {ELFCLASS32, ELFDATA2LSB, EM_ARM, -ENOEXEC,
         "Exec format error: it is a program for arm 32-bit, this machine is "},
        {ELFCLASS64, ELFDATA2MSB, EM_PPC64, -ENOEXEC,
         "Exec format error: it is a program for ppc64 big-endian, this machine is "},
        {ELFCLASS32, ELFDATA2LSB, EM_386, -ENOENT,
         "its loader is missing: it is a program for i386 32-bit, this machine is "},
        {ELFCLASS32, ELFDATA2LSB, EM_386, -EACCES, "Permission denied"},
    };
    uw_error err = {""};

    for (size_t i = 0; i < n_elements(cases); i++) {
        set_kind("second/foreign", cases[i].class, cases[i].data, cases[i].machine);
        is_int(program_fail("CMD", at("second/foreign"), cases[i].r, &err), cases[i].r,
               "the result is passed on");
        ok(strncmp(err.text, "CMD: ", 5) == 0 &&
               strncmp(err.text + 5, cases[i].says, strlen(cases[i].says)) == 0,
           "%s", err.text);
    }
    (void)program_fail("CMD", at("second/native"), -ENOEXEC, &err);
    is_str(err.text, "CMD: Exec format error", "a program of this machine");
    (void)program_fail("CMD", at("second/none"), -ENOENT, &err);
    is_str(err.text, "CMD: No such file or directory", "one that is not there");
}

int main(void)
{
    ok(mkdtemp(dir) != NULL, "a folder");
    make();
    finds();
    executes();
    explains();
    remove_tree(dir);
    return done();
}
