/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "host/elfnote.h"

#include <kcap/plugin.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "lib/buf.h"

#define MAX_HEADERS  256
#define MAX_NOTE_LEN 65536

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#elif defined(__i386__)
#define OWN_MACHINE EM_386
#elif defined(__arm__)
#define OWN_MACHINE EM_ARM
#elif defined(__riscv)
#define OWN_MACHINE EM_RISCV
#elif defined(__powerpc64__)
#define OWN_MACHINE EM_PPC64
#elif defined(__s390x__)
#define OWN_MACHINE EM_S390
#else
#error "add this machine's ELF number"
#endif
#define OWN_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)
#define OWN_DATA  (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)

static bool
read_at(int fd, void *to, size_t len, uint64_t offset)
{
    return offset <= INT64_MAX - len && pread(fd, to, len, (off_t)offset) == (ssize_t)len;
}

static uint32_t
word_at(const char *p)
{
    uint32_t word;

    memcpy(&word, p, sizeof word);
    return word;
}

static size_t
padded(size_t len, size_t align)
{
    return (len + align - 1) & ~(align - 1);
}

/* Looks through one note segment: entries of {namesz, descsz, type, name, desc}, each part
 * padded. */
static bool
find_in_segment(const char *p, size_t len, size_t align, struct elfnote *ret)
{
    while (len >= 12) {
        size_t namesz = word_at(p), descsz = word_at(p + 4);
        size_t desc_at, entry_len;

        if (namesz > MAX_NOTE_LEN || descsz > MAX_NOTE_LEN)
            return false;
        desc_at = padded(12 + namesz, align);
        entry_len = padded(desc_at + descsz, align);
        if (desc_at + descsz > len)
            return false;
        if (namesz == 5 && memcmp(p + 12, "kcap", 5) == 0 && descsz == 8 &&
            word_at(p + 8) == KCAP_NOTE_TYPE) {
            ret->abi_major = word_at(p + desc_at);
            ret->trust_class = word_at(p + desc_at + 4);
            return true;
        }
        if (entry_len >= len)
            return false;
        p += entry_len;
        len -= entry_len;
    }
    return false;
}

static const char *
check_header(const ElfW(Ehdr) * header)
{
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return "it is not an ELF file";
    if (header->e_ident[EI_CLASS] != OWN_CLASS || header->e_ident[EI_DATA] != OWN_DATA ||
        header->e_machine != OWN_MACHINE)
        return "it was built for another machine";
    if (header->e_type != ET_DYN)
        return "it is not a shared object";
    if (header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phnum > MAX_HEADERS)
        return "its ELF header is damaged";
    return NULL;
}

int
elfnote_read(int fd, struct elfnote *ret, const char **ret_error)
{
    AUTO_BUF struct buf segment = BUF_INIT(MAX_NOTE_LEN);
    ElfW(Ehdr) header;

    *ret_error = "it is not an ELF file";
    if (!read_at(fd, &header, sizeof header, 0))
        return -1;
    *ret_error = check_header(&header);
    if (*ret_error)
        return -1;

    *ret_error = "it is truncated";
    for (unsigned i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) program;
        if (!read_at(fd, &program, sizeof program, header.e_phoff + i * sizeof program))
            return -1;
        if (program.p_type != PT_NOTE || program.p_filesz > MAX_NOTE_LEN)
            continue;
        buf_clear(&segment);
        if (!buf_reserve(&segment, program.p_filesz) ||
            !read_at(fd, segment.data, program.p_filesz, program.p_offset))
            return -1;
        if (find_in_segment(segment.data, program.p_filesz, program.p_align == 8 ? 8 : 4,
                            ret)) {
            *ret_error = NULL;
            return 0;
        }
    }
    *ret_error = "it carries no kcap note, so it is no plugin of kcap-host";
    return -1;
}
