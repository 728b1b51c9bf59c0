/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin whose constructor leaves a mark: tests copy it under other names and see that it
 * never ran. */
#include "config.h"

#include <fcntl.h>
#include <kcap/plugin.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void
leave_a_mark(void)
{
    const char *path = getenv("CANARY_FILE");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;

    if (fd >= 0)
        (void)close(fd);
}

static int32_t
canary_init(const struct kcap_host *host, void **ret_ctx)
{
    host->log(host, KCAP_LOG_INFO, "canary was started");
    *ret_ctx = NULL;
    return KCAP_OK;
}

KCAP_REGISTER(KCAP_CLASS_DRIVER, .threads = KCAP_THREADS_SERIAL, .name = "canary",
              .version = "1", .summary = "sings when it is run", .init = canary_init);
