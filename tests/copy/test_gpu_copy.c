/* SPEC A7 on a real GPU: the kernel itself. */
#include "copy/copy.h"
#include "copy/copy_property.h"
#include "driver/gpu_test.h"
#include "support/cmocka.h"

static void a7_copies_of_all_sizes_and_alignments_are_exact(void **state)
{
    (void)state;
    copy_property("a7_copies_of_all_sizes_and_alignments_are_exact", "cuda:0", 300);
}

static void a7_a_threshold_can_be_measured(void **state)
{
    (void)state;
    raffia_copy_thresholds found;
    assert_ok(raffia_copy_calibrate("cuda:0", &found));
    printf("copies of less than %zu bytes, %zu or more at once\n", found.bytes, found.count);
    raffia_copy_release_kernels();
}

int main(void)
{
    if (!gpu_test_has_device())
        return GPU_TEST_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a7_copies_of_all_sizes_and_alignments_are_exact),
        cmocka_unit_test(a7_a_threshold_can_be_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
