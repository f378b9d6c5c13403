/**
 * @file load.h
 * @brief Loading model files: from disk to their final place, every byte copied once.
 *
 * A path names a safetensors file, a `*.safetensors.index.json` of a sharded model, or a directory
 * that holds either. The whole model is validated first: a malformed file gives an error that names
 * file, tensor, offset and reason before any byte is copied.
 */
#ifndef RAFFIA_LOAD_H
#define RAFFIA_LOAD_H

#include <raffia/base.h>
#include <raffia/dtype.h>
#include <raffia/memory_resources.h>
#include <raffia/pages.h>
#include <raffia/pool.h>
#include <raffia/resource.h>
#include <raffia/status.h>

/** @addtogroup load
 *  @{ */

/**
 * A model: named tensors, and after a load the memory that holds them. It does not change any more:
 * several threads may ask it at once, until one releases it. Functions that ask take no NULL model.
 */
typedef struct raffia_model raffia_model;

/** Every tensor starts at a multiple of this many bytes. */
#define RAFFIA_TENSOR_ALIGNMENT 256u

/** Most dimensions of a tensor. */
#define RAFFIA_TENSOR_RANK_MAX 32u

/** How files are read. */
typedef enum raffia_reader {
    RAFFIA_READER_AUTO =
        0, /**< for each stretch of the file: buffered if it is in the page cache */
    RAFFIA_READER_BUFFERED, /**< through the page cache */
    RAFFIA_READER_DIRECT,   /**< O_DIRECT; buffered where the file system refuses it */
} raffia_reader;

/** Which checksum to compute over each tensor. */
typedef enum raffia_checksum {
    RAFFIA_CHECKSUM_NONE = 0,
    RAFFIA_CHECKSUM_XXH3, /**< XXH3, 64 bits, seed 0, over the tensor's bytes as they lie in memory
                           */
} raffia_checksum;

/** One part of a tensor to be read instead of the whole: indices begin..end-1 of one dimension. */
typedef struct raffia_tensor_slice {
    const char
        *name; /**< tensor, or a shell pattern (fnmatch); the first slice that matches wins */
    unsigned dimension; /**< which dimension is cut, 0 = outermost */
    uint64_t begin;     /**< first index */
    uint64_t end;       /**< one past the last index; at least begin */
} raffia_tensor_slice;

/** How far a load is. */
typedef struct raffia_load_progress {
    uint64_t bytes_done;
    uint64_t bytes_total;
    double seconds; /**< since the load began */
} raffia_load_progress;

/**
 * Called in the thread that called raffia_model_load(), about ten times a second and at the end.
 * Returning false cancels the load.
 */
typedef bool (*raffia_progress_callback)(void *context, const raffia_load_progress *progress);

/** Options of a load. All zero (but struct_size) loads everything into a pool of the loader's own.
 */
typedef struct raffia_load_options {
    size_t struct_size; /**< sizeof(raffia_load_options) */

    /* Where to. At most one of pool, resource, memory and (below) resources is given. */
    const char *device;           /**< NULL = default device; ignored if pool or memory is given.
                                       Memory that the CPU cannot touch will do, as a GPU's: the
                                       bytes go there through pinned staging memory, and
                                       raffia_model_read() gets them back */
    raffia_pages_mode pages;      /**< pages of the loader's own pool; unlike those of a pool made
                                       with raffia_pool_create() they are regular by default */
    size_t page_size;             /**< as in raffia_pool_options */
    raffia_pool *pool;            /**< take the memory from this pool: one block if it has room in
                                       one piece, else one for each tensor. The pool is retained
                                       until the model is released */
    raffia_resource_ref resource; /**< take one block for the whole model from this resource, which
                                       must be host-accessible, or else its memory that of
                                       `device`. The model is an owner of it, if it can be
                                       (raffia_resource_from_ref()); else it must outlive the
                                       model */
    void *memory;                 /**< put the model here; must outlive the model and start at a
                                       multiple of #RAFFIA_TENSOR_ALIGNMENT */
    size_t memory_bytes;          /**< room at memory; see raffia_model_bytes_needed() */

    /* What. */
    const char *const *names; /**< tensors or shell patterns (fnmatch) to load; NULL = all. A
                                   text that is a tensor's name and a pattern too counts as
                                   both. One that matches nothing is an error */
    size_t name_count;
    const raffia_tensor_slice *slices; /**< parts to read instead of whole tensors */
    size_t slice_count;

    /* How. */
    raffia_reader reader;
    unsigned threads;          /**< reader threads; 0 = the setting `threads`: one for each CPU,
                                    at most 16; one in eight is left to the device's driver
                                    where the CPU cannot touch the memory. Fewer
                                    where the budget demands it; at most 1024 */
    size_t budget_bytes;       /**< bound on staging memory; 0 = the setting `load_budget`,
                                    64 MiB; at least 64 KiB. Memory that the CPU cannot touch is
                                    filled through slots of the setting `load_slot`, 16 MiB, or
                                    smaller ones where the budget has no room for two */
    size_t window_bytes;       /**< one read, rounded up to 64 KiB; 0 = 4 MiB, or 1 to 2 MiB into
                                    a slot, less where the budget demands it; at most 1 GiB */
    size_t header_limit_bytes; /**< largest header accepted; 0 = 32 MiB, at most 100 MB */
    bool lenient;              /**< accept bytes after the last tensor, with a warning */
    raffia_checksum checksum;
    unsigned stall_timeout_ms; /**< give up after so long without a byte; 0 = never. See
                                    raffia_model_load() */
    raffia_progress_callback progress;
    void *progress_context;
    const volatile int *cancel; /**< becomes non-zero when the load shall stop; may be written by a
                                     signal handler. Looked at before files are opened, before
                                     memory is made, before the first read and ten times a second
                                     from then on; not while memory is made. NULL = cannot be
                                     cancelled that way */

    raffia_memory_resources resources; /**< the same as resource, by a pair: the model comes from
                                            output. What the loader needs meanwhile is bounded by
                                            budget_bytes and its own: nothing is taken from
                                            temporary */
} raffia_load_options;

