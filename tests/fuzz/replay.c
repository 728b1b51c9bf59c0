/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over the files of a corpus, each with its bytes cut short and flipped: an
 * ordinary test. */
#include "config.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "tests/fuzz/fuzz.h"

#define MAX_LEN (1u << 20)

static void
run_file(const char *path)
{
    struct buf bytes = BUF_INIT(MAX_LEN);
    FILE *file = fopen(path, "re");
    size_t n;

    while (file && buf_reserve(&bytes, 4096) &&
           (n = fread(bytes.data + bytes.len, 1, 4096, file)) > 0)
        bytes.len += n;
    if (file)
        (void)fclose(file);
    for (size_t len = 0; len <= bytes.len; len += 1 + bytes.len / 200)
        (void)LLVMFuzzerTestOneInput((const uint8_t *)buf_str(&bytes), len);
    for (size_t at = 0; at < bytes.len; at += 1 + bytes.len / 500) {
        for (int bit = 0; bit < 8; bit++) {
            bytes.data[at] = (char)(bytes.data[at] ^ (1 << bit));
            (void)LLVMFuzzerTestOneInput((const uint8_t *)bytes.data, bytes.len);
            bytes.data[at] = (char)(bytes.data[at] ^ (1 << bit));
        }
    }
    (void)LLVMFuzzerTestOneInput((const uint8_t *)buf_str(&bytes), bytes.len);
    buf_fini(&bytes);
}

int
main(void)
{
    DIR *dir = opendir(KCAP_CORPUS);
    struct dirent *entry;
    int files = 0;

    while (dir && (entry = readdir(dir))) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", KCAP_CORPUS, entry->d_name);
        run_file(path);
        files++;
    }
    if (dir)
        (void)closedir(dir);
    (void)printf("%d files of %s replayed\n", files, KCAP_CORPUS);
    return files > 0 ? 0 : 1;
}
