/* SPEC A12: buffers, views and DLPack tensors. */
#include "driver/sim/sim.h"
#include "resource/makers.h"
#include "support/fault_loop.h"
#include "support/huge_requests.h"

#include <raffia/buffer.h>
#include <raffia/config.h>
#include <raffia/current_resource.h>

#include <string.h>

#define OPTIONS(...)                                                                               \
    (&(raffia_buffer_options){.struct_size = sizeof(raffia_buffer_options), __VA_ARGS__})

static raffia_buffer *must_create(const raffia_buffer_options *options, size_t bytes)
{
    raffia_buffer *buffer;
    assert_ok(raffia_buffer_create(options, bytes, &buffer));
    assert_int_equal(raffia_buffer_size(buffer), bytes);
    return buffer;
}

static void count_up(raffia_buffer *buffer)
{
    unsigned char *at = raffia_buffer_data(buffer);
    for (size_t i = 0; i < raffia_buffer_size(buffer); i++)
        at[i] = (unsigned char)i;
}

static bool counts_up(const raffia_buffer *buffer, size_t bytes)
{
    const unsigned char *at = raffia_buffer_data(buffer);
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != (unsigned char)i)
            return false;
    return true;
}

static void a12_a_buffer_keeps_its_resource(void **state)
{
    (void)state;
    raffia_resource *device = must_make_device("host"), *tracking;
    size_t bytes;
    assert_ok(raffia_tracking_resource_create(raffia_ref(device), NULL, &tracking));
    raffia_resource_release(device);
    raffia_buffer *buffer = must_create(OPTIONS(.resource = raffia_ref(tracking)), 1000);
    const raffia_resource_ref ref = raffia_ref(tracking);
    raffia_resource_release(tracking);
    assert_ptr_equal(raffia_buffer_resource(buffer).context, ref.context);
    assert_string_equal(raffia_buffer_device(buffer), "host");
    assert_null(raffia_buffer_stream(buffer));
    assert_ok(raffia_tracking_query(ref, &bytes, NULL));
    assert_int_equal(bytes, 1000);
    assert_int_equal((uintptr_t)raffia_buffer_data(buffer) % 256, 0);
    raffia_buffer_destroy(buffer);
    raffia_buffer_destroy(NULL);
}

static void a12_resize_reserve_and_shrink(void **state)
{
    (void)state;
    raffia_resource *device = must_make_device("host");
    raffia_buffer *buffer = must_create(OPTIONS(.resource = raffia_ref(device)), 1000);
    raffia_resource_release(device);
    count_up(buffer);
    void *before = raffia_buffer_data(buffer);
    assert_ok(raffia_buffer_resize(buffer, 10)); /* only the size */
    assert_int_equal(raffia_buffer_capacity(buffer), 1000);
    assert_ok(raffia_buffer_resize(buffer, 1000));
    assert_ptr_equal(raffia_buffer_data(buffer), before);
    assert_ok(raffia_buffer_resize(buffer, 5000));
    assert_int_equal(raffia_buffer_capacity(buffer), 5000); /* exactly */
    assert_true(counts_up(buffer, 1000));
    assert_ok(raffia_buffer_reserve(buffer, 9000));
    assert_int_equal(raffia_buffer_size(buffer), 5000);
    assert_int_equal(raffia_buffer_capacity(buffer), 9000);
    assert_ok(raffia_buffer_resize(buffer, 900));
    assert_ok(raffia_buffer_shrink(buffer));
    assert_int_equal(raffia_buffer_capacity(buffer), 900);
    assert_true(counts_up(buffer, 900));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_buffer_resize(buffer, PIB));
    assert_int_equal(raffia_buffer_size(buffer), 900);
    assert_true(counts_up(buffer, 900));
    assert_ok(raffia_buffer_resize(buffer, 0));
    assert_ok(raffia_buffer_shrink(buffer));
    assert_null(raffia_buffer_data(buffer));
    assert_ok(raffia_buffer_resize(buffer, 100));
    raffia_buffer_destroy(buffer);
}

static void a12_growth_stays_in_place_where_there_is_room(void **state)
{
    (void)state;
    raffia_resource *pool;
    assert_ok(raffia_pool_resource_create(
        &(raffia_pool_options){.struct_size = sizeof(raffia_pool_options),
                               .device = "host",
                               .pages = RAFFIA_PAGES_OFF,
                               .initial_bytes = MIB,
                               .maximum_bytes = MIB},
        &pool));
    raffia_buffer *buffer = must_create(OPTIONS(.resource = raffia_ref(pool)), 100 * KIB);
    void *before = raffia_buffer_data(buffer);
    count_up(buffer);
    assert_ok(raffia_buffer_resize(buffer, 900 * KIB)); /* two of these would not fit */
    assert_ptr_equal(raffia_buffer_data(buffer), before);
    assert_true(counts_up(buffer, 100 * KIB));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_buffer_resize(buffer, 2 * MIB));
    assert_ok(raffia_buffer_resize(buffer, 100));
    assert_ok(raffia_buffer_shrink(buffer));
    assert_ptr_equal(raffia_buffer_data(buffer), before);
    raffia_buffer_destroy(buffer);
    raffia_resource_release(pool);
}

