/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that is written without quotes or brackets: numbers, truth, dates and times. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toml-scan.h"

#define MAX_TOKEN 128

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- dates and times ---- */

/* n digits at p as a number, or -1. */
static int
digits(const char *p, int n)
{
    int value = 0;

    for (int i = 0; i < n; i++) {
        if (!is_digit(p[i]))
            return -1;
        value = value * 10 + (p[i] - '0');
    }
    return value;
}

static bool
is_date(const char *p)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = digits(p, 4), month, day;

    if (year < 0 || p[4] != '-' || (month = digits(p + 5, 2)) < 1 || month > 12 || p[7] != '-')
        return false;
    day = digits(p + 8, 2);
    if (month == 2 && day == 29 && (year % 4 != 0 || (year % 100 == 0 && year % 400 != 0)))
        return false;
    return day >= 1 && day <= days[month - 1];
}

/* The length of hh:mm[:ss[.fraction]] at p, 0 when there is none. Seconds may be left out since
 * TOML 1.1. */
static size_t
time_len(const char *p)
{
    size_t len = 5;
    int hour = digits(p, 2), minute;

    if (hour < 0 || hour > 23 || p[2] != ':' || (minute = digits(p + 3, 2)) < 0 || minute > 59)
        return 0;
    if (p[5] != ':')
        return len;
    if (digits(p + 6, 2) < 0 || digits(p + 6, 2) > 60)
        return 0;
    len = 8;
    if (p[8] == '.') {
        for (len = 9; is_digit(p[len]); len++)
            ;
        if (len == 9)
            return 0;
    }
    return len;
}

/* The length of Z or +hh:mm at p, 0 when there is none. */
static size_t
offset_len(const char *p)
{
    if (p[0] == 'Z' || p[0] == 'z')
        return 1;
    if ((p[0] == '+' || p[0] == '-') && digits(p + 1, 2) >= 0 && digits(p + 1, 2) < 24 &&
        p[3] == ':' && digits(p + 4, 2) >= 0 && digits(p + 4, 2) < 60)
        return 6;
    return 0;
}

static bool
is_time(const char *token, enum toml_kind *ret)
{
    const char *p = token;
    size_t time;

    if (is_date(p)) {
        *ret = TOML_LOCAL_DATE;
        p += 10;
        if (*p == '\0')
            return true;
        if (*p != 'T' && *p != 't' && *p != ' ')
            return false;
        p++;
        *ret = TOML_LOCAL_DATETIME;
    } else {
        *ret = TOML_LOCAL_TIME;
    }
    time = time_len(p);
    if (time == 0)
        return false;
    p += time;
    if (*ret == TOML_LOCAL_DATETIME && offset_len(p) > 0) {
        *ret = TOML_DATETIME;
        p += offset_len(p);
    }
    return *p == '\0';
}

/* T and Z in capitals; seconds are always there. */
static void
spell_time(const char *token, enum toml_kind kind, char *to, size_t size)
{
    size_t len = strlen(token), colon = kind == TOML_LOCAL_TIME ? 5 : 16;

    if (kind != TOML_LOCAL_DATE && len >= colon && token[colon] != ':')
        (void)snprintf(to, size, "%.*s:00%s", (int)colon, token, token + colon);
    else
        (void)snprintf(to, size, "%s", token);
    if (kind == TOML_DATETIME || kind == TOML_LOCAL_DATETIME)
        to[10] = 'T';
    for (char *p = to; *p; p++) {
        if (*p == 'z')
            *p = 'Z';
    }
}

/* ---- numbers ---- */

/* Copies digits without their underscores, each of which must stand between two digits. */
static bool
copy_digits(const char **token, const char *allowed, char **to)
{
    const char *p = *token;
    bool after_digit = false;

    for (; *p; p++) {
        if (*p == '_') {
            if (!after_digit || !p[1] || !strchr(allowed, p[1]))
                return false;
            after_digit = false;
        } else if (strchr(allowed, *p)) {
            *(*to)++ = *p;
            after_digit = true;
        } else {
            break;
        }
    }
    *token = p;
    return after_digit;
}

