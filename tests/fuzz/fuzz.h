/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KCAP_TESTS_FUZZ_H
#define KCAP_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* One input. libFuzzer calls it, or replay.c with the files of a corpus. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