static void a12_copies_have_the_size_and_not_the_capacity(void **state)
{
    (void)state;
    raffia_buffer *buffer = must_create(OPTIONS(.device = "host"), 700), *copy, *empty;
    count_up(buffer);
    assert_ok(raffia_buffer_reserve(buffer, 5000));
    assert_ok(raffia_buffer_copy(buffer, NULL, &copy));
    assert_int_equal(raffia_buffer_capacity(copy), 700);
    assert_true(counts_up(copy, 700));
    assert_ptr_not_equal(raffia_buffer_data(copy), raffia_buffer_data(buffer));
    assert_true(
        raffia_resource_is_equal(raffia_buffer_resource(copy), raffia_buffer_resource(buffer)));
    raffia_buffer_destroy(copy);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_buffer_create_from(OPTIONS(.device = "host"), NULL, 1, &copy));
    assert_ok(raffia_buffer_create_from(OPTIONS(.device = "host"), NULL, 0, &empty));
    assert_ok(raffia_buffer_copy(empty, NULL, &copy));
    assert_null(raffia_buffer_data(copy));
    raffia_buffer_destroy(copy);
    raffia_buffer_destroy(empty);
    raffia_buffer_destroy(buffer);
}

static void a12_a_buffer_is_freed_in_the_order_of_its_stream(void **state)
{
    (void)state;
    sim_reset();
    driver_stream stream;
    char source[4096];
    memset(source, 3, sizeof source);
    assert_ok(sim_driver.stream_create(0, &stream));
    raffia_resource *device = must_make_device("sim:0");
    raffia_buffer *buffer;
    assert_ok(sim_stream_delay(0, stream, 2000));
    assert_ok(raffia_buffer_create_from(OPTIONS(.resource = raffia_ref(device), .stream = stream),
                                        source, sizeof source, &buffer));
    raffia_resource_release(device);
    assert_string_equal(raffia_buffer_device(buffer), "sim:0");
    assert_ok(raffia_buffer_resize(buffer, 2 * sizeof source)); /* copies behind the copy */
    raffia_buffer *copy;
    assert_ok(raffia_buffer_copy(buffer, NULL, &copy));
    assert_ok(sim_driver.stream_wait(0, stream));
    assert_memory_equal(raffia_buffer_data(copy), source, sizeof source);
    assert_ok(sim_stream_delay(0, stream, 2000));
    assert_ok(sim_driver.copy(0, stream, raffia_buffer_data(copy), source, sizeof source));
    raffia_buffer_destroy(copy);
    assert_ok(raffia_buffer_set_stream(buffer, NULL));
    raffia_buffer_destroy(buffer);
    assert_ok(sim_driver.stream_destroy(0, stream));
    assert_true(sim_is_idle());
    int not_a_stream;
    assert_status(
        RAFFIA_ERROR_INVALID_ARGUMENT,
        raffia_buffer_create(OPTIONS(.device = "host", .stream = &not_a_stream), 1, &buffer));
}

static void a12_without_a_resource_it_is_the_current_one(void **state)
{
    (void)state;
    struct users_resource users = {.properties = RAFFIA_DEVICE_ACCESSIBLE};
    raffia_resource *borrowed;
    assert_ok(raffia_resource_from_ref(users_ref(&users), &borrowed));
    RAFFIA_SCOPED_RESOURCE(scope);
    assert_ok(raffia_resource_scope_begin("host", borrowed, &scope));
    raffia_buffer *buffer = must_create(OPTIONS(.device = "host", .alignment = 4096), 10);
    raffia_resource_scope_end(&scope);
    assert_int_equal(users.live, 1);
    assert_int_equal((uintptr_t)raffia_buffer_data(buffer) % 4096, 0);
    assert_ok(raffia_buffer_resize(buffer, 1000)); /* from the one of its birth */
    assert_int_equal(users.live, 1);
    raffia_buffer_destroy(buffer);
    assert_int_equal(users.live, 0);
    raffia_resource_release(borrowed);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_buffer_create(OPTIONS(.alignment = 3), 1, &buffer));
    assert_status(RAFFIA_ERROR_NOT_FOUND,
                  raffia_buffer_create(OPTIONS(.device = "nowhere"), 1, &buffer));
}

