/**
 * @file raffia.hpp
 * @brief Raffia for C++17: owners that release what they hold, and resources that CCCL's concepts
 *        accept, so that RMM, libcudf and Thrust take them, and the other way round.
 *
 * Header only: nothing but the C library is linked. Failures are exceptions: raffia::bad_alloc
 * where there is no memory, raffia::error for everything else; both carry the status and
 * raffia_last_error().
 *
 * **To RMM.** raffia::device_resource, raffia::host_resource and raffia::host_device_resource are
 * copyable values that share one resource, with the members that `cuda::mr::resource` of CCCL 3.1
 * and later asks for, and those of the concepts before it:
 *
 *     raffia::pool pool(options);
 *     rmm::mr::set_current_device_resource(raffia::device_resource(pool.resource()));
 *
 * The CCCL headers are included where they are found beside those of the CUDA runtime; define
 * `RAFFIA_NO_CCCL` before this header to leave them out. What they add are the two properties.
 *
 * **From RMM.** raffia::make_resource() wraps anything with those members:
 *
 *     raffia::resource ours = raffia::make_resource(rmm::mr::pool_memory_resource{...}, "cuda:0");
 */
#ifndef RAFFIA_RAFFIA_HPP
#define RAFFIA_RAFFIA_HPP

#include <raffia/raffia.h>

#include <cstddef>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#if !defined(RAFFIA_NO_CCCL) && defined(__has_include)
#if __has_include(<cuda/memory_resource>) && __has_include(<cuda_runtime_api.h>)
#ifndef LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE /* what CCCL before 3.1 wants */
#endif
#include <cuda/memory_resource>
#include <cuda/stream_ref>
/** Whether resources have the properties of CCCL. */
#define RAFFIA_HAS_CCCL 1
#endif
#endif
#ifndef RAFFIA_HAS_CCCL
#define RAFFIA_HAS_CCCL 0
#endif

/** @addtogroup cpp
 *  @{ */

namespace raffia
{

/* ---- failures ------------------------------------------------------------------------------- */

/** A failure that is not want of memory. */
class error : public std::runtime_error
{
  public:
    explicit error(raffia_status status) : std::runtime_error(raffia_last_error()), status_(status)
    {
    }
    raffia_status status() const noexcept
    {
        return status_;
    }

  private:
    raffia_status status_;
};

/** There is no memory, of the device or for bookkeeping. */
class bad_alloc : public std::bad_alloc
{
  public:
    explicit bad_alloc(raffia_status status) : why_(raffia_last_error()), status_(status) {}
    const char *what() const noexcept override
    {
        return why_.what();
    }
    raffia_status status() const noexcept
    {
        return status_;
    }

  private:
    std::runtime_error why_; /* a text whose copies do not throw */
    raffia_status status_;
};

/** Throws what a status stands for; RAFFIA_OK throws nothing. */
inline void check(raffia_status status)
{
    if (status == RAFFIA_OK)
        return;
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY || status == RAFFIA_ERROR_OUT_OF_HOST_MEMORY)
        throw bad_alloc(status);
    throw error(status);
}

/* ---- owners --------------------------------------------------------------------------------- */

