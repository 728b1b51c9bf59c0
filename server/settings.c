/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "server/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/atomic.h"
#include "lib/auto.h"
#include "lib/jscan.h"
#include "lib/text.h"
#include "server/vendor.h"

#define MAX_FILE          ((size_t)1 << 20)
#define DEFAULT_VENDOR    "checklist"
#define DEFAULT_REVIEWERS 4
#define MAX_REVIEWERS     256
#define DEFAULT_IDLE_TTL  (8 * 3600)
#define DEFAULT_KEEP_DAYS 30
#define MAX_KEEP_DAYS     36500

static int
fail(const char *path, struct buf *error, const char *where, const char *name, const char *what)
{
    buf_addf(error, "%s: ", path);
    text_add_line(error, where, strlen(where));
    buf_adds(error, "\"");
    text_add_line(error, name, strlen(name));
    buf_addf(error, "\" %s", what);
    return -EINVAL;
}

static int
read_number(const char *path, const cJSON *root, const char *name, int64_t least, int64_t most,
            int64_t *ret, struct buf *error)
{
    char what[96];
    int64_t value;

    if (!json_int(root, name, &value) || value < least || value > most) {
        (void)snprintf(what, sizeof what, "must be a whole number from %lld to %lld",
                       (long long)least, (long long)most);
        return fail(path, error, "", name, what);
    }
    *ret = value;
    return 0;
}

static bool
is_list_of_texts(const cJSON *value)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, value)
    {
        if (!cJSON_IsString(item) || item->valuestring[0] == '\0')
            return false;
    }
    return cJSON_IsArray(value) && cJSON_GetArraySize(value) > 0;
}

static int
check_vendor(const char *path, const cJSON *vendor, struct buf *error)
{
    AUTO_BUF struct buf where = BUF_INIT(1024);
    const cJSON *member;

    if (!vendor_find(vendor->string))
        return fail(path, error, "\"vendors\": ", vendor->string,
                    "is no vendor of this kcap-flowd");
    if (!cJSON_IsObject(vendor))
        return fail(path, error, "\"vendors\": ", vendor->string, "must be an object");
    buf_addf(&where, "\"vendors\": \"%s\": ", vendor->string);
    cJSON_ArrayForEach(member, vendor)
    {
        const char *name = member->string;
        if (strcmp(name, "program") == 0 || strcmp(name, "model") == 0) {
            if (!cJSON_IsString(member) || member->valuestring[0] == '\0')
                return fail(path, error, buf_str(&where), name, "must be a text");
        } else if (strcmp(name, "argv") == 0 || strcmp(name, "env") == 0) {
            if (!is_list_of_texts(member))
                return fail(path, error, buf_str(&where), name, "must be a list of texts");
        } else {
            return fail(path, error, buf_str(&where), name,
                        "is not known; there are program, argv, model and env");
        }
    }
    return 0;
}

static int
read_vendors(const char *path, const cJSON *vendors, struct buf *error)
{
    const cJSON *vendor;
    int r = 0;

    if (!cJSON_IsObject(vendors))
        return fail(path, error, "", "vendors", "must be an object");
    cJSON_ArrayForEach(vendor, vendors)
    {
        if (r == 0)
            r = check_vendor(path, vendor, error);
    }
    return r;
}

/* Returns 1 when the member is no number. */
static int
read_numbers(const char *path, const cJSON *root, const char *name, struct settings *settings,
             struct buf *error)
{
    const struct {
        const char *name;
        int64_t most, *place;
    } others[] = {
        {"max_reviewers", MAX_REVIEWERS, &settings->max_reviewers},
        {"idle_ttl_sec", CLOCKS_MAX_SEC, &settings->idle_ttl_sec},
        {"keep_days", MAX_KEEP_DAYS, &settings->keep_days},
    };

    for (int i = 0; i < CLOCKS_COUNT; i++) {
        if (strcmp(clocks_names[i].name, name) == 0)
            return read_number(path, root, name, clocks_names[i].least, CLOCKS_MAX_SEC,
                               clocks_place(&settings->clocks, i), error);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(others[i].name, name) == 0)
            return read_number(path, root, name, 1, others[i].most, others[i].place, error);
    }
    return 1;
}

static int
read_member(const char *path, const cJSON *root, const cJSON *member, struct settings *settings,
            struct buf *error)
{
    const char *name = member->string;
    int r = read_numbers(path, root, name, settings, error);

    if (r <= 0)
        return r;
    if (strcmp(name, "vendors") == 0)
        return read_vendors(path, member, error);
    if (strcmp(name, "default_vendor") != 0)
        return fail(path, error, "", name, "is no setting; see kcap-flowd(1)");
    settings->default_vendor = cJSON_GetStringValue(member);
    return settings->default_vendor && vendor_find(settings->default_vendor)
               ? 0
               : fail(path, error, "", name, "must name a vendor of this kcap-flowd");
}

/* Where the text is no JSON. */
static int
line_of_fault(const struct buf *text)
{
    struct jscan scan = {.error_at = 0};
    int line = 1;

    (void)jscan(buf_str(text), text->len, &scan);
    for (size_t i = 0; i < scan.error_at && i < text->len; i++)
        line += text->data[i] == '\n' ? 1 : 0;
    return line;
}

static int
read_file(const char *path, struct settings *settings, struct buf *error)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_FILE);
    const cJSON *member;
    const char *fault = NULL;
    int r = atomic_read(path, &text);

    if (r == -ENOENT || r == -ENOTDIR)
        return 0;
    if (r < 0) {
        buf_addf(error, "%s cannot be read: %s", path, strerror(-r));
        return r;
    }
    settings->json = json_parse(buf_str(&text), text.len, &fault);
    if (fault)
        buf_addf(error, "%s: line %d: %s", path, line_of_fault(&text), fault);
    else if (!cJSON_IsObject(settings->json))
        buf_addf(error, "%s: it must hold one object", path);
    if (!cJSON_IsObject(settings->json))
        return -EINVAL;
    cJSON_ArrayForEach(member, settings->json)
    {
        if (r == 0)
            r = read_member(path, settings->json, member, settings, error);
    }
    return r;
}

static void
set_defaults(struct settings *settings)
{
    *settings = (struct settings){.clocks = CLOCKS_DEFAULT,
                                  .max_reviewers = DEFAULT_REVIEWERS,
                                  .idle_ttl_sec = DEFAULT_IDLE_TTL,
                                  .keep_days = DEFAULT_KEEP_DAYS,
                                  .default_vendor = DEFAULT_VENDOR};
}

int
settings_read(const char *path, const struct settings_override *override, struct settings *ret,
              struct buf *error)
{
    int r;

    set_defaults(ret);
    r = read_file(path, ret, error);
    if (r < 0) {
        settings_fini(ret);
        set_defaults(ret);
    }
    clocks_overlay(&ret->clocks, &override->clocks);
    if (override->keep_days > 0)
        ret->keep_days = override->keep_days;
    return r;
}

void
settings_fini(struct settings *settings)
{
    cJSON_Delete(settings->json);
    *settings = (struct settings){.json = NULL};
}

const cJSON *
settings_vendor(const struct settings *settings, const char *name)
{
    return json_get(json_get(settings->json, "vendors"), name);
}

const char *
settings_program(const struct settings *settings, const char *vendor, const char *fallback)
{
    const char *program = json_str(settings_vendor(settings, vendor), "program");

    return program ? program : fallback;
}
