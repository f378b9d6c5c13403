#include "load_fixture.h"

#include "support/cmocka.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES ((size_t)4096)

struct test_memory test_memory_take(size_t bytes, size_t alignment, size_t shift)
{
    struct test_memory memory = {.bytes = bytes};
    if (posix_memalign(&memory.base, alignment, bytes + shift + alignment))
        fail_msg("no memory for the test");
    memory.at = (unsigned char *)memory.base + shift;
    memset(memory.at, 0xee, bytes);
    return memory;
}

void test_memory_free(struct test_memory *memory)
{
    free(memory->base);
    *memory = (struct test_memory){0};
}

struct test_memory test_memory_for(const char *path, const raffia_load_options *options)
{
    raffia_model *model;
    assert_ok(raffia_model_inspect(path, options, &model));
    size_t bytes = raffia_model_bytes_needed(model);
    raffia_model_release(model);
    return test_memory_take(bytes, PAGE_BYTES, 0);
}

bool test_is_direct(int fd)
{
    return (fcntl(fd, F_GETFL) & O_DIRECT) != 0;
}

bool test_direct_works(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0)
        return false;
    struct test_memory memory = test_memory_take(PAGE_BYTES, PAGE_BYTES, 0);
    ssize_t got = pread(fd, memory.at, PAGE_BYTES, 0);
    close(fd);
    test_memory_free(&memory);
    return got > 0;
}

static raffia_status resource_allocate(void *context, raffia_stream stream, size_t bytes,
                                       size_t alignment, void **address_p)
{
    struct test_resource *resource = context;
    assert_null(stream);
    if (resource->failure)
        return resource->failure;
    if (resource->alignment_max && alignment > resource->alignment_max)
        return RAFFIA_ERROR_INVALID_ARGUMENT;
    if (posix_memalign(address_p, alignment, bytes))
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    resource->live += bytes;
    return RAFFIA_OK;
}

static raffia_status resource_deallocate(void *context, raffia_stream stream, void *address,
                                         size_t bytes, size_t alignment)
{
    (void)stream;
    struct test_resource *resource = context;
    assert_int_equal((uintptr_t)address % alignment, 0);
    resource->live -= bytes;
    free(address);
    return RAFFIA_OK;
}

static unsigned resource_properties(void *context)
{
    return ((struct test_resource *)context)->properties;
}

static bool resource_is_equal(void *context, void *other)
{
    return context == other;
}

raffia_resource_ref test_resource_ref(struct test_resource *resource)
{
    static const raffia_resource_ops ops = {
        .struct_size = sizeof ops,
        .allocate = resource_allocate,
        .deallocate = resource_deallocate,
        .properties = resource_properties,
        .is_equal = resource_is_equal,
    };
    return (raffia_resource_ref){&ops, resource};
}
