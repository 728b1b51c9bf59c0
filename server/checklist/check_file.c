/* SPDX-License-Identifier: Apache-2.0 */
/* What can be said of a file without reading its lines. */
#include "config.h"

#include "server/checklist/checks.h"

#include <string.h>

#define MAX_ADDED ((int64_t)1 << 20)
#define COMPILED  " .o .a .so .obj .lib .exe .dll .dylib .class .pyc .pyo .ko "

/* Run by name on another system, where the bit means nothing. */
#define NO_SHEBANG " .bat .cmd .ps1 "

#define EXECUTABLE 0100755u
#define PLAIN      0100644u

static const struct {
    const char *bytes;
    size_t len;
} magics[] = {
    {"\177ELF", 4},          {"!<arch>\n", 8},        {"\xfe\xed\xfa\xce", 4},
    {"\xfe\xed\xfa\xcf", 4}, {"\xce\xfa\xed\xfe", 4}, {"\xcf\xfa\xed\xfe", 4},
    {"\xca\xfe\xba\xbe", 4}, /* Java class, and Mach-O for several machines */
};

static bool
is_compiled(const struct file *file)
{
    if (file->status != 'A' || !file->data || !file->binary)
        return false;
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        if (file->len >= magics[i].len &&
            memcmp(file->data, magics[i].bytes, magics[i].len) == 0)
            return true;
    }
    return check_name_ends(file, COMPILED);
}

void
check_binary(const struct check *check, const struct file *file, struct report *report)
{
    if (is_compiled(file))
        report_add(report, file->path, 0, "%s", check->says);
}

void
check_size(const struct check *check, const struct file *file, struct report *report)
{
    if (file->status == 'A' && file->size > MAX_ADDED && !is_compiled(file))
        report_add(report, file->path, 0, "%s (%.1f MiB)", check->says,
                   (double)file->size / (double)MAX_ADDED);
}

void
check_mode(const struct check *check, const struct file *file, struct report *report)
{
    bool was = file->old_mode == EXECUTABLE, is = file->new_mode == EXECUTABLE;

    if (was != is && (was || file->old_mode == PLAIN) && (is || file->new_mode == PLAIN))
        report_add(report, file->path, 0, "%s %s", check->says, is ? "set" : "removed");
}

void
check_shebang(const struct check *check, const struct file *file, struct report *report)
{
    if (file->status == 'A' && file->new_mode == EXECUTABLE && file->data && file->len > 0 &&
        !file->binary && strncmp(file->data, "#!", 2) != 0 &&
        !check_name_ends(file, NO_SHEBANG))
        report_add(report, file->path, 0, "%s", check->says);
}
