/* The small parts that catalogs are made of: element types, the arena, text for messages. */
#include "load/catalog_show.h"
#include "load/catalog_text.h"
#include "load/dtype.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <stdlib.h>
#include <string.h>

static void dtypes_have_names_and_widths(void **state)
{
    (void)state;
    for (int i = RAFFIA_DTYPE_NONE + 1; i < RAFFIA_DTYPE_COUNT; i++) {
        raffia_dtype dtype = (raffia_dtype)i;
        assert_int_equal(catalog_dtype_find(raffia_dtype_name(dtype)), dtype);
        assert_in_range(raffia_dtype_bits(dtype), 4, 64);
    }
    assert_string_equal(raffia_dtype_name(RAFFIA_DTYPE_BF16), "BF16");
    assert_int_equal(raffia_dtype_bits(RAFFIA_DTYPE_F6_E2M3), 6);
    assert_int_equal(raffia_dtype_bits(RAFFIA_DTYPE_C64), 64);
}

static void foreign_dtypes_are_told_apart(void **state)
{
    (void)state;
    static const int foreign[] = {RAFFIA_DTYPE_NONE, RAFFIA_DTYPE_COUNT, 1000, -1};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        assert_string_equal(raffia_dtype_name((raffia_dtype)foreign[i]), "?");
        assert_int_equal(raffia_dtype_bits((raffia_dtype)foreign[i]), 0);
    }
    static const char *const names[] = {"", "?", "f32", "F32 ", "F3", "F322", "NONE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(catalog_dtype_find(names[i]), RAFFIA_DTYPE_NONE);
}

#define PIECES 2000

static void strings_and_shapes_stay_as_they_were(void **state)
{
    (void)state;
    struct test_random random = test_random_seeded("strings_and_shapes_stay_as_they_were");
    struct catalog_text *text = catalog_text_create();
    assert_non_null(text);
    static const char *strings[PIECES];
    static uint64_t *shapes[PIECES];
    static size_t lengths[PIECES], ranks[PIECES];
    static char long_string[3000000];
    memset(long_string, 'x', sizeof long_string - 1);
    for (size_t i = 0; i < PIECES; i++) {
        /* Now and then one that no ordinary chunk can hold. */
        lengths[i] = test_random_below(&random, i % 500 == 0 ? sizeof long_string : 60);
        ranks[i] = test_random_below(&random, i % 700 == 0 ? 100000 : 6);
        strings[i] = catalog_text_string(text, long_string + sizeof long_string - 1 - lengths[i]);
        shapes[i] = catalog_text_shape(text, ranks[i]);
        assert_non_null(strings[i]);
        assert_non_null(shapes[i]);
        for (size_t k = 0; k < ranks[i]; k++)
            shapes[i][k] = i * 1000003 + k;
    }
    for (size_t i = 0; i < PIECES; i++) {
        assert_int_equal(strlen(strings[i]), lengths[i]);
        assert_int_equal(strspn(strings[i], "x"), lengths[i]);
        assert_int_equal((uintptr_t)shapes[i] % sizeof(uint64_t), 0);
        for (size_t k = 0; k < ranks[i]; k++)
            if (shapes[i][k] != i * 1000003 + k)
                fail_msg("shape %zu was overwritten", i);
    }
    catalog_text_destroy(text);
    catalog_text_destroy(NULL);
}

static void names_are_shown_without_harm(void **state)
{
    (void)state;
    static const struct {
        const char *name, *shown;
    } cases[] = {
        {"", ""},
        {"model.layers.0", "model.layers.0"},
        {"\xc3\xa9\xe4\xb8\x96\xf0\x9f\x98\x80", "\xc3\xa9\xe4\xb8\x96\xf0\x9f\x98\x80"},
        {"a\nb\x1b[0m\x7f", "a\\x0ab\\x1b[0m\\x7f"},
        {"\xc2\x85", "\\xc2\\x85"},                   /* a control character of two bytes */
        {"\xe2\x80\xae", "\\xe2\\x80\\xae"},          /* right to left from here on */
        {"\xff\xc3", "\\xff\\xc3"},                   /* cut short */
        {"\xc0\xaf", "\\xc0\\xaf"},                   /* longer than need be */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},          /* half of a pair */
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* beyond the last character */
        {"\xf8\x88\x80\x80", "\\xf8\\x88\\x80\\x80"}, /* no such lead byte */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(catalog_show(cases[i].name).text, cases[i].shown);
}

static void long_names_are_cut(void **state)
{
    (void)state;
    char name[2000];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    name[80] = '\0';
    assert_string_equal(catalog_show(name).text, name);
    name[80] = 'n';
    struct catalog_shown shown = catalog_show(name);
    assert_int_equal(strlen(shown.text), 83);
    assert_string_equal(shown.text + 80, "...");

    memcpy(name + sizeof name - 1 - strlen("/end"), "/end", strlen("/end"));
    shown = catalog_show_path(name);
    assert_memory_equal(shown.text, "...n", 4);
    assert_string_equal(shown.text + strlen(shown.text) - 4, "/end");
    assert_in_range(strlen(shown.text), 100, CATALOG_SHOW_MAX - 1);

    memset(name, '\n', sizeof name - 1); /* the longest way to show a byte */
    assert_in_range(strlen(catalog_show_path(name).text), 100, CATALOG_SHOW_MAX - 1);
    for (size_t i = 0; i + 2 < sizeof name; i += 2)
        memcpy(name + i, "\xc3\xa9", 2);
    assert_null(strchr(catalog_show_path(name).text, '\\')); /* no character was cut in half */
    assert_null(strchr(catalog_show(name).text, '\\'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_have_names_and_widths),
        cmocka_unit_test(foreign_dtypes_are_told_apart),
        cmocka_unit_test(strings_and_shapes_stay_as_they_were),
        cmocka_unit_test(names_are_shown_without_harm),
        cmocka_unit_test(long_names_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
