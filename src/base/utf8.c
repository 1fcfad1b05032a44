#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

#include "base/auto.h"

size_t utf8_char(const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned char low = 0x80, high = 0xbf; /* of the second byte */
    size_t n;

    if (len == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f;
    if (len < n || p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

size_t utf8_bad(const char *text, size_t len)
{
    size_t i = 0;

    while (i < len) {
        size_t n = utf8_char(text + i, len - i);
        if (n == 0)
            break;
        i += n;
    }
    return i;
}

static uint32_t code_of(const char *text, size_t n)
{
    static const unsigned char bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = (unsigned char)text[0] & bits[n];

    for (size_t i = 1; i < n; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    return code;
}

/* Ranges (from, to): control characters; Default_Ignorable_Code_Point in
 * DerivedCoreProperties.txt of Unicode 15; line and paragraph separators; annotation
 * marks.
 */
static const uint32_t unseen[][2] = {
    {0, 0x1f},          {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},
    {0x61c, 0x61c},     {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},
    {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164},
    {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},
    {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

size_t utf8_plain_char(const char *text, size_t len)
{
    size_t n = utf8_char(text, len);

    if (n == 0)
        return 0;
    uint32_t code = code_of(text, n);
    for (size_t i = 0; i < n_elements(unseen) && code >= unseen[i][0]; i++)
        if (code <= unseen[i][1])
            return 0;
    return n;
}

bool utf8_is_plain(const char *text)
{
    for (size_t n = 0; *text; text += n) {
        n = utf8_plain_char(text, strnlen(text, 4));
        if (n == 0)
            return false;
    }
    return true;
}

void utf8_mend(char *text)
{
    char *to = text;

    while (*text) {
        size_t len = strnlen(text, 4), n = utf8_char(text, len);
        size_t plain = utf8_plain_char(text, len);
        if (plain > 0)
            memmove(to, text, plain);
        else
            *to = '?';
        to += plain > 0 ? plain : 1;
        text += n > 0 ? n : 1;
    }
    *to = '\0';
}
