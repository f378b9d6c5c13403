#include "copy/copy_property.h"

#include "copy/copy.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <raffia/resources.h>

#include <stdlib.h>
#include <string.h>

#define ROOM      ((size_t)1 << 20)
#define COUNT_MAX 300

struct sides {
    struct copy_device on;
    raffia_resource *device, *pinned;
    unsigned char *on_device, *on_host;
    unsigned char *device_is, *host_is; /* what they must hold */
};

static const raffia_memory_resources none = {{0}, {0}};

static void must_copy(const struct sides *s, void *to, const void *from)
{
    const raffia_copy_element whole = {to, from, ROOM};
    assert_ok(copy_batch_below(&s->on, NULL, &whole, 1, 0, &none, NULL));
    assert_ok(s->on.device.driver->stream_wait(s->on.device.index, NULL));
}

static void open_sides(struct sides *s, const char *device)
{
    const raffia_device_resource_options options = {.struct_size = sizeof options,
                                                    .device = device};
    void *memory;
    assert_ok(copy_device_open(device, &s->on));
    assert_ok(raffia_device_resource_create(&options, &s->device));
    assert_ok(raffia_pinned_host_resource_create(&options, &s->pinned));
    assert_ok(raffia_allocate(raffia_ref(s->device), NULL, ROOM, 0, &memory));
    s->on_device = memory;
    assert_ok(raffia_allocate(raffia_ref(s->pinned), NULL, ROOM, 0, &memory));
    s->on_host = memory;
    s->device_is = malloc(ROOM);
    s->host_is = malloc(ROOM);
    assert_true(s->device_is && s->host_is);
}

static void close_sides(struct sides *s)
{
    free(s->device_is);
    free(s->host_is);
    assert_ok(raffia_deallocate(raffia_ref(s->device), NULL, s->on_device, ROOM, 0));
    assert_ok(raffia_deallocate(raffia_ref(s->pinned), NULL, s->on_host, ROOM, 0));
    raffia_resource_release(s->device);
    raffia_resource_release(s->pinned);
}

static void scramble(struct sides *s, struct test_random *random)
{
    for (size_t i = 0; i < ROOM; i += 8) {
        const uint64_t a = test_random_next(random), b = test_random_next(random);
        memcpy(s->device_is + i, &a, 8);
        memcpy(s->host_is + i, &b, 8);
    }
    memcpy(s->on_host, s->host_is, ROOM);
    unsigned char *from = s->on_host; /* by way of the pinned block, which is then as it was */
    memcpy(from, s->device_is, ROOM);
    must_copy(s, s->on_device, from);
    memcpy(from, s->host_is, ROOM);
}

/* Copies that do not overlap, one behind the other with gaps, each either way. */
static size_t list_copies(struct sides *s, struct test_random *random, size_t largest,
                          raffia_copy_element *copies)
{
    size_t count = 0, host = 0, device = 0;
    const size_t gap = test_random_below(random, 2) ? 1 : 70;
    const size_t unit = (size_t)1 << test_random_below(random, 5);
    while (count < COUNT_MAX) {
        const size_t bytes = test_random_below(random, 9) ? test_random_size(random, largest) : 0;
        host += test_random_below(random, gap) / unit * unit;
        device += test_random_below(random, gap);
        if (host + bytes > ROOM || device + bytes > ROOM)
            break;
        const bool up = test_random_below(random, 2);
        void *there = s->on_device + device, *here = s->on_host + host;
        copies[count++] = (raffia_copy_element){up ? there : here, up ? here : there, bytes};
        if (up)
            memcpy(s->device_is + device, s->host_is + host, bytes);
        else
            memcpy(s->host_is + host, s->device_is + device, bytes);
        host += bytes;
        device += bytes;
    }
    return count;
}

static void expect_all(struct sides *s)
{
    assert_ok(s->on.device.driver->stream_wait(s->on.device.index, NULL));
    assert_memory_equal(s->on_host, s->host_is, ROOM);
    must_copy(s, s->on_host, s->on_device);
    assert_memory_equal(s->on_host, s->device_is, ROOM);
}

void copy_property(const char *test, const char *device, size_t rounds)
{
    struct test_random random = test_random_seeded(test);
    raffia_copy_element copies[COUNT_MAX];
    struct sides s;
    size_t by_kernel_in_all = 0;
    open_sides(&s, device);
    for (size_t round = 0; round < rounds; round++) {
        scramble(&s, &random);
        const size_t largest = test_random_size(&random, round % 4 ? 1000 : 50000);
        size_t count = list_copies(&s, &random, largest, copies), by_kernel, expected = 0;
        const size_t limit = test_random_below(&random, largest + 2);
        for (size_t i = 0; i < count; i++)
            expected += copies[i].bytes && copies[i].bytes < limit;
        assert_ok(copy_batch_below(&s.on, NULL, copies, count, limit, &none, &by_kernel));
        assert_int_equal(by_kernel, expected);
        by_kernel_in_all += by_kernel;
        expect_all(&s);
    }
    assert_true(by_kernel_in_all > 0);
    close_sides(&s);
}