/** One tensor. The pointers belong to the model. */
typedef struct raffia_tensor {
    const char *name;
    raffia_dtype dtype;
    unsigned rank;
    const uint64_t *shape; /**< rank extents, outermost first; the slice's, if one was taken */
    void *data;            /**< NULL before a load, and for a tensor of 0 bytes; an address of
                                the device if the model was loaded into its memory */
    size_t bytes;
    const char *file;     /**< file it comes from */
    uint64_t file_offset; /**< where its first byte lies in that file */
    uint64_t checksum;    /**< see raffia_load_options.checksum; 0 if none was asked for */
} raffia_tensor;

/** What a load did. */
typedef struct raffia_load_report {
    uint64_t bytes_total;     /**< tensor bytes that were to be read */
    uint64_t bytes_buffered;  /**< of them, read through the page cache */
    uint64_t bytes_direct;    /**< of them, read with O_DIRECT */
    uint64_t bytes_staged;    /**< of those, copied from a staging buffer into their place */
    uint64_t windows;         /**< stretches the plan cut the files into */
    uint64_t reads;           /**< read calls made */
    uint64_t direct_refusals; /**< windows that fell back from O_DIRECT to buffered */
    size_t tensors;
    size_t files;
    unsigned threads;     /**< reader threads that ran; 0 = none could be started, the caller's
                               own did the work */
    size_t staging_bytes; /**< staging memory used at most */
    size_t memory_bytes;  /**< memory the tensors occupy, padding included */
    double open_seconds;  /**< open, parse, validate, plan */
    double map_seconds;   /**< getting the memory: map, fill and verify pages */
    double read_seconds;  /**< first read issued to last byte in place */
    double checksum_seconds;
    double total_seconds;
    raffia_page_report
        pages; /**< of the destination, where Raffia made it; else total_bytes is 0 */

    /* Where the CPU cannot touch the memory; else all zero. */
    uint64_t bytes_copied; /**< to the device, padding between tensors included */
    uint64_t copies;       /**< submitted for them */
    size_t slot_bytes;     /**< one slot of the staging memory */
    unsigned slots;
    const char *pinned; /**< how staging memory is pinned: "registered", "registered in smaller
                             pieces", "allocated by the driver" or "pageable"; NULL = none was
                             used. Static storage */
    raffia_page_kind staging_page_kind; /**< its pages */
    size_t staging_page_size;
    double context_seconds; /**< until the device answered */
    double ring_seconds;    /**< getting and pinning the staging memory; 0 if it was kept from an
                                 earlier load */
    double wait_seconds;    /**< of read_seconds, time when readers had to wait for copies */
} raffia_load_report;

RAFFIA_BEGIN_DECLS

