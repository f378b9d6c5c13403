#include "cli/model_maker.h"

#include "cli/output.h"
#include "core/error.h"
#include "core/memory.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INDEX_NAME "model.safetensors.index.json"

/* Room for a shard's name. */
#define SHARD_NAME_MAX 64

static const char *shard_name(unsigned shard, unsigned shards, char buffer[static SHARD_NAME_MAX])
{
    snprintf(buffer, SHARD_NAME_MAX, "model-%05u-of-%05u.safetensors", shard + 1, shards);
    return buffer;
}

/* One past the last tensor of a shard that starts with tensor `first`: shards are cut where the
 * bytes are nearest to equal shares, and each has a tensor. */
static size_t shard_end(const struct model_shape *shape, size_t first, uint64_t bytes_before,
                        unsigned shard, unsigned shards)
{
    size_t left_for_others = shards - shard - 1;
    if (left_for_others == 0)
        return shape->count;
    uint64_t target = shape->bytes / shards * (shard + 1);
    size_t end = first;
    uint64_t bytes = bytes_before;
    do {
        bytes += shape->tensors[end++].bytes;
    } while (end + left_for_others < shape->count &&
             bytes + shape->tensors[end].bytes / 2 <= target);
    return end;
}

static raffia_status write_index(const char *directory, json_t *weight_map, uint64_t bytes)
{
    json_t *root = json_pack("{s:{s:I}, s:O}", "metadata", "total_size", (json_int_t)bytes,
                             "weight_map", weight_map);
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    char *path = core_asprintf("%s/" INDEX_NAME, directory);
    raffia_status status = text && path ? RAFFIA_OK
                                        : core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY,
                                                     "no memory for the index of the model");
    if (!status)
        status = output_write_whole(path, text, strlen(text));
    free(text);
    core_free(path);
    return status;
}

static raffia_status write_shard(struct model_writer *writer, const char *directory,
                                 const char *name, const struct model_tensor *tensors, size_t count,
                                 json_t *weight_map)
{
    for (size_t i = 0; i < count; i++)
        if (json_object_set_new(weight_map, tensors[i].name, json_string(name)))
            return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY,
                              "no memory for the index of the model");
    char *path = core_asprintf("%s/%s", directory, name);
    if (!path)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = model_file_write(writer, path, tensors, count);
    core_free(path);
    return status;
}

static raffia_status write_shards(const struct model_order *order, struct model_writer *writer,
                                  const char *directory)
{
    const struct model_shape *shape = order->shape;
    json_t *weight_map = json_object();
    raffia_status status = RAFFIA_OK;
    size_t first = 0;
    for (unsigned shard = 0; !status && shard < order->shards; shard++) {
        char name[SHARD_NAME_MAX];
        size_t end = shard_end(shape, first, writer->bytes_done, shard, order->shards);
        status = write_shard(writer, directory, shard_name(shard, order->shards, name),
                             shape->tensors + first, end - first, weight_map);
        first = end;
    }
    if (!status)
        status = write_index(directory, weight_map, shape->bytes);
    json_decref(weight_map);
    return status;
}

static void remove_in(const char *directory, const char *name)
{
    char *path = core_asprintf("%s/%s", directory, name);
    if (path)
        unlink(path);
    core_free(path);
}

static void remove_directory(const char *directory, unsigned shards)
{
    for (unsigned shard = 0; shard < shards; shard++) {
        char name[SHARD_NAME_MAX];
        remove_in(directory, shard_name(shard, shards, name));
    }
    remove_in(directory, INDEX_NAME);
    rmdir(directory);
}

static raffia_status place_directory(const char *temporary, const char *path)
{
    if (rename(temporary, path))
        return core_error_errno(core_status_of_errno(errno), errno,
                                "%s: cannot put the finished directory there", path);
    return RAFFIA_OK;
}

static raffia_status make_directory(const struct model_order *order, struct model_writer *writer)
{
    char *temporary = core_asprintf("%s.partial-XXXXXX", order->path);
    if (!temporary)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    if (!mkdtemp(temporary)) {
        raffia_status status =
            core_error_errno(core_status_of_errno(errno), errno,
                             "%s: cannot create a directory beside it", order->path);
        core_free(temporary);
        return status;
    }
    /* mkdtemp() makes directories that only their owner can enter. */
    (void)!chmod(temporary, output_mode(0777));
    raffia_status status = output_check_space(temporary, order->shape->bytes);
    if (!status)
        status = write_shards(order, writer, temporary);
    if (!status)
        status = place_directory(temporary, order->path);
    if (status)
        remove_directory(temporary, order->shards);
    core_free(temporary);
    return status;
}

static raffia_status check_place(const struct model_order *order)
{
    struct stat existing;
    if (lstat(order->path, &existing))
        return RAFFIA_OK; /* what else is wrong with the place shows when it is written to */
    if (order->shards)
        return S_ISDIR(existing.st_mode)
                   ? RAFFIA_OK /* rename() takes the place of an empty one only */
                   : core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                                "%s: not a directory, which shards need", order->path);
    if (S_ISDIR(existing.st_mode))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "%s: a directory; name a file, or ask for --shards", order->path);
    if (!order->replace)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "%s: the file exists; remove it or say --force to replace it",
                          order->path);
    return RAFFIA_OK;
}

raffia_status model_make(const struct model_order *order, struct model_writer *writer)
{
    if (order->shards > order->shape->count)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "a model of this size has %zu tensors: too few for %u shards",
                          order->shape->count, order->shards);
    raffia_status status = check_place(order);
    if (status)
        return status;
    if (order->shards)
        return make_directory(order, writer);
    return model_file_write(writer, order->path, order->shape->tensors, order->shape->count);
}
