/* What people see as it is, and what is made of the rest. */
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "tap.h"

/* mended: NULL where the text is plain. */
/* clang-format off */
static const struct { const char *name, *text, *mended; } texts[] = {
    {"nothing", "", NULL},
    {"letters of the world", "train ä € 学習 обучение", NULL},
    {"an emoji", "😀", NULL},
    {"a no-break space is seen", "a\u00a0b", NULL},
    {"a hyphen", "a\u2010b", NULL},
    {"an ideographic space", "a\u3000b", NULL},
    {"a combining accent", "e\u0301", NULL},
    {"next to the ranges", "\u2010\u2027\u202f\u205f\u2070\ufdff\ufe10\u0350", NULL},
    {"a line feed", "a\nb", "a?b"},
    {"an escape", "\x1b[2J", "?[2J"},
    {"DEL", "a\x7f", "a?"},
    {"C1", "\xc2\x9b" "2J", "?2J"},
    {"a soft hyphen", "a\u00adb", "a?b"},
    {"a grapheme joiner", "a\u034fb", "a?b"},
    {"an Arabic letter mark", "a\u061c", "a?"},
    {"a Hangul filler", "a\u115fb\u1160c\u3164d\uffa0", "a?b?c?d?"},
    {"Khmer vowels that are not seen", "\u17b4\u17b5", "??"},
    {"Mongolian separators", "\u180b\u180e", "??"},
    {"a zero-width space", "root\u200b", "root?"},
    {"zero-width joiners", "a\u200cb\u200dc", "a?b?c"},
    {"marks of direction", "a\u200eb\u200fc", "a?b?c"},
    {"a line separator", "a\u2028b\u2029c", "a?b?c"},
    {"embeddings and overrides", "\xe2\x80\xaa" "a\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae", "?a????"},
    {"a word joiner", "a\u2060b", "a?b"},
    {"invisible operators", "\u2061\u2064", "??"},
    {"isolates", "a\u2066b\u2069", "a?b?"},
    {"deprecated format characters", "\u206a\u206f", "??"},
    {"variation selectors", "a\ufe0fb\U000e0100", "a?b?"},
    {"a byte order mark", "\ufeffroot", "?root"},
    {"annotations", "\ufff9\ufffb", "??"},
    {"tags", "a\U000e0041\U000e007f", "a??"},
    {"a musical format character", "\U0001d173", "?"},
    {"no UTF-8", "\xff", "?"},
    {"cut off", "a\xe2\x82", "a??"},
    {"too long a form", "\xc0\xaf", "??"},
    {"a surrogate", "\xed\xa0\x80", "???"},
};
/* clang-format on */

int main(void)
{
    for (size_t i = 0; i < n_elements(texts); i++) {
        const char *want = texts[i].mended ? texts[i].mended : texts[i].text;
        char text[64];
        ok(utf8_is_plain(texts[i].text) == !texts[i].mended, "%s: %s", texts[i].name,
           texts[i].mended ? "not plain" : "plain");
        (void)snprintf(text, sizeof text, "%s", texts[i].text);
        utf8_mend(text);
        is_str(text, want, texts[i].name);
        ok(utf8_is_plain(text), "%s: plain once it is mended", texts[i].name);
    }
    is_int(utf8_plain_char("\u20ac", 3), 3, "the length of one that is plain");
    is_int(utf8_plain_char("\u200b", 3), 0, "none of one that is not");
    is_int(utf8_plain_char("\u20ac", 2), 0, "nor of a part of one");
    return done();
}
