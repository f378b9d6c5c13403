#include "cli/bench_umd.h"

#include "core/error.h"

#include <raffia/config.h>

#include <stdio.h>

/* Room for any number of bytes. */
#define NUMBER_MAX 24

/* NULL returns a setting to what the environment says. */
static raffia_status set(const char *driver, const char *pages, const char *page_size)
{
    raffia_status status = raffia_config_set("driver", driver);
    if (!status)
        status = raffia_config_set("pages", pages);
    return status ? status : raffia_config_set("page_size", page_size);
}

raffia_status bench_umd_open(size_t bytes, const struct bench_options *options)
{
    char page_size[NUMBER_MAX];
    snprintf(page_size, sizeof page_size, "%zu", options->page_size);
    raffia_status status =
        set("host", raffia_pages_mode_name(options->pages), options->page_size ? page_size : NULL);
    if (!status)
        status = (raffia_status)umd_huge_page_pool_init(BENCH_UMD_DEVICE, bytes);
    if (status) {
        struct core_error_record cause;
        core_error_save(&cause);
        (void)!set(NULL, NULL, NULL);
        return core_error_restore(&cause);
    }
    return RAFFIA_OK;
}

raffia_status bench_umd_close(void)
{
    raffia_status status = (raffia_status)umd_huge_page_pool_destroy(BENCH_UMD_DEVICE);
    raffia_status reset = set(NULL, NULL, NULL);
    return status ? status : reset;
}
