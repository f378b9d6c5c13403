// SPEC A14: the C++ header alone, without CCCL.
#define RAFFIA_NO_CCCL
#include "support/huge_requests.h"

#include <raffia/raffia.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            std::printf("line %d: %s (%s)\n", __LINE__, #what, raffia_last_error());               \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

static_assert(std::is_copy_constructible<raffia::resource>::value, "copies share");
static_assert(std::is_nothrow_move_constructible<raffia::device_resource>::value, "moves");
static_assert(!std::is_copy_constructible<raffia::buffer>::value, "one owner");
static_assert(!std::is_constructible<raffia::resource, int>::value, "no ceremony, no surprise");

namespace
{

raffia::resource host()
{
    raffia_device_resource_options options = {};
    options.struct_size = sizeof options;
    options.device = "host";
    raffia_resource *owner = nullptr;
    raffia::check(raffia_device_resource_create(&options, &owner));
    return raffia::resource(owner);
}

// A stream as RMM has it.
struct stream_view {
    void *handle;
    void *value() const
    {
        return handle;
    }
};

void a14_a_resource_allocates_by_the_names_of_all_versions()
{
    raffia::host_device_resource ours(host());
    void *a = ours.allocate(nullptr, 100, 256), *b = ours.allocate_sync(100);
    void *c = ours.allocate(100, 64), *d = ours.allocate_async(100, 4096, stream_view{nullptr});
    CHECK(a && b && c && d && reinterpret_cast<std::uintptr_t>(d) % 4096 == 0);
    ours.deallocate(stream_view{nullptr}, a, 100, 256);
    ours.deallocate_sync(b, 100);
    ours.deallocate(c, 100, 64);
    ours.deallocate_async(d, 100, 4096, nullptr);
    raffia::host_device_resource copy = ours;
    CHECK(copy == ours && !(copy != ours));
}

void a14_failures_are_exceptions()
{
    raffia::resource ours = host();
    bool caught = false;
    try {
        ours.allocate_sync(std::size_t(1) << 60);
    } catch (const std::bad_alloc &problem) {
        caught = std::strlen(problem.what()) > 0;
    }
    CHECK(caught);
    caught = false;
    try {
        ours.allocate(nullptr, 1, 3); // no power of two
    } catch (const raffia::error &problem) {
        caught = problem.status() == RAFFIA_ERROR_INVALID_ARGUMENT;
    }
    CHECK(caught);
    ours.deallocate_sync(&caught, 1); // refused, and nothing else
    CHECK(raffia_last_status() == RAFFIA_ERROR_BAD_ADDRESS);
}

// A resource as C++ code writes it: a value whose copies share.
struct counted {
    int *live;
    bool empty;
    void *allocate(std::size_t bytes, std::size_t alignment)
    {
        if (empty)
            throw std::bad_alloc();
        ++*live;
        return ::operator new(bytes, std::align_val_t(alignment));
    }
    void deallocate(void *block, std::size_t, std::size_t alignment)
    {
        --*live;
        ::operator delete(block, std::align_val_t(alignment));
    }
    friend bool operator==(const counted &a, const counted &b)
    {
        return a.live == b.live;
    }
};

void a14_a_cpp_resource_is_one_of_ours()
{
    int live = 0;
    const unsigned both = RAFFIA_HOST_ACCESSIBLE | RAFFIA_DEVICE_ACCESSIBLE;
    raffia::resource ours = raffia::make_resource(counted{&live, false}, "host", both);
    CHECK(ours.properties() == both);
    char device[RAFFIA_DEVICE_NAME_MAX];
    CHECK(!raffia_resource_device(ours.ref(), device) && !std::strcmp(device, "host"));
    {
        raffia::buffer buffer(1000, ours);
        CHECK(live == 1 && buffer.size() == 1000);
        std::memset(buffer.data(), 1, buffer.size());
        raffia::buffer moved = std::move(buffer);
        CHECK(live == 1 && moved.data());
    }
    CHECK(live == 0);
    const raffia::resource copy = ours;
    CHECK(copy == ours);
    CHECK(ours != raffia::make_resource(counted{&live, false})); // an owner of its own
    raffia::resource empty = raffia::make_resource(counted{&live, true});
    void *block = nullptr;
    CHECK(raffia_allocate(empty.ref(), nullptr, 8, 0, &block) == RAFFIA_ERROR_OUT_OF_MEMORY);
}

void a14_owners_release_what_they_hold()
{
    raffia_pool_options options = {};
    options.struct_size = sizeof options;
    options.device = "host";
    options.pages = RAFFIA_PAGES_OFF;
    options.initial_bytes = std::size_t(4) << 20;
    raffia::pool pool(options);
    raffia::device_resource blocks(pool.resource());
    {
        raffia::pool copy = pool;
        CHECK(copy.get() == pool.get());
        raffia::buffer buffer(1 << 20, blocks);
        CHECK(pool.stats().in_use_bytes >= std::size_t(1) << 20);
    }
    CHECK(pool.stats().in_use_bytes == 0);
    const raffia::resource before = raffia::current_resource("host");
    {
        raffia::scoped_current_resource scope(blocks, "host");
        CHECK(raffia::current_resource("host") == blocks);
    }
    CHECK(raffia::current_resource("host") == before);
    bool caught = false;
    try {
        raffia::model model("/there/is/no/such.safetensors");
    } catch (const raffia::error &) {
        caught = true;
    }
    CHECK(caught);
}

void a14_a_type_that_promises_too_much_is_refused()
{
    int live = 0;
    bool caught = false;
    try {
        raffia::device_resource wrong(
            raffia::make_resource(counted{&live, false}, nullptr, RAFFIA_HOST_ACCESSIBLE));
    } catch (const std::invalid_argument &) {
        caught = true;
    }
    CHECK(caught);
}

} // namespace

int main()
{
    a14_a_resource_allocates_by_the_names_of_all_versions();
    a14_failures_are_exceptions();
    a14_a_cpp_resource_is_one_of_ours();
    a14_owners_release_what_they_hold();
    a14_a_type_that_promises_too_much_is_refused();
    std::printf("5 passed, 0 failed\n");
    return 0;
}
