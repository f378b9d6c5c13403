#include "models.h"

#include "support/cmocka.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

static uint64_t sum_of_file(const char *path, const struct model_file_tensor *tensor)
{
    unsigned char *content = malloc(tensor->bytes);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(content && fd >= 0);
    assert_int_equal(pread(fd, content, tensor->bytes, (off_t)tensor->offset), tensor->bytes);
    close(fd);
    const uint64_t sum = XXH3_64bits(content, tensor->bytes);
    free(content);
    return sum;
}

void life_model_make(struct life_model *made, const struct test_directory *directory,
                     const char *name, size_t bytes, unsigned salt)
{
    static const char *const names[LIFE_TENSORS] = {"embedding", "weight", "bias", "scale"};
    *made = (struct life_model){.path = test_path_in(directory, name)};
    for (unsigned i = 0; i < LIFE_TENSORS; i++) {
        const size_t share = bytes / 2 >> i;
        made->tensors[i] = model_file_bytes(names[i], share ? share - 1 : 1); /* odd sizes */
        made->bytes += made->tensors[i].bytes;
    }
    model_file_write(made->path.text, made->tensors, LIFE_TENSORS, 8, 0, salt);
    for (unsigned i = 0; i < LIFE_TENSORS; i++)
        made->sums[i] = sum_of_file(made->path.text, &made->tensors[i]);
}

bool life_model_is_whole(const struct life_model *expected, const raffia_model *model)
{
    for (unsigned i = 0; i < LIFE_TENSORS; i++) {
        const raffia_tensor *tensor = raffia_model_tensor(model, expected->tensors[i].name);
        if (!tensor || tensor->bytes != expected->tensors[i].bytes ||
            XXH3_64bits(tensor->data, tensor->bytes) != expected->sums[i])
            return false;
    }
    return true;
}

raffia_status life_load(const struct life_model *model, const raffia_load_options *options,
                        raffia_model **model_p)
{
    raffia_model *loaded;
    raffia_status status = raffia_model_load(model->path.text, options, &loaded);
    if (status)
        return status;
    if (!life_model_is_whole(model, loaded)) {
        raffia_model_release(loaded);
        return RAFFIA_ERROR_MISMATCH;
    }
    *model_p = loaded;
    return RAFFIA_OK;
}

raffia_status life_load_once(const struct life_model *model, const raffia_load_options *options)
{
    raffia_model *loaded = NULL;
    raffia_status status = life_load(model, options, &loaded);
    raffia_model_release(loaded);
    return status;
}

raffia_pool *life_pool_make(const raffia_pool_options *options)
{
    raffia_pool *pool = NULL;
    assert_ok(raffia_pool_create(options, &pool));
    return pool;
}

raffia_pool_stats life_pool_stats(raffia_pool *pool)
{
    raffia_pool_stats stats;
    assert_ok(raffia_pool_query(pool, &stats));
    return stats;
}

void life_pool_end(raffia_pool *pool)
{
    const raffia_pool_stats stats = life_pool_stats(pool);
    assert_int_equal(stats.live_blocks, 0);
    assert_int_equal(stats.in_use_bytes, 0);
    assert_ok(raffia_pool_check(pool));
    raffia_pool_release(pool);
}
