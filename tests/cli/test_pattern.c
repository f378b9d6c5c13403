/* The pattern: what it promises about bytes that are wrong or misplaced. */
#include "cli/pattern.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <string.h>

#define BYTES 5003u

static void the_first_words_never_change(void **state)
{
    /* Files made by one version must verify with the next. Worked out from the definition in
     * pattern.h by a program of its own. */
    uint64_t words[3];
    pattern_fill(pattern_key(1, "model.norm.weight"), 0, words, sizeof words);
    assert_true(words[0] == 0x78456588d5853366u && words[1] == 0xaaff914a83b0499cu &&
                words[2] == 0x5bba3f88e0c6b798u);
    (void)state;
}

static void what_is_filled_checks_out_from_any_word(void **state)
{
    unsigned char buffer[BYTES];
    uint64_t key = pattern_key(7, "a"), bad = 0;
    pattern_fill(key, 0, buffer, BYTES);
    for (size_t offset = 0; offset < BYTES; offset += PATTERN_WORD)
        assert_true(pattern_check(key, offset, buffer + offset, BYTES - offset, &bad));
    (void)state;
}

static void pieces_join_into_the_whole(void **state)
{
    unsigned char whole[BYTES], pieces[BYTES];
    uint64_t key = pattern_key(7, "b");
    pattern_fill(key, 0, whole, BYTES);
    struct test_random random = test_random_seeded("pieces_join_into_the_whole");
    for (size_t done = 0; done < BYTES;) {
        size_t bytes = PATTERN_WORD * (1 + test_random_below(&random, 100));
        if (bytes > BYTES - done)
            bytes = BYTES - done;
        pattern_fill(key, done, pieces + done, bytes);
        done += bytes;
    }
    assert_memory_equal(whole, pieces, BYTES);
    (void)state;
}

static void the_first_wrong_byte_is_named(void **state)
{
    unsigned char buffer[BYTES];
    uint64_t key = pattern_key(3, "c");
    pattern_fill(key, 0, buffer, BYTES);
    for (size_t i = 0; i < BYTES; i++) {
        uint64_t bad = 0;
        buffer[i] ^= 1;
        buffer[BYTES - 1] ^= 2;
        assert_false(pattern_check(key, 0, buffer, BYTES, &bad));
        assert_true(bad == i);
        buffer[i] ^= 1;
        buffer[BYTES - 1] ^= 2;
    }
    (void)state;
}

static void a_shifted_or_foreign_tensor_shows(void **state)
{
    unsigned char buffer[BYTES];
    uint64_t key = pattern_key(3, "c"), bad = 0;
    pattern_fill(key, 0, buffer, BYTES);
    assert_false(pattern_check(key, PATTERN_WORD, buffer, BYTES, &bad));
    assert_false(pattern_check(pattern_key(3, "d"), 0, buffer, BYTES, &bad));
    assert_false(pattern_check(pattern_key(4, "c"), 0, buffer, BYTES, &bad));
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_words_never_change),
        cmocka_unit_test(what_is_filled_checks_out_from_any_word),
        cmocka_unit_test(pieces_join_into_the_whole),
        cmocka_unit_test(the_first_wrong_byte_is_named),
        cmocka_unit_test(a_shifted_or_foreign_tensor_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
