/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleanup at the end of a scope. Declare initialised, at the point of use; hand out with
 * take_ptr or take_fd. Never in a function that also uses goto (clang rejects the jump, gcc
 * frees garbage).
 */
#ifndef KCAP_LIB_AUTO_H
#define KCAP_LIB_AUTO_H

#include <stdlib.h>
#include <unistd.h>

static inline void
auto_free_ptr(void *place)
{
    free(*(void **)place);
}

static inline void
auto_close_fd(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

#define AUTO_FREE  __attribute__((cleanup(auto_free_ptr)))
#define AUTO_CLOSE __attribute__((cleanup(auto_close_fd)))

/* Moves a pointer or descriptor out of its variable, which no longer owns it. */
#define take_ptr(place)                     \
    (__extension__({                        \
        __typeof__(place) taken_ = (place); \
        (place) = NULL;                     \
        taken_;                             \
    }))

static inline int
take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

#endif