/** @cond a handle that is released at the end, and moved */
namespace detail
{
template <typename Handle, void (*release)(Handle *)> class unique_handle
{
  public:
    unique_handle() noexcept = default;
    explicit unique_handle(Handle *taken) noexcept : handle_(taken) {}
    unique_handle(unique_handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
    {
    }
    unique_handle &operator=(unique_handle &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    unique_handle(const unique_handle &) = delete;
    unique_handle &operator=(const unique_handle &) = delete;
    ~unique_handle()
    {
        if (handle_)
            release(handle_);
    }
    Handle *get() const noexcept
    {
        return handle_;
    }
    Handle *give() noexcept
    {
        return std::exchange(handle_, nullptr);
    }

  private:
    Handle *handle_ = nullptr;
};

/* A stream as CUDA and CCCL write it: a handle, or something whose get() gives one, or (RMM)
 * something with value(). */
template <typename Stream, typename = void> struct has_get : std::false_type {
};
template <typename Stream>
struct has_get<Stream, std::void_t<decltype(static_cast<void *>(std::declval<Stream>().get()))>>
    : std::true_type {
};

template <typename Stream> raffia_stream stream_handle(const Stream &stream) noexcept
{
    if constexpr (has_get<const Stream &>::value)
        return static_cast<raffia_stream>(stream.get());
    else if constexpr (std::is_null_pointer<Stream>::value)
        return nullptr;
    else if constexpr (std::is_pointer<Stream>::value)
        return static_cast<raffia_stream>(stream);
    else
        return static_cast<raffia_stream>(stream.value());
}
} /* namespace detail */
/** @endcond */

/** Where memory may be touched, as a type; see #raffia_resource_properties. */
struct device_access {
    static constexpr unsigned flag = RAFFIA_DEVICE_ACCESSIBLE; /**< as a flag */
};
/** The CPU may touch it. */
struct host_access {
    static constexpr unsigned flag = RAFFIA_HOST_ACCESSIBLE; /**< as a flag */
};

/**
 * An owner of a resource. Copies share it. Two are equal if memory of one may be freed through the
 * other.
 *
 * Streams are those of the resource's device: a `cudaStream_t`, a `cuda::stream_ref`, an
 * `rmm::cuda_stream_view`, or nullptr. deallocate() cannot throw, because it is called from
 * destructors; what was refused stays in raffia_last_error(), and nothing was changed.
 */
class resource
{
  public:
    /** Takes an owner over. */
    explicit resource(raffia_resource *taken) noexcept : owner_(taken) {}
    /** Makes an owner from a ref; raffia_resource_from_ref() says what that keeps alive. */
    explicit resource(raffia_resource_ref ref)
    {
        check(raffia_resource_from_ref(ref, &owner_));
    }
    resource(const resource &other) noexcept : owner_(raffia_resource_retain(other.owner_)) {}
    resource(resource &&other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
    resource &operator=(resource other) noexcept
    {
        std::swap(owner_, other.owner_);
        return *this;
    }
    ~resource()
    {
        raffia_resource_release(owner_);
    }

    raffia_resource *get() const noexcept
    {
        return owner_;
    }
    raffia_resource_ref ref() const noexcept
    {
        return raffia_resource_as_ref(owner_);
    }
    unsigned properties() const noexcept
    {
        return raffia_resource_properties_of(ref());
    }

    /** In the order of a stream; CCCL 3.1 and later. */
    template <typename Stream>
    void *allocate(Stream stream, std::size_t bytes, std::size_t alignment)
    {
        void *block = nullptr;
        check(raffia_allocate(ref(), detail::stream_handle(stream), bytes, alignment, &block));
        return block;
    }
    template <typename Stream>
    void deallocate(Stream stream, void *block, std::size_t bytes, std::size_t alignment) noexcept
    {
        give(detail::stream_handle(stream), block, bytes, alignment);
    }

    /** On the default stream. */
    void *allocate_sync(std::size_t bytes, std::size_t alignment = RAFFIA_DEFAULT_ALIGNMENT)
    {
        return allocate(nullptr, bytes, alignment);
    }
    void deallocate_sync(void *block, std::size_t bytes,
                         std::size_t alignment = RAFFIA_DEFAULT_ALIGNMENT) noexcept
    {
        give(nullptr, block, bytes, alignment);
    }

    /** The same, by the names of CCCL before 3.1. */
    void *allocate(std::size_t bytes, std::size_t alignment = RAFFIA_DEFAULT_ALIGNMENT)
    {
        return allocate_sync(bytes, alignment);
    }
    void deallocate(void *block, std::size_t bytes,
                    std::size_t alignment = RAFFIA_DEFAULT_ALIGNMENT) noexcept
    {
        give(nullptr, block, bytes, alignment);
    }
    template <typename Stream>
    void *allocate_async(std::size_t bytes, std::size_t alignment, Stream stream)
    {
        return allocate(stream, bytes, alignment);
    }
    template <typename Stream>
    void deallocate_async(void *block, std::size_t bytes, std::size_t alignment,
                          Stream stream) noexcept
    {
        give(detail::stream_handle(stream), block, bytes, alignment);
    }

    friend bool operator==(const resource &a, const resource &b) noexcept
    {
        return raffia_resource_is_equal(a.ref(), b.ref());
    }
    friend bool operator!=(const resource &a, const resource &b) noexcept
    {
        return !(a == b);
    }

  private:
    void give(raffia_stream stream, void *block, std::size_t bytes, std::size_t alignment) noexcept
    {
        const raffia_status refused = raffia_deallocate(ref(), stream, block, bytes, alignment);
        static_cast<void>(refused);
    }

    raffia_resource *owner_ = nullptr;
};

/** A resource whose type says where its memory may be touched, as CCCL's properties do. */
template <typename... Access> class typed_resource : public resource
{
  public:
    /** @throw std::invalid_argument if the memory may not be touched there */
    explicit typed_resource(resource owner) : resource(std::move(owner))
    {
        constexpr unsigned needed = (Access::flag | ... | 0u);
        if ((properties() & needed) != needed)
            throw std::invalid_argument("raffia: the memory of this resource may not be touched "
                                        "from where its type says");
    }

    friend bool operator==(const typed_resource &a, const typed_resource &b) noexcept
    {
        return static_cast<const resource &>(a) == static_cast<const resource &>(b);
    }
    friend bool operator!=(const typed_resource &a, const typed_resource &b) noexcept
    {
        return !(a == b);
    }

#if RAFFIA_HAS_CCCL
    template <typename Self,
              std::enable_if_t<std::is_same<Self, typed_resource>::value &&
                                   (std::is_same<Access, device_access>::value || ...),
                               int> = 0>
    friend constexpr void get_property(const Self &, ::cuda::mr::device_accessible) noexcept
    {
    }
    template <typename Self, std::enable_if_t<std::is_same<Self, typed_resource>::value &&
                                                  (std::is_same<Access, host_access>::value || ...),
                                              int> = 0>
    friend constexpr void get_property(const Self &, ::cuda::mr::host_accessible) noexcept
    {
    }
#endif
};

using device_resource = typed_resource<device_access>;                   /**< for device code */
using host_resource = typed_resource<host_access>;                       /**< for the CPU */
using host_device_resource = typed_resource<host_access, device_access>; /**< for both */

/* ---- the other way round -------------------------------------------------------------------- */

/** @cond a C++ resource behind a table of operations */
namespace detail
{
#if RAFFIA_HAS_CCCL
using native_stream = ::cuda::stream_ref;
inline native_stream to_native(raffia_stream stream)
{
    return native_stream(static_cast<cudaStream_t>(stream));
}
#else
using native_stream = raffia_stream;
inline native_stream to_native(raffia_stream stream)
{
    return stream;
}
#endif

template <typename Upstream, typename = void> struct is_ordered : std::false_type {
};
template <typename Upstream>
struct is_ordered<Upstream, std::void_t<decltype(std::declval<Upstream &>().allocate(
                                std::declval<native_stream>(), std::size_t(), std::size_t()))>>
    : std::true_type {
};
template <typename Upstream, typename = void> struct is_ordered_by_old_names : std::false_type {
};
template <typename Upstream>
struct is_ordered_by_old_names<Upstream,
                               std::void_t<decltype(std::declval<Upstream &>().allocate_async(
                                   std::size_t(), std::size_t(), std::declval<native_stream>()))>>
    : std::true_type {
};

template <typename Upstream> struct adapted {
    Upstream upstream;
    unsigned properties;
    std::string device;

    static raffia_status allocate(void *context, raffia_stream stream, std::size_t bytes,
                                  std::size_t alignment, void **address_p) noexcept
    {
        auto &up = static_cast<adapted *>(context)->upstream;
        try {
            if constexpr (is_ordered<Upstream>::value)
                *address_p = up.allocate(to_native(stream), bytes, alignment);
            else if constexpr (is_ordered_by_old_names<Upstream>::value)
                *address_p = up.allocate_async(bytes, alignment, to_native(stream));
            else
                *address_p = up.allocate(bytes, alignment);
            return RAFFIA_OK;
        } catch (const std::bad_alloc &) {
            return RAFFIA_ERROR_OUT_OF_MEMORY;
        } catch (...) {
            return RAFFIA_ERROR_DRIVER;
        }
    }
    static raffia_status deallocate(void *context, raffia_stream stream, void *address,
                                    std::size_t bytes, std::size_t alignment) noexcept
    {
        auto &up = static_cast<adapted *>(context)->upstream;
        if (!address)
            return RAFFIA_OK;
        try {
            if constexpr (is_ordered<Upstream>::value)
                up.deallocate(to_native(stream), address, bytes, alignment);
            else if constexpr (is_ordered_by_old_names<Upstream>::value)
                up.deallocate_async(address, bytes, alignment, to_native(stream));
            else
                up.deallocate(address, bytes, alignment);
            return RAFFIA_OK;
        } catch (...) {
            return RAFFIA_ERROR_DRIVER;
        }
    }
    static unsigned properties_of(void *context) noexcept
    {
        return static_cast<adapted *>(context)->properties;
    }
    static bool is_equal(void *context, void *other) noexcept
    {
        return context == other ||
               static_cast<adapted *>(context)->upstream == static_cast<adapted *>(other)->upstream;
    }
    static void release(void *context) noexcept
    {
        delete static_cast<adapted *>(context);
    }
    static bool device_of(void *context, char name[RAFFIA_DEVICE_NAME_MAX]) noexcept
    {
        const std::string &device = static_cast<adapted *>(context)->device;
        if (device.empty())
            return false;
        name[device.copy(name, RAFFIA_DEVICE_NAME_MAX - 1)] = '\0';
        return true;
    }
    static const raffia_resource_ops *table() noexcept
    {
        static const raffia_resource_ops ops = [] {
            raffia_resource_ops filled = {};
            filled.struct_size = sizeof filled;
            filled.allocate = allocate;
            filled.deallocate = deallocate;
            filled.properties = properties_of;
            filled.is_equal = is_equal;
            filled.release = release;
            filled.device = device_of;
            return filled;
        }();
        return &ops;
    }
};

/* What the type says, where there are CCCL's properties; 0 otherwise. */
template <typename Upstream> constexpr unsigned properties_by_type()
{
#if RAFFIA_HAS_CCCL
    return (::cuda::has_property<Upstream, ::cuda::mr::device_accessible>
                ? unsigned(RAFFIA_DEVICE_ACCESSIBLE)
                : 0u) |
           (::cuda::has_property<Upstream, ::cuda::mr::host_accessible>
                ? unsigned(RAFFIA_HOST_ACCESSIBLE)
                : 0u);
#else
    return 0u;
#endif
}
} /* namespace detail */
/** @endcond */

/**
 * Makes a resource of Raffia out of a C++ one, which is moved into it: a value that is copied by
 * sharing, as RMM's and CCCL's are, or a ref whose target outlives it. It has
 * allocate(stream, bytes, alignment) and deallocate(stream, block, bytes, alignment), or those of
 * CCCL before 3.1, or std::pmr's, which no stream orders.
 *
 * Each call makes an owner of its own, which counts its blocks: two are not equal, even if what is
 * in them is; copies of one are.
 *
 * @param upstream   the resource
 * @param device     whose memory it is, see device.h; nullptr = not known
 * @param properties #raffia_resource_properties; 0 = what its type says, or device-accessible
 */
template <typename Upstream>
resource make_resource(Upstream upstream, const char *device = nullptr, unsigned properties = 0)
{
    if (!properties)
        properties = detail::properties_by_type<Upstream>();
    if (!properties)
        properties = RAFFIA_DEVICE_ACCESSIBLE;
    using state = detail::adapted<Upstream>;
    auto *made = new state{std::move(upstream), properties, device ? device : ""};
    raffia_resource *owner = nullptr;
    const raffia_status status = raffia_resource_create(state::table(), made, &owner);
    if (status)
        delete made;
    check(status);
    return resource(owner);
}

/* ---- what else is owned --------------------------------------------------------------------- */

/** A pool. Copies share it. */
class pool
{
  public:
    explicit pool(const raffia_pool_options &options)
    {
        check(raffia_pool_create(&options, &pool_));
    }
    /** Takes an owner over. */
    explicit pool(raffia_pool *taken) noexcept : pool_(taken) {}
    pool(const pool &other) noexcept : pool_(raffia_pool_retain(other.pool_)) {}
    pool(pool &&other) noexcept : pool_(std::exchange(other.pool_, nullptr)) {}
    pool &operator=(pool other) noexcept
    {
        std::swap(pool_, other.pool_);
        return *this;
    }
    ~pool()
    {
        raffia_pool_release(pool_);
    }
    raffia_pool *get() const noexcept
    {
        return pool_;
    }
    raffia_pool_stats stats() const
    {
        raffia_pool_stats now;
        check(raffia_pool_query(pool_, &now));
        return now;
    }
    /** Its blocks as a resource, which keeps it. */
    raffia::resource resource() const
    {
        raffia_resource *owner = nullptr;
        check(raffia_pool_resource_from_pool(pool_, &owner));
        return raffia::resource(owner);
    }

  private:
    raffia_pool *pool_ = nullptr;
};

/** A buffer; see buffer.h. */
class buffer
{
  public:
    buffer(std::size_t bytes, const raffia_buffer_options &options)
    {
        raffia_buffer *made = nullptr;
        check(raffia_buffer_create(&options, bytes, &made));
        handle_ = handle(made);
    }
    /** In memory of a resource. */
    buffer(std::size_t bytes, const resource &from, raffia_stream stream = nullptr)
        : buffer(bytes, options_of(from, stream))
    {
    }
    raffia_buffer *get() const noexcept
    {
        return handle_.get();
    }
    void *data() const noexcept
    {
        return raffia_buffer_data(get());
    }
    std::size_t size() const noexcept
    {
        return raffia_buffer_size(get());
    }
    void resize(std::size_t bytes)
    {
        check(raffia_buffer_resize(get(), bytes));
    }
    /** It is not owned any more. */
    raffia_buffer *release() noexcept
    {
        return handle_.give();
    }

  private:
    using handle = detail::unique_handle<raffia_buffer, raffia_buffer_destroy>;

    static raffia_buffer_options options_of(const resource &from, raffia_stream stream) noexcept
    {
        raffia_buffer_options options = {};
        options.struct_size = sizeof options;
        options.resource = from.ref();
        options.stream = stream;
        return options;
    }

    handle handle_;
};

/** A model that was loaded; see load.h. */
class model
{
  public:
    explicit model(const char *path, const raffia_load_options *options = nullptr)
    {
        raffia_model *loaded = nullptr;
        check(raffia_model_load(path, options, &loaded));
        handle_ = handle(loaded);
    }
    raffia_model *get() const noexcept
    {
        return handle_.get();
    }
    std::size_t tensor_count() const noexcept
    {
        return raffia_model_tensor_count(get());
    }
    /** By name; nullptr if there is none. */
    const raffia_tensor *tensor(const char *name) const noexcept
    {
        return raffia_model_tensor(get(), name);
    }
    const raffia_tensor *tensor(std::size_t index) const noexcept
    {
        return raffia_model_tensor_at(get(), index);
    }

  private:
    using handle = detail::unique_handle<raffia_model, raffia_model_release>;
    handle handle_;
};

/** Another current resource, until the end of the block; see current_resource.h. */
class scoped_current_resource
{
  public:
    explicit scoped_current_resource(const resource &now, const char *device = nullptr)
    {
        check(raffia_resource_scope_begin(device, now.get(), &scope_));
    }
    scoped_current_resource(const scoped_current_resource &) = delete;
    scoped_current_resource &operator=(const scoped_current_resource &) = delete;
    ~scoped_current_resource()
    {
        raffia_resource_scope_end(&scope_);
    }

  private:
    raffia_resource_scope scope_;
};

/** The current resource of a device, with an owner of the caller's. */
inline resource current_resource(const char *device = nullptr)
{
    raffia_resource *owner = nullptr;
    check(raffia_current_resource_acquire(device, &owner));
    return resource(owner);
}

} /* namespace raffia */

/** @} */

#endif