/**
 * @brief Reads and validates headers only: the tensors have no data.
 * @param path    see above
 * @param options the selection and limits apply; NULL = all defaults
 * @param model_p receives the model, to be released
 * @return #RAFFIA_ERROR_FORMAT for a malformed file, #RAFFIA_ERROR_NOT_FOUND for a missing file or
 *         a name that matches no tensor, #RAFFIA_ERROR_PERMISSION or #RAFFIA_ERROR_IO if it cannot
 *         be read, #RAFFIA_ERROR_LIMIT for a header or a number of dimensions that is too large,
 *         #RAFFIA_ERROR_INVALID_ARGUMENT for the options, #RAFFIA_ERROR_CANCELLED
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_model_inspect(const char *path,
                                                               const raffia_load_options *options,
                                                               raffia_model **model_p);

/**
 * @brief Loads a model: every tensor lies in memory, aligned to #RAFFIA_TENSOR_ALIGNMENT.
 *
 * On failure nothing is left behind and the caller's own memory may have been written to in part.
 * After #RAFFIA_ERROR_TIMED_OUT a read that the kernel cannot interrupt may still be under way: the
 * loader's own memory is then given back by that read's thread when it ends. With memory, a pool or
 * a resource of the caller's the call waits for such a read instead, because the memory could not
 * be reused safely before.
 *
 * @param path    see above
 * @param options NULL = all defaults
 * @param model_p receives the model, to be released
 * @return as raffia_model_inspect(); for the memory #RAFFIA_ERROR_OUT_OF_MEMORY and
 *         #RAFFIA_ERROR_NO_HUGE_PAGES, or #RAFFIA_ERROR_UNSUPPORTED if neither the CPU nor copies
 *         of the device can write to it; #RAFFIA_ERROR_CHANGED if a file changed meanwhile,
 *         #RAFFIA_ERROR_CANCELLED (also if that was wanted when every byte was there already),
 *         #RAFFIA_ERROR_TIMED_OUT, or what the device says
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_model_load(const char *path,
                                                            const raffia_load_options *options,
                                                            raffia_model **model_p);

/** @brief Frees the model and its memory; NULL is ignored. Its tensors must not be used any more.
 */
RAFFIA_API void raffia_model_release(raffia_model *model);

/** @brief Number of tensors. */
RAFFIA_API size_t raffia_model_tensor_count(const raffia_model *model);

/** @brief Tensor by index, in order of name; NULL if out of range. */
RAFFIA_API const raffia_tensor *raffia_model_tensor_at(const raffia_model *model, size_t index);

/** @brief Tensor by name, in constant time; NULL if there is none. */
RAFFIA_API const raffia_tensor *raffia_model_tensor(const raffia_model *model, const char *name);

/**
 * @brief A string of the file's metadata, or NULL. In a sharded model the first file that has the
 *        key decides.
 */
RAFFIA_API const char *raffia_model_metadata(const raffia_model *model, const char *key);

/** @brief Metadata by index, for iteration; false if out of range. */
RAFFIA_API bool raffia_model_metadata_at(const raffia_model *model, size_t index,
                                         const char **key_p, const char **value_p);

/** @brief Bytes of all tensors, padding excluded. */
RAFFIA_API uint64_t raffia_model_bytes(const raffia_model *model);

/** @brief Room that raffia_load_options.memory must have for this model. */
RAFFIA_API size_t raffia_model_bytes_needed(const raffia_model *model);

/** @brief What the load did; all zero for an inspected model. Lives as long as the model. */
RAFFIA_API const raffia_load_report *raffia_model_report(const raffia_model *model);

/**
 * @brief Copies bytes of a tensor to ordinary memory, wherever the model lies.
 *
 * What a device holds comes back through the same staging memory as it went there; one call at a
 * time in the process.
 *
 * @param model  a loaded model
 * @param tensor one of its tensors
 * @param offset first byte of the tensor wanted
 * @param buffer receives the bytes
 * @param bytes  how many
 * @return #RAFFIA_ERROR_INVALID_ARGUMENT beyond the tensor's end or for a model that was only
 *         inspected, #RAFFIA_ERROR_FORKED in a child of the process that loaded it into a device,
 *         or what the device says
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_model_read(const raffia_model *model,
                                                            const raffia_tensor *tensor,
                                                            size_t offset, void *buffer,
                                                            size_t bytes);

/**
 * @brief Gives back the staging memory that is kept between loads, one ring for each device.
 *
 * The next load into such a device builds it again, which takes some milliseconds. Loads under way
 * are not disturbed.
 */
RAFFIA_API void raffia_load_release_staging(void);

/** @brief The pool that holds the tensors, borrowed; NULL if they lie elsewhere. */
RAFFIA_API raffia_pool *raffia_model_pool(const raffia_model *model);

RAFFIA_END_DECLS

/** @} */

#endif