static void a12_views_are_typed_and_bounded(void **state)
{
    (void)state;
    raffia_buffer *buffer = must_create(OPTIONS(.device = "host"), 100);
    raffia_view view;
    assert_ok(raffia_buffer_view(buffer, RAFFIA_DTYPE_F32, 8, RAFFIA_NONE, &view));
    assert_int_equal(view.count, 23);
    assert_int_equal(view.bytes, 92);
    assert_ptr_equal(view.data, (char *)raffia_buffer_data(buffer) + 8);
    assert_ok(raffia_buffer_view(buffer, RAFFIA_DTYPE_F4, 0, 200, &view));
    assert_int_equal(view.bytes, 100);
    assert_ok(raffia_buffer_view(buffer, RAFFIA_DTYPE_F6_E2M3, 0, RAFFIA_NONE, &view));
    assert_int_equal(view.count, 133);
    assert_ok(raffia_buffer_view(buffer, RAFFIA_DTYPE_F64, 96, RAFFIA_NONE, &view));
    assert_int_equal(view.count, 0);
    assert_status(RAFFIA_ERROR_LIMIT, raffia_buffer_view(buffer, RAFFIA_DTYPE_F64, 96, 1, &view));
    assert_status(RAFFIA_ERROR_LIMIT, raffia_buffer_view(buffer, RAFFIA_DTYPE_U8, 101, 0, &view));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_buffer_view(buffer, RAFFIA_DTYPE_F32, 2, 1, &view));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_buffer_view(buffer, RAFFIA_DTYPE_COUNT, 0, 1, &view));
    assert_status(RAFFIA_ERROR_OVERFLOW,
                  raffia_buffer_view(buffer, RAFFIA_DTYPE_F64, 0, SIZE_MAX - 1, &view));
    RAFFIA_BUFFER_AS(float, buffer)[24] = 1;
    assert_int_equal(RAFFIA_BUFFER_COUNT(float, buffer), 25);
    for (int type = 1; type < RAFFIA_DTYPE_COUNT; type++) {
        assert_ok(raffia_buffer_view(buffer, (raffia_dtype)type, 0, 8, &view));
        assert_int_equal(view.bytes, raffia_dtype_bits((raffia_dtype)type));
    }
    raffia_buffer_destroy(buffer);
}

static void a12_a_dlpack_tensor_owns_the_buffer(void **state)
{
    (void)state;
    raffia_resource *device = must_make_device("host"), *tracking;
    raffia_dlpack_tensor *tensor;
    assert_ok(raffia_tracking_resource_create(raffia_ref(device), NULL, &tracking));
    raffia_resource_release(device);
    raffia_buffer *buffer = must_create(OPTIONS(.resource = raffia_ref(tracking)), 2 * 3 * 4);
    void *data = raffia_buffer_data(buffer);
    const int64_t shape[] = {2, 3}, too_large[] = {2, 4}, negative[] = {2, -1},
                  endless[] = {INT64_MAX, INT64_MAX};
    assert_status(RAFFIA_ERROR_LIMIT,
                  raffia_buffer_to_dlpack(buffer, RAFFIA_DTYPE_F32, too_large, 2, &tensor));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_buffer_to_dlpack(buffer, RAFFIA_DTYPE_F32, negative, 2, &tensor));
    assert_status(RAFFIA_ERROR_OVERFLOW,
                  raffia_buffer_to_dlpack(buffer, RAFFIA_DTYPE_F32, endless, 2, &tensor));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_buffer_to_dlpack(buffer, RAFFIA_DTYPE_F32, shape, 33, &tensor));
    assert_ok(raffia_buffer_to_dlpack(buffer, RAFFIA_DTYPE_BF16, shape, 2, &tensor));
    assert_int_equal(tensor->version.major, 1);
    assert_ptr_equal(tensor->view.data, data);
    assert_int_equal(tensor->view.device.type, RAFFIA_DLPACK_CPU);
    assert_int_equal(tensor->view.dtype.code, RAFFIA_DLPACK_BFLOAT);
    assert_int_equal(tensor->view.dtype.bits, 16);
    assert_int_equal(tensor->view.rank, 2);
    assert_int_equal(tensor->view.shape[1], 3);
    assert_int_equal(tensor->view.strides[0], 3);
    assert_int_equal(tensor->view.strides[1], 1);
    size_t bytes;
    assert_ok(raffia_tracking_query(raffia_ref(tracking), &bytes, NULL));
    assert_int_equal(bytes, 24);
    tensor->deleter(tensor);
    assert_ok(raffia_tracking_query(raffia_ref(tracking), &bytes, NULL));
    assert_int_equal(bytes, 0);
    raffia_resource_release(tracking);
    const int64_t empty[] = {3, 0, 5};
    assert_ok(raffia_buffer_to_dlpack(must_create(OPTIONS(.device = "host"), 8), RAFFIA_DTYPE_F32,
                                      empty, 3, &tensor));
    assert_null(tensor->view.data);
    assert_int_equal(tensor->view.strides[0], 5);
    tensor->deleter(tensor);
}

