/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a text is a secret or only looks like one. */
#include "config.h"

#include "server/checklist/checks.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#define MIN_BITS     3.2 /* per character: random text of 16 and more is above, words are below */
#define MIN_KEY_LINE 40

static const char *const placeholders[] = {
    "example", "changeme", "placeholder", "dummy",   "sample", "your", "xxxx",    "1234567890",
    "abcdef",  "fake",     "test",        "replace", "insert", "todo", "redacted"};

bool
check_is_no_example(const char *text, size_t len)
{
    for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++) {
        size_t word_len = strlen(placeholders[i]);
        for (size_t at = 0; at + word_len <= len; at++) {
            if (strncasecmp(text + at, placeholders[i], word_len) == 0)
                return false;
        }
    }
    return true;
}

static double
bits_per_character(const char *text, size_t len)
{
    size_t counts[256] = {0};
    double bits = 0;

    for (size_t i = 0; i < len; i++)
        counts[(unsigned char)text[i]]++;
    for (size_t i = 0; i < 256; i++) {
        double share = (double)counts[i] / (double)len;
        if (counts[i] > 0)
            bits -= share * log2(share);
    }
    return bits;
}

bool
check_is_random(const char *text, size_t len)
{
    size_t digits = 0, letters = 0;

    for (size_t i = 0; i < len; i++) {
        digits += isdigit((unsigned char)text[i]) ? 1 : 0;
        letters += isalpha((unsigned char)text[i]) ? 1 : 0;
    }
    return digits >= 2 && letters >= 4 && bits_per_character(text, len) >= MIN_BITS &&
           check_is_no_example(text, len);
}

/* Length of the run of base64 at text. */
static size_t
base64_len(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && (isalnum((unsigned char)text[n]) || text[n] == '+' || text[n] == '/' ||
                       text[n] == '='))
        n++;
    return n;
}

/* The header alone also stands in code that looks for keys, so key material must follow. */
bool
check_private_key(const struct line *line)
{
    static const char begin[] = "-----BEGIN ", end[] = "PRIVATE KEY";
    const char *header = memmem(line->text, line->len, begin, sizeof begin - 1);
    const char *rest, *line_end = line->text + line->len;
    const char *next = line->next;
    size_t len;

    if (!header)
        return false;
    rest = memmem(header, (size_t)(line_end - header), end, sizeof end - 1);
    if (!rest)
        return false;
    rest = memmem(rest, (size_t)(line_end - rest), "-----", 5);
    if (!rest)
        return false;
    rest += 5;
    if (line_end - rest > 2 && rest[0] == '\\' && rest[1] == 'n')
        return base64_len(rest + 2, (size_t)(line_end - rest - 2)) >= MIN_KEY_LINE;
    for (len = line->next_len; len > 0 && (*next == ' ' || *next == '\t' || *next == '"');
         len--)
        next++;
    return base64_len(next, len) >= MIN_KEY_LINE ||
           (len > 10 && strncmp(next, "Proc-Type:", 10) == 0);
}
