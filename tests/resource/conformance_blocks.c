/* Who may free a block and as what, how it is found, and what a resource says of itself. */
#include "core/checked.h"
#include "resource/conformance.h"

#include <stdio.h>
#include <string.h>

enum { FILLED = 64 * 1024 };

static void fill(const struct subject *subject, void *block, int value)
{
    static char source[FILLED];
    memset(source, value, FILLED);
    assert_true(subject_copy(subject, &(struct driver_copy){block, source, FILLED}, 1));
}

static bool is_filled(const struct subject *subject, void *block, int value)
{
    static char seen[FILLED], expected[FILLED];
    memset(expected, value, FILLED);
    return subject_copy(subject, &(struct driver_copy){seen, block, FILLED}, 1) &&
           memcmp(seen, expected, FILLED) == 0;
}

void a4_a_live_block_keeps_its_owner_alive(void **state)
{
    struct subject *subject = *state;
    void *block = must_allocate(subject, FILLED, 0);
    fill(subject, block, 1);
    raffia_resource_release(subject->resource);
    subject->resource = NULL;
    assert_true(is_filled(subject, block, 1));
    fill(subject, block, 2);
    assert_true(is_filled(subject, block, 2));
    must_free(subject, block, FILLED, 0);
}

void a4_frees_through_the_wrong_resource_are_refused(void **state)
{
    const struct subject *subject = *state;
    if (!(subject->maker->traits & CHECKS_FREES))
        return;
    static char foreign[KIB] __attribute__((aligned(256)));
    char *block = must_allocate(subject, 4 * KIB, 0);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_deallocate(subject->ref, NULL, foreign, KIB, 0));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  raffia_deallocate(subject->ref, NULL, block + 256, 4 * KIB, 0));
    must_free(subject, block, 4 * KIB, 0);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  raffia_deallocate(subject->ref, NULL, block, 4 * KIB, 0));
    /* And the other way about: a block of another kind of resource. */
    struct users_resource users = {.properties = RAFFIA_HOST_ACCESSIBLE};
    void *theirs;
    assert_ok(raffia_allocate(users_ref(&users), NULL, 4 * KIB, 0, &theirs));
    assert_false(raffia_resource_is_equal(subject->ref, users_ref(&users)));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  raffia_deallocate(subject->ref, NULL, theirs, 4 * KIB, 0));
    assert_ok(raffia_deallocate(users_ref(&users), NULL, theirs, 4 * KIB, 0));
    assert_int_equal(users.live, 0);
}

/* One status and one sentence, and nothing changes. */
static void refuse_size(const struct subject *subject, void *block, size_t bytes, size_t alignment,
                        size_t wrong)
{
    char address[32], given[64], has[64];
    snprintf(address, sizeof address, "%p", block);
    snprintf(given, sizeof given, wrong ? "as a block of %zu bytes" : "of %zu", wrong);
    snprintf(has, sizeof has, " has %zu", bytes);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_deallocate(subject->ref, NULL, block, wrong, alignment));
    assert_error_mentions(address);
    assert_error_mentions(given);
    assert_error_mentions("stays as it is");
    if (alignment <= 256) /* else it may be said with the room for its alignment */
        assert_error_mentions(has);
    assert_true(is_marked(subject, block, bytes));
}

void frees_with_another_size_are_refused(void **state)
{
    const struct subject *subject = *state;
    const size_t sizes[] = {16, 1000, 5000, 70000}, alignments[] = {0, 64, 256, 4096};
    if (!(subject->maker->traits & CHECKS_FREES))
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t a = 0; a < sizeof alignments / sizeof *alignments; a++) {
            const size_t bytes = sizes[i], alignment = alignments[a];
            const size_t wrong[] = {0,         1,        bytes - 1, bytes + 1, 2 * bytes,
                                    128 * KIB, 64 * MIB, PIB,       SIZE_MAX};
            void *block;
            if (alignment > subject->maker->largest_align)
                continue;
            block = must_allocate(subject, bytes, alignment);
            assert_true(mark(subject, block, bytes));
            for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++)
                refuse_size(subject, block, bytes, alignment, wrong[w]);
            must_free(subject, block, bytes, alignment);
            assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                          raffia_deallocate(subject->ref, NULL, block, bytes, alignment));
        }
}