/* The layout of DLPack on 64-bit machines, by hand from its header. */
static void a12_the_layout_is_dlpacks(void **state)
{
    (void)state;
    assert_int_equal(sizeof(raffia_dlpack_view), 48);
    assert_int_equal(offsetof(raffia_dlpack_view, device), 8);
    assert_int_equal(offsetof(raffia_dlpack_view, rank), 16);
    assert_int_equal(offsetof(raffia_dlpack_view, dtype), 20);
    assert_int_equal(offsetof(raffia_dlpack_view, shape), 24);
    assert_int_equal(offsetof(raffia_dlpack_view, byte_offset), 40);
    assert_int_equal(offsetof(raffia_dlpack_tensor, context), 8);
    assert_int_equal(offsetof(raffia_dlpack_tensor, deleter), 16);
    assert_int_equal(offsetof(raffia_dlpack_tensor, flags), 24);
    assert_int_equal(offsetof(raffia_dlpack_tensor, view), 32);
}

static raffia_status live(void *context)
{
    raffia_buffer *buffer, *copy;
    raffia_dlpack_tensor *tensor;
    const int64_t shape[] = {10};
    raffia_status status =
        raffia_buffer_create_from(OPTIONS(.device = context), shape, sizeof shape, &buffer);
    if (status)
        return status;
    status = raffia_buffer_resize(buffer, 100);
    assert_int_equal(raffia_buffer_size(buffer), status ? sizeof shape : 100);
    if (!status)
        status = raffia_buffer_copy(buffer, NULL, &copy);
    if (!status) {
        status = raffia_buffer_to_dlpack(copy, RAFFIA_DTYPE_F64, shape, 1, &tensor);
        if (status)
            raffia_buffer_destroy(copy);
        else
            tensor->deleter(tensor);
    }
    raffia_buffer_destroy(buffer);
    return status;
}

/* A GPU looks memory up by the start of a copy, and takes none that goes on behind its end. */
static void a12_a_copy_from_a_pinned_pool_may_span_its_chunks(void **state)
{
    (void)state;
    sim_reset();
    raffia_pool *pool;
    void *source;
    const raffia_pool_options options = {.struct_size = sizeof options,
                                         .device = "pinned:sim:0",
                                         .initial_bytes = 8 * MIB,
                                         .chunk_bytes = 2 * MIB};
    assert_ok(raffia_pool_create(&options, &pool));
    assert_ok(raffia_pool_alloc(pool, 7 * MIB, 0, &source));
    memset(source, 1, 7 * MIB);
    memset((char *)source + 5 * MIB, 2, MIB);
    raffia_buffer *buffer, *back;
    assert_ok(raffia_buffer_create_from(OPTIONS(.device = "sim:0"), source, 7 * MIB, &buffer));
    assert_ok(sim_driver.stream_wait(0, NULL));
    assert_memory_equal(sim_view(raffia_buffer_data(buffer)), source, 7 * MIB);
    /* And back. */
    raffia_resource *pinned;
    assert_ok(raffia_pool_resource_from_pool(pool, &pinned));
    assert_ok(raffia_pool_free(pool, source));
    assert_ok(raffia_buffer_copy(buffer, OPTIONS(.resource = raffia_ref(pinned), .device = "sim:0"),
                                 &back));
    assert_ok(sim_driver.stream_wait(0, NULL));
    assert_memory_equal(raffia_buffer_data(back), sim_view(raffia_buffer_data(buffer)), 7 * MIB);
    raffia_buffer_destroy(back);
    raffia_buffer_destroy(buffer);
    raffia_resource_release(pinned);
    raffia_pool_release(pool);
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.misuses, 0);
}

static void any_call_may_fail(void **state)
{
    (void)state;
    char host[] = "host";
    assert_true(fault_loop(live, host, 200) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a12_a_buffer_keeps_its_resource),
        cmocka_unit_test(a12_resize_reserve_and_shrink),
        cmocka_unit_test(a12_growth_stays_in_place_where_there_is_room),
        cmocka_unit_test(a12_copies_have_the_size_and_not_the_capacity),
        cmocka_unit_test(a12_a_buffer_is_freed_in_the_order_of_its_stream),
        cmocka_unit_test(a12_without_a_resource_it_is_the_current_one),
        cmocka_unit_test(a12_views_are_typed_and_bounded),
        cmocka_unit_test(a12_a_dlpack_tensor_owns_the_buffer),
        cmocka_unit_test(a12_the_layout_is_dlpacks),
        cmocka_unit_test(a12_a_copy_from_a_pinned_pool_may_span_its_chunks),
        cmocka_unit_test(any_call_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
