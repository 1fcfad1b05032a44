/* tap.h: each result is one line, whatever its text is. */
#include <unistd.h>

#include "tap.h"

int main(void)
{
    char got[2000] = "";
    FILE *file = tmpfile();
    int out = dup(STDOUT_FILENO);

    if (!file || out < 0 || dup2(fileno(file), STDOUT_FILENO) < 0)
        return 2;
    (void)ok(true, "a\n%s: b\n", "x\ny");
    (void)ok(true, "%s%01500d", "", 0);
    if (dup2(out, STDOUT_FILENO) < 0)
        return 2;
    tap_n = 0;
    rewind(file);
    is_str(fgets(got, sizeof got, file), "ok 1 - a x y: b \n", "a text of three lines");
    ok(fgets(got, sizeof got, file) && strncmp(got, "ok 2 - 000", 10) == 0 &&
           strchr(got, '\n') && !fgets(got, sizeof got, file),
       "a long one is cut");
    (void)fclose(file);
    return done();
}
