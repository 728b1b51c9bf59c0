/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "when.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static bool
take_number(const char **p, int digits, int max, int *ret)
{
    int value = 0;

    for (int i = 0; i < digits; i++, (*p)++) {
        if (**p < '0' || **p > '9')
            return false;
        value = value * 10 + (**p - '0');
    }
    *ret = value;
    return value <= max;
}

static bool
take_char(const char **p, char a, char b)
{
    if (**p != a && **p != b)
        return false;
    (*p)++;
    return true;
}

/* "Z", or the hours and minutes by which local time is ahead. */
static bool
take_zone(const char **p, int64_t *ret_ahead_sec)
{
    int sign = **p == '-' ? -1 : 1, hours, minutes;

    *ret_ahead_sec = 0;
    if (take_char(p, 'Z', 'z'))
        return true;
    if (!take_char(p, '+', '-') || !take_number(p, 2, 23, &hours) || !take_char(p, ':', ':') ||
        !take_number(p, 2, 59, &minutes))
        return false;
    *ret_ahead_sec = sign * (hours * 3600 + minutes * 60);
    return true;
}

bool
when_parse(const char *text, int64_t *ret)
{
    const char *p = text;
    int64_t ahead_sec;
    struct tm tm = {.tm_isdst = 0};
    int year, month, millis = 0, unit = 100;

    if (!p || !take_number(&p, 4, 9999, &year) || !take_char(&p, '-', '-') ||
        !take_number(&p, 2, 12, &month) || !take_char(&p, '-', '-') ||
        !take_number(&p, 2, 31, &tm.tm_mday) || !take_char(&p, 'T', 't') ||
        !take_number(&p, 2, 23, &tm.tm_hour) || !take_char(&p, ':', ':') ||
        !take_number(&p, 2, 59, &tm.tm_min) || !take_char(&p, ':', ':') ||
        !take_number(&p, 2, 60, &tm.tm_sec))
        return false;
    if (month == 0 || tm.tm_mday == 0 || year < 1970)
        return false;
    if (take_char(&p, '.', '.')) {
        if (*p < '0' || *p > '9')
            return false;
        for (; *p >= '0' && *p <= '9'; p++, unit /= 10)
            millis += unit * (*p - '0');
    }
    if (!take_zone(&p, &ahead_sec) || *p)
        return false;
    tm.tm_year = year - 1900;
    tm.tm_mon = month - 1;
    *ret = ((int64_t)timegm(&tm) - ahead_sec) * 1000 + millis;
    return true;
}

void
when_format(int64_t unix_ms, char ret[WHEN_TEXT_LEN])
{
    time_t sec = (time_t)(unix_ms / 1000);
    struct tm tm;

    if (!gmtime_r(&sec, &tm) ||
        strftime(ret, WHEN_TEXT_LEN, "%Y-%m-%dT%H:%M:%S+00:00", &tm) == 0)
        ret[0] = '\0';
}
