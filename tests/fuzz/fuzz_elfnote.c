/* SPDX-License-Identifier: Apache-2.0 */
/* A file that says it is a plugin. */
#include "config.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/elfnote.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    struct elfnote note;
    const char *error = NULL;

    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        return 0;
    if ((elfnote_read(fd, &note, &error) == 0) != (error == NULL))
        abort();
    return 0;
}
