// SPEC A14 against the real CCCL, and RMM's headers where they are: our resources meet its
// concepts, and its resources are ours. On the host; no GPU is needed.
#include <raffia/raffia.hpp>

#include <cstdio>
#include <cstdlib>
#include <new>

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            std::printf("line %d: %s (%s)\n", __LINE__, #what, raffia_last_error());               \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

static_assert(RAFFIA_HAS_CCCL, "this test is about it");

namespace mr = cuda::mr;
using both = raffia::host_device_resource;

// What CCCL before 3.1 called resource is synchronous_resource now.
#if CCCL_VERSION >= 3001000
#define ORDERED      mr::resource
#define ORDERED_WITH mr::resource_with
using device_ref = mr::resource_ref<mr::device_accessible>;
#else
#define ORDERED      mr::async_resource
#define ORDERED_WITH mr::async_resource_with
using device_ref = mr::async_resource_ref<mr::device_accessible>;
#endif

static_assert(ORDERED<raffia::resource>, "the plain one says nothing of properties");
static_assert(ORDERED_WITH<raffia::device_resource, mr::device_accessible>, "for RMM");
static_assert(!ORDERED_WITH<raffia::device_resource, mr::host_accessible>, "it is not");
static_assert(ORDERED_WITH<raffia::host_resource, mr::host_accessible>, "for the CPU");
static_assert(!ORDERED_WITH<raffia::host_resource, mr::device_accessible>, "it is not");
static_assert(ORDERED_WITH<both, mr::host_accessible, mr::device_accessible>, "both");

#ifdef RAFFIA_TEST_RMM
#include <rmm/resource_ref.hpp>
static_assert(
    std::is_constructible<rmm::device_async_resource_ref, raffia::device_resource &>::value,
    "what libcudf's functions take");
#endif

static both host()
{
    raffia_device_resource_options options = {};
    options.struct_size = sizeof options;
    options.device = "host";
    raffia_resource *owner = nullptr;
    raffia::check(raffia_device_resource_create(&options, &owner));
    return both(raffia::resource(owner));
}

static void *allocate(device_ref ref, std::size_t bytes)
{
#if CCCL_VERSION >= 3001000
    return ref.allocate(cuda::stream_ref{cudaStream_t{}}, bytes, 256);
#else
    return ref.allocate_async(bytes, 256, cuda::stream_ref{cudaStream_t{}});
#endif
}

static void deallocate(device_ref ref, void *block, std::size_t bytes)
{
#if CCCL_VERSION >= 3001000
    ref.deallocate(cuda::stream_ref{cudaStream_t{}}, block, bytes, 256);
#else
    ref.deallocate_async(block, bytes, 256, cuda::stream_ref{cudaStream_t{}});
#endif
}

// A resource of CCCL's model that is not ours.
struct theirs {
    int *live;
    void *allocate(cuda::stream_ref, std::size_t bytes, std::size_t alignment)
    {
        ++*live;
        return ::operator new(bytes, std::align_val_t(alignment));
    }
    void deallocate(cuda::stream_ref, void *block, std::size_t, std::size_t alignment) noexcept
    {
        --*live;
        ::operator delete(block, std::align_val_t(alignment));
    }
    friend bool operator==(const theirs &a, const theirs &b)
    {
        return a.live == b.live;
    }
    friend constexpr void get_property(const theirs &, mr::host_accessible) noexcept {}
};

int main()
{
    // Ours through a ref of theirs.
    both ours = host();
    raffia_resource *counting = nullptr;
    CHECK(!raffia_statistics_resource_create(ours.ref(), &counting));
    both counted{raffia::resource(counting)};
    device_ref ref(counted);
    void *block = allocate(ref, 1000);
    raffia_statistics now;
    CHECK(!raffia_statistics_get(raffia_ref(counting), &now) && now.bytes.value == 1000);
    deallocate(ref, block, 1000);
    CHECK(!raffia_statistics_get(raffia_ref(counting), &now) && now.bytes.value == 0);

    // Theirs through ours, and what its type says.
    int live = 0;
    raffia::resource adapted = raffia::make_resource(theirs{&live});
    CHECK(adapted.properties() == RAFFIA_HOST_ACCESSIBLE);
    void *other = adapted.allocate_sync(64);
    CHECK(live == 1);
    adapted.deallocate_sync(other, 64);
    CHECK(live == 0);

    // There and back: a ref of theirs, to ours, as ours.
    raffia::resource again = raffia::make_resource(ref);
    CHECK(again.properties() == RAFFIA_DEVICE_ACCESSIBLE);
    other = again.allocate_sync(64);
    CHECK(!raffia_statistics_get(raffia_ref(counting), &now) && now.bytes.value == 64);
    again.deallocate_sync(other, 64);
    std::printf("3 passed, 0 failed, CCCL %d\n", CCCL_VERSION);
    return 0;
}
