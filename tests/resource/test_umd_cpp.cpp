// A C++ program against raffia/umd.h, on the memory of this machine.
#include <raffia/config.h>
#include <raffia/umd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace
{

int failures = 0;

void expect(bool holds, const char *what)
{
    if (holds)
        return;
    std::printf("FAILED: %s (%s)\n", what, raffia_last_error());
    failures++;
}

} // namespace

int main()
{
    constexpr std::uint64_t mib = 1u << 20;
    expect(raffia_config_set("driver", "host") == RAFFIA_OK, "the host is the driver");
    expect(umd_huge_page_pool_init(0, 4 * mib) == 0, "init");
    expect(umd_huge_page_pool_init(0, 4 * mib) == RAFFIA_ERROR_BUSY, "a second init is refused");
    void *block = umd_huge_page_alloc(0, 3 * mib, 0);
    void *weights = umd_huge_page_alloc_hint(0, mib, 0, RAFFIA_HINT_LONG_LIVED);
    expect(block != nullptr && weights != nullptr, "alloc");
    if (block)
        std::memset(block, 1, 3 * mib);
    PoolStatus status{};
    expect(umd_huge_page_pool_query(0, &status) == 0, "query");
    expect(status.is_initialized == 1 && status.total_size == 4 * mib && status.free_size == 0,
           "the pool is full");
    expect(umd_huge_page_free(0, block) == 0 && umd_huge_page_free(0, weights) == 0, "free");
    expect(umd_huge_page_free(0, block) < 0, "a second free is refused");
    expect(umd_huge_page_pool_destroy(0) == 0, "destroy");
    return failures ? 1 : 0;
}
