/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <kcap/plugin.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/elfnote.h"
#include "tests/unit/suite.h"

/* A file with nothing but what the reader looks at: a foreign note first, then ours. */
struct image {
    ElfW(Ehdr) header;
    ElfW(Phdr) program[2];
    struct {
        uint32_t namesz, descsz, type;
        char name[4], desc[4];
    } foreign;
    struct kcap_note note;
};

static struct image
good_image(void)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct image image;

    memset(&image, 0, sizeof image);
    ck_assert_int_eq(pread(fd, &image.header, sizeof image.header, 0), sizeof image.header);
    (void)close(fd); /* our own header has this machine's numbers */
    image.header.e_type = ET_DYN;
    image.header.e_phoff = offsetof(struct image, program);
    image.header.e_phnum = 2;
    image.program[0].p_type = PT_LOAD;
    image.program[1].p_type = PT_NOTE;
    image.program[1].p_offset = offsetof(struct image, foreign);
    image.program[1].p_filesz = sizeof image - offsetof(struct image, foreign);
    image.program[1].p_align = 4;
    image.foreign.namesz = 4;
    image.foreign.descsz = 4;
    memcpy(image.foreign.name, "GNU", 4);
    image.note = (struct kcap_note){5, 8, KCAP_NOTE_TYPE, "kcap", 1, KCAP_CLASS_REVIEWER};
    return image;
}

static int
read_bytes(const void *bytes, size_t len, struct elfnote *ret, const char **ret_error)
{
    int fd = memfd_create("image", MFD_CLOEXEC), r;

    ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
    r = elfnote_read(fd, ret, ret_error);
    (void)close(fd);
    return r;
}

START_TEST(the_note_is_found)
{
    struct image image = good_image();
    struct elfnote note;
    const char *error;

    ck_assert_int_eq(read_bytes(&image, sizeof image, &note, &error), 0);
    ck_assert_uint_eq(note.abi_major, 1);
    ck_assert_uint_eq(note.trust_class, KCAP_CLASS_REVIEWER);
}
END_TEST

static void
not_elf(struct image *i)
{
    i->header.e_ident[0] = 'M';
}
static void
other_class(struct image *i)
{
    i->header.e_ident[EI_CLASS] ^= 3;
}
static void
other_order(struct image *i)
{
    i->header.e_ident[EI_DATA] ^= 3;
}
static void
other_machine(struct image *i)
{
    i->header.e_machine = 0x1234;
}
static void
executable(struct image *i)
{
    i->header.e_type = ET_EXEC;
}
static void
odd_headers(struct image *i)
{
    i->header.e_phentsize = 7;
}
static void
many_headers(struct image *i)
{
    i->header.e_phnum = 60000;
}
static void
far_headers(struct image *i)
{
    i->header.e_phoff = (ElfW(Off)) - 100;
}
static void
far_segment(struct image *i)
{
    i->program[1].p_offset = 1 << 30;
}
static void
huge_segment(struct image *i)
{
    i->program[1].p_filesz = (ElfW(Xword)) - 1;
}
static void
no_note(struct image *i)
{
    i->program[1].p_type = PT_LOAD;
}
static void
other_owner(struct image *i)
{
    i->note.name[0] = 'K';
}
static void
other_type(struct image *i)
{
    i->note.type = 2;
}
static void
short_desc(struct image *i)
{
    i->note.descsz = 4;
}
static void
endless_name(struct image *i)
{
    i->foreign.namesz = 0xfffffff0u;
}
static void
endless_desc(struct image *i)
{
    i->foreign.descsz = 0xffffffffu;
}
static void
zero_sizes(struct image *i)
{
    i->foreign.namesz = i->foreign.descsz = 0;
}

static const struct {
    void (*spoil)(struct image *image);
    const char *error;
} rows[] = {
    {not_elf, "not an ELF file"},        {other_class, "another machine"},
    {other_order, "another machine"},    {other_machine, "another machine"},
    {executable, "not a shared object"}, {odd_headers, "damaged"},
    {many_headers, "damaged"},           {far_headers, "truncated"},
    {far_segment, "truncated"},          {huge_segment, "no kcap note"},
    {no_note, "no kcap note"},           {other_owner, "no kcap note"},
    {other_type, "no kcap note"},        {short_desc, "no kcap note"},
    {endless_name, "no kcap note"},      {endless_desc, "no kcap note"},
    {zero_sizes, "no kcap note"},
};

START_TEST(spoilt_row)
{
    struct image image = good_image();
    struct elfnote note;
    const char *error = NULL;

    rows[_i].spoil(&image);
    ck_assert_int_eq(read_bytes(&image, sizeof image, &note, &error), -1);
    ck_assert_msg(strstr(error, rows[_i].error) != NULL, "row %d: %s", _i, error);
}
END_TEST

START_TEST(every_truncation_is_refused)
{
    struct image image = good_image();
    struct elfnote note;
    const char *error;

    for (size_t len = 0; len < sizeof image; len++)
        ck_assert_int_eq(read_bytes(&image, len, &note, &error), -1);
}
END_TEST

/* Any single changed byte: no fault (a sanitizer looks on), and the class never comes out as
 * another unless the very byte of the class was changed. */
START_TEST(every_flipped_byte_is_survived)
{
    struct image image = good_image();

    for (size_t at = 0; at < sizeof image; at++) {
        struct image copy = image;
        struct elfnote note;
        const char *error;
        bool in_class = at >= offsetof(struct image, note.trust_class);

        ((unsigned char *)&copy)[at] ^= 0xff;
        if (read_bytes(&copy, sizeof copy, &note, &error) == 0 && !in_class)
            ck_assert_uint_eq(note.trust_class, KCAP_CLASS_REVIEWER);
    }
}
END_TEST

static void
add(TCase *tests)
{
    tcase_add_test(tests, the_note_is_found);
    tcase_add_loop_test(tests, spoilt_row, 0, N_ROWS(rows));
    tcase_add_test(tests, every_truncation_is_refused);
    tcase_add_test(tests, every_flipped_byte_is_survived);
}

int
main(void)
{
    return suite_run("elfnote", add);
}
