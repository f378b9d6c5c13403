/* Any bytes as an index of shards: what is accepted must be in order and reach no other directory.
 */
#include "load/catalog_build.h"
#include "load/shard_index.h"

#include <raffia/log.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes);

static void must(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes)
{
    raffia_log_set_level(RAFFIA_LOG_OFF);
    struct shard_index index;
    if (shard_index_parse("fuzz", data, bytes, &index))
        return 0;
    must(index.file_count >= 1 && index.file_count <= index.entry_count);
    must(index.file_count <= CATALOG_FILES_MAX);
    for (size_t i = 0; i < index.entry_count; i++) {
        const struct shard_index_entry *entry = &index.entries[i];
        must(i == 0 || strcmp(entry[-1].tensor, entry->tensor) < 0);
        must(entry->file[0] && !strchr(entry->file, '/'));
        must(strcmp(entry->file, ".") != 0 && strcmp(entry->file, "..") != 0);
    }
    for (size_t i = 1; i < index.file_count; i++)
        must(strcmp(index.files[i - 1], index.files[i]) < 0);
    shard_index_clear(&index);
    return 0;
}
