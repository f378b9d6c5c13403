/* The regular path: blocks in ordinary pages, each pinned by itself and found by its address. */
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/sys.h"
#include "core/text.h"
#include "driver/pinned/verbs.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define ROOM_FIRST ((size_t)16)

struct record {
    int index;
    struct pinned_memory memory;
};

/* In order of address. The lock is a leaf; a forked child never gets as far as to take it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct record **records;
static size_t record_count, record_room;

/* Index of the first record at the address or behind it. Called with the lock held, as the next. */
static size_t place_of(const void *address)
{
    size_t low = 0, high = record_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)records[middle]->memory.at < (uintptr_t)address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool insert(struct record *record)
{
    if (record_count == record_room) {
        size_t room = record_room ? 2 * record_room : ROOM_FIRST;
        void *grown = core_reallocate(records, room, sizeof(struct record *));
        if (!grown)
            return false;
        records = grown;
        record_room = room;
    }
    size_t at = place_of(record->memory.at);
    memmove(records + at + 1, records + at, (record_count - at) * sizeof *records);
    records[at] = record;
    record_count++;
    return true;
}

/* The table goes with its last record, so that nothing is left when all blocks are freed. */
static void drop(size_t at)
{
    record_count--;
    memmove(records + at, records + at + 1, (record_count - at) * sizeof *records);
    if (record_count)
        return;
    core_free(records);
    records = NULL;
    record_room = 0;
}

/* A block's addresses come with its memory: whoever asks for one need not know that they are had
 * apart, and that it was the addresses that ran out. */
static raffia_status take_block(int index, size_t bytes, struct pinned_memory *memory)
{
    char text[CORE_SIZE_TEXT_MAX];
    const raffia_page_offer page = {RAFFIA_PAGE_REGULAR, (size_t)sysconf(_SC_PAGESIZE)};
    raffia_status status = pinned_take(index, &page, 1, bytes, 1, memory);
    if (status != RAFFIA_ERROR_LIMIT)
        return status;
    return core_error_prefix_as(RAFFIA_ERROR_OUT_OF_MEMORY, "there is no %s of memory to pin",
                                core_format_size(bytes, text));
}

raffia_status pinned_mem_alloc(int index, size_t bytes, void **address_p)
{
    if (bytes == 0)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "an allocation of 0 bytes");
    struct record *record = core_calloc(1, sizeof *record);
    if (!record)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    record->index = index;
    raffia_status status = take_block(index, bytes, &record->memory);
    if (status)
        goto free_record;
    pthread_mutex_lock(&lock);
    bool inserted = insert(record);
    pthread_mutex_unlock(&lock);
    if (!inserted) {
        status = RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
        goto give_memory;
    }
    *address_p = record->memory.at;
    return RAFFIA_OK;
give_memory:
    (void)pinned_give(index, &record->memory); /* fresh and unused: cannot fail but by misuse */
free_record:
    core_free(record);
    return status;
}

raffia_status pinned_mem_free(int index, void *address, size_t bytes)
{
    raffia_status status = pinned_context_state(index);
    if (status == RAFFIA_ERROR_FORKED)
        return status;
    pthread_mutex_lock(&lock);
    size_t at = place_of(address);
    struct record *record =
        at < record_count && records[at]->memory.at == address ? records[at] : NULL;
    if (record && record->index == index && record->memory.bytes == bytes)
        drop(at);
    else
        record = NULL;
    pthread_mutex_unlock(&lock);
    if (!record)
        return core_error(RAFFIA_ERROR_BAD_ADDRESS, "there is no pinned block of %zu bytes at %p",
                          bytes, address);
    status = pinned_give(index, &record->memory);
    if (!status) {
        core_free(record);
        return RAFFIA_OK;
    }
    /* Back on record, to be freed again; there is room, or else the memory is lost. */
    struct core_error_record cause;
    core_error_save(&cause);
    pthread_mutex_lock(&lock);
    (void)insert(record);
    pthread_mutex_unlock(&lock);
    return core_error_restore(&cause);
}
