// SPEC A3 from C++: pairs out of owners and refs, without ceremony.
#include <raffia/raffia.h>

#include <cstdio>
#include <type_traits>

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            std::printf("line %d: %s\n", __LINE__, #what);                                         \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static_assert(std::is_trivially_copyable<raffia_memory_resources>::value, "it owns nothing");
static_assert(!std::is_same<raffia_resource *, raffia_resource_ref>::value, "two types");

static size_t bytes_of(raffia_memory_resources resources)
{
    void *block = nullptr;
    if (raffia_allocate(resources.output, nullptr, 100, 0, &block))
        return 0;
    return raffia_deallocate(resources.output, nullptr, block, 100, 0) ? 0 : 100;
}

int main()
{
    raffia_device_resource_options options = {};
    options.struct_size = sizeof options;
    options.device = "host";
    raffia_resource *a = nullptr, *b = nullptr;
    CHECK(!raffia_device_resource_create(&options, &a));
    CHECK(!raffia_statistics_resource_create(raffia_ref(a), &b));
    CHECK(bytes_of(RAFFIA_MEMORY_RESOURCES(a)) == 100);
    CHECK(bytes_of(RAFFIA_MEMORY_RESOURCES(raffia_ref(a), b)) == 100);
    CHECK(bytes_of(raffia_make_memory_resources(b)) == 100);
    const raffia_memory_resources pair = raffia_make_memory_resources(raffia_ref(b), a);
    CHECK(pair.output.context == raffia_ref(b).context);
    CHECK(pair.temporary.context == raffia_ref(a).context);
    raffia_resource_release(b);
    raffia_resource_release(a);
    std::printf("1 passed, 0 failed\n");
    return 0;
}