static bool
spell_integer(const char *token, char *to, size_t size)
{
    static const struct {
        const char *prefix, *allowed;
        int base;
    } bases[] = {{"0x", "0123456789abcdefABCDEF", 16}, {"0o", "01234567", 8}, {"0b", "01", 2}};
    char plain[MAX_TOKEN + 1], *end = plain;
    const char *allowed = "0123456789";
    int base = 10;
    long long number;

    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
        if (strncmp(token, bases[i].prefix, 2) == 0) {
            token += 2;
            allowed = bases[i].allowed;
            base = bases[i].base;
        }
    }
    if (base == 10 && (*token == '+' || *token == '-'))
        *end++ = *token++;
    if (base == 10 && token[0] == '0' && token[1] != '\0')
        return false;
    if (!copy_digits(&token, allowed, &end) || *token != '\0')
        return false;
    *end = '\0';
    errno = 0;
    number = strtoll(plain, NULL, base);
    if (errno != 0)
        return false;
    (void)snprintf(to, size, "%lld", number);
    return true;
}

static bool
spell_float(const char *token, char *to, size_t size)
{
    char plain[MAX_TOKEN + 1], *end = plain;
    const char *digit = "0123456789";
    bool has_part = false;

    if (*token == '+' || *token == '-')
        *end++ = *token++;
    if (strcmp(token, "inf") == 0 || strcmp(token, "nan") == 0) {
        (void)snprintf(to, size, "%s%s",
                       plain[0] == '-' && end > plain && *token == 'i' ? "-" : "", token);
        return true;
    }
    if (token[0] == '0' && is_digit(token[1]))
        return false;
    if (!copy_digits(&token, digit, &end))
        return false;
    if (*token == '.') {
        *end++ = *token++;
        has_part = true;
        if (!copy_digits(&token, digit, &end))
            return false;
    }
    if (*token == 'e' || *token == 'E') {
        *end++ = *token++;
        has_part = true;
        if (*token == '+' || *token == '-')
            *end++ = *token++;
        if (!copy_digits(&token, digit, &end))
            return false;
    }
    if (!has_part || *token != '\0')
        return false;
    *end = '\0';
    (void)snprintf(to, size, "%.17g", strtod(plain, NULL));
    return true;
}

static bool
read_token(const char *token, enum toml_kind *ret, char *spelled, size_t size)
{
    if (strcmp(token, "true") == 0 || strcmp(token, "false") == 0) {
        *ret = TOML_BOOL;
        (void)snprintf(spelled, size, "%s", token);
        return true;
    }
    if (is_time(token, ret)) {
        spell_time(token, *ret, spelled, size);
        return true;
    }
    *ret = TOML_INTEGER;
    if (spell_integer(token, spelled, size))
        return true;
    *ret = TOML_FLOAT;
    return spell_float(token, spelled, size);
}

/* What stands here up to a delimiter; one blank belongs to it between a date and a time. */
static size_t
token_len(const struct scan *s)
{
    const char *p = s->text + s->at;
    size_t left = s->len - s->at, n = 0;

    while (n < left && !strchr(" \t\r\n,]}#=", p[n]))
        n++;
    if (n == 10 && left > 13 && p[4] == '-' && p[10] == ' ' && is_digit(p[11]) &&
        is_digit(p[12]) && p[13] == ':') {
        for (n = 11; n < left && !strchr(" \t\r\n,]}#=", p[n]); n++)
            ;
    }
    return n;
}

struct toml_value *
scan_number_or_time(struct scan *s)
{
    char token[MAX_TOKEN + 8] = "", spelled[MAX_TOKEN + 16];
    size_t len = token_len(s);
    struct toml_value *value;
    enum toml_kind kind;

    if (len == 0 || len > MAX_TOKEN) {
        (void)scan_fail(s, len == 0 ? "a value is missing" : "this value is not understood");
        return NULL;
    }
    memcpy(token, s->text + s->at, len);
    if (!read_token(token, &kind, spelled, sizeof spelled)) {
        (void)scan_fail(s, "this value is not understood (a string needs quotes)");
        return NULL;
    }
    value = toml_new(kind);
    if (value)
        value->text = strdup(spelled);
    if (!value || !value->text) {
        toml_free(value);
        (void)scan_fail(s, "out of memory");
        return NULL;
    }
    value->text_len = strlen(spelled);
    value->span = (struct toml_span){s->at, s->at + len};
    s->at += len;
    return value;
}