/* 1160 bytes with the room to align them to 4096 take as much as 5000 that need none. */
void no_alignment_makes_a_wrong_size_right(void **state)
{
    const struct subject *subject = *state;
    if (!(subject->maker->traits & CHECKS_FREES) || subject->maker->largest_align < 4096)
        return;
    void *block = must_allocate(subject, 5000, 0);
    assert_true(mark(subject, block, 5000));
    refuse_size(subject, block, 5000, 4096, 5000 - (4096 - 256));
    refuse_size(subject, block, 5000, 8192, (size_t)5000 - (8192 - 256));
    must_free(subject, block, 5000, 0);
}

/* As resource.h says who looks at it. Either the block is freed, or it is as before. */
void another_alignment_is_refused_where_it_takes_room(void **state)
{
    const struct subject *subject = *state;
    const size_t pairs[][2] = {{0, 4096}, {4096, 0}, {1024, 4096}, {16, 0}, {0, 1}};
    if (!(subject->maker->traits & CHECKS_FREES))
        return;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const size_t asked = pairs[i][0], given = pairs[i][1];
        const bool matters =
            subject->maker->traits & ALIGNMENT_TAKES_ROOM && core_max(asked, given) > 256;
        if (core_max(asked, given) > subject->maker->largest_align)
            continue;
        void *block = must_allocate(subject, 5000, asked);
        assert_true(mark(subject, block, 5000));
        raffia_status status = raffia_deallocate(subject->ref, NULL, block, 5000, given);
        assert_status(matters ? RAFFIA_ERROR_INVALID_ARGUMENT : RAFFIA_OK, status);
        if (status) {
            assert_error_mentions("stays as it is");
            assert_true(is_marked(subject, block, 5000));
            must_free(subject, block, 5000, asked);
        }
        assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                      raffia_deallocate(subject->ref, NULL, block, 5000, asked));
    }
}

bool count_block(void *context, const raffia_block *block)
{
    assert_true(block->live);
    (*(size_t *)context)++;
    return true;
}

void blocks_are_found_by_address(void **state)
{
    const struct subject *subject = *state;
    if (!(subject->maker->traits & FINDS))
        return;
    char *block = must_allocate(subject, 4 * KIB, 0);
    raffia_block found;
    size_t bytes, count = 0;
    assert_ok(raffia_resource_find(subject->ref, block + 100, &found));
    assert_ptr_equal(found.address, block);
    assert_true(found.bytes >= 4 * KIB);
    assert_ok(raffia_resource_usable_size(subject->ref, block, &bytes));
    assert_true(bytes >= 4 * KIB);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  raffia_resource_usable_size(subject->ref, block + 1, &bytes));
    raffia_status status = raffia_resource_walk(subject->ref, count_block, &count);
    assert_true(status ? status == RAFFIA_ERROR_UNSUPPORTED : count >= 1);
    must_free(subject, block, 4 * KIB, 0);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_resource_find(subject->ref, block, &found));
}

void a_block_that_is_found_has_the_size_asked_for(void **state)
{
    const struct subject *subject = *state;
    const size_t alignments[] = {0, 256, 1024, 4096};
    if (!(subject->maker->traits & FINDS))
        return;
    for (size_t a = 0; a < sizeof alignments / sizeof *alignments; a++) {
        raffia_block found;
        char *block = must_allocate(subject, 3000, alignments[a]);
        assert_ok(raffia_resource_find(subject->ref, block + 2999, &found));
        assert_ptr_equal(found.address, block);
        assert_int_equal(found.requested_bytes, 3000);
        must_free(subject, block, found.requested_bytes, alignments[a]);
    }
}

void a10_it_says_what_it_is(void **state)
{
    const struct subject *subject = *state;
    char line[RAFFIA_RESOURCE_TEXT_MAX] = "", stack[4096] = "", short_text[8];
    assert_true(strlen(raffia_resource_describe(subject->ref, line, sizeof line)) > 0);
    const size_t needed = raffia_resource_print_stack(subject->ref, stack, sizeof stack);
    assert_int_equal(needed, strlen(stack) + 1);
    assert_int_equal(strncmp(stack, line, strlen(line)), 0);
    assert_int_equal(raffia_resource_print_stack(subject->ref, short_text, sizeof short_text),
                     needed);
    assert_int_equal(strlen(short_text), sizeof short_text - 1);
    assert_int_equal(raffia_resource_print_stack(subject->ref, NULL, 0), needed);
    assert_true(raffia_resource_is_equal(subject->ref, subject->ref));
    const unsigned properties = raffia_resource_properties_of(subject->ref);
    if (subject->cpu_sees)
        assert_true(properties & RAFFIA_HOST_ACCESSIBLE);
    else
        assert_int_equal(properties, RAFFIA_DEVICE_ACCESSIBLE);
}
