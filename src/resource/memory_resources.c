#include "core/error.h"
#include "resource/resource.h"

#include <raffia/current_resource.h>
#include <raffia/memory_resources.h>

raffia_memory_resources raffia_memory_resources_of_one(raffia_resource_ref output)
{
    char name[RAFFIA_DEVICE_NAME_MAX];
    raffia_memory_resources pair = {.output = output};
    struct core_error_record before;
    core_error_save(&before);
    /* A resource that does not say whose memory it is has the process's default device. */
    const bool named = !raffia_resource_device(output, name);
    if (!named)
        core_error_restore(&before);
    if (raffia_current_resource_get(named ? name : NULL, &pair.temporary))
        pair.temporary = (raffia_resource_ref){0};
    return pair;
}
