/* Setting up and closing what the readers share. */
#include "load/source.h"

#include "core/error.h"
#include "core/memory.h"
#include "core/sys.h"

raffia_status load_source_init(struct load_source *source, const struct catalog *catalog,
                               const struct load_plan *plan)
{
    *source = (struct load_source){.catalog = catalog, .plan = plan};
    source->direct_files = core_calloc(catalog->file_count + 1, sizeof *source->direct_files);
    if (!source->direct_files)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    source->addresses = core_calloc(plan->item_count + 1, sizeof *source->addresses);
    if (!source->addresses)
        goto free_files;
    if (pthread_mutex_init(&source->direct_lock, NULL)) {
        core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY, "the system gives no more mutexes");
        goto free_addresses;
    }
    for (size_t i = 0; i < catalog->file_count; i++)
        source->direct_files[i].fd = -1;
    return RAFFIA_OK;
free_addresses:
    core_free(source->addresses);
free_files:
    core_free(source->direct_files);
    return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
}

void load_source_close(struct load_source *source)
{
    for (size_t i = 0; i < source->catalog->file_count; i++)
        if (source->direct_files[i].fd >= 0)
            sys_close(source->direct_files[i].fd);
    pthread_mutex_destroy(&source->direct_lock);
    core_free(source->addresses);
    core_free(source->direct_files);
}
