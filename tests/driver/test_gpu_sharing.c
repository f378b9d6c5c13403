/* Memory of a real GPU in another process, and on another GPU of the machine. */
#include "driver/cuda/library.h"
#include "driver/gpu_test.h"
#include "support/cmocka.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define D   cuda_driver
#define MIB ((size_t)1 << 20)

#define CHUNK (32 * MIB)

/* A chunk mapped in a range of its own. */
struct piece {
    void *at;
    driver_chunk chunk;
};

static struct driver_chunk_spec spec(enum driver_handle_type handle)
{
    return (struct driver_chunk_spec){.bytes = CHUNK,
                                      .page_size = 2 * MIB,
                                      .kind = RAFFIA_PAGE_DEVICE,
                                      .numa_node = -1,
                                      .threads = 1,
                                      .handle = handle};
}

static raffia_status place(int device, driver_chunk chunk, struct piece *piece)
{
    raffia_fallback_reason reason;
    piece->chunk = chunk;
    raffia_status status = D.range_reserve(device, CHUNK, 2 * MIB, &piece->at);
    return status ? status : D.chunk_map(device, chunk, piece->at, &reason);
}

static void take_away(int device, const struct piece *piece)
{
    assert_ok(D.chunk_unmap(device, piece->chunk, piece->at));
    assert_ok(D.chunk_destroy(device, piece->chunk));
    assert_ok(D.range_release(device, piece->at, CHUNK));
}

static raffia_status read_byte(int device, const void *at, unsigned char *value)
{
    raffia_status status = D.copy(device, NULL, value, at, 1);
    return status ? status : D.stream_wait(device, NULL);
}

static raffia_status write_bytes(int device, void *at, unsigned char value)
{
    raffia_status status = D.fill(device, NULL, at, value, CHUNK);
    return status ? status : D.stream_wait(device, NULL);
}

/* ---- another process --------------------------------------------------------------------------*/

static const char child_word[] = "import";

/* Imports the descriptor, checks what is there and writes something else. */
static int be_the_other_process(int fd)
{
    uint64_t handle[DRIVER_HANDLE_WORDS] = {(uint64_t)fd};
    const struct driver_chunk_spec wanted = spec(DRIVER_HANDLE_FD);
    driver_chunk chunk;
    struct piece piece;
    unsigned char value = 0;
    if (D.chunk_import(0, DRIVER_HANDLE_FD, handle, &wanted, &chunk) || place(0, chunk, &piece) ||
        read_byte(0, (char *)piece.at + CHUNK - 1, &value) || value != 0x3c ||
        write_bytes(0, piece.at, 0x4d)) {
        printf("the other process read %#x: %s\n", value, raffia_last_error());
        return 1;
    }
    return 0; /* what it imported goes with it */
}

static void another_process_maps_an_exported_chunk(void **state)
{
    (void)state;
    const struct driver_chunk_spec wanted = spec(DRIVER_HANDLE_FD);
    uint64_t handle[DRIVER_HANDLE_WORDS];
    driver_chunk chunk;
    raffia_fallback_reason reason;
    struct piece piece;
    unsigned char value = 0;
    assert_ok(D.chunk_create(0, &wanted, &chunk, &reason));
    assert_ok(place(0, chunk, &piece));
    assert_ok(write_bytes(0, piece.at, 0x3c));
    assert_ok(D.chunk_export(0, chunk, DRIVER_HANDLE_FD, handle));
    const int fd = (int)handle[0];
    assert_int_equal(fcntl(fd, F_SETFD, 0), 0); /* to be inherited */
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", fd);
        execl("/proc/self/exe", "/proc/self/exe", child_word, number, (char *)NULL);
        _exit(100);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    close(fd);
    assert_ok(read_byte(0, piece.at, &value));
    assert_int_equal(value, 0x4d);
    take_away(0, &piece);
}

/* ---- another GPU ------------------------------------------------------------------------------*/

/* Whether somebody in this process has opened the device's primary context. */
static bool is_open(int device)
{
    CUresult (*get_state)(CUdevice device, unsigned *flags, int *active);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *address = library ? dlsym(library, "cuDevicePrimaryCtxGetState") : NULL;
    assert_non_null(address);
    memcpy(&get_state, &address, sizeof address);
    CUdevice handle;
    unsigned flags;
    int active = -1;
    assert_int_equal(cuda_library.cuDeviceGet(&handle, device), CUDA_SUCCESS);
    assert_int_equal(get_state(handle, &flags, &active), CUDA_SUCCESS);
    return active != 0;
}

static bool has_two_devices(void)
{
    int count = 0;
    assert_ok(D.devices(&count));
    if (count < 2)
        print_message("[  PASSED OVER ] this machine has one GPU\n");
    return count >= 2;
}

/* Runs first, while the process has opened nothing. */
static void only_the_device_named_is_opened(void **state)
{
    (void)state;
    if (!has_two_devices())
        skip();
    assert_false(is_open(0));
    assert_false(is_open(1));
    raffia_device_info info;
    assert_ok(D.device_info(1, &info));
    assert_string_equal(info.name, "cuda:1");
    assert_true(is_open(1));
    assert_false(is_open(0));
}

static void a_peer_uses_memory_it_was_given(void **state)
{
    (void)state;
    if (!has_two_devices())
        skip();
    const struct driver_chunk_spec wanted = spec(DRIVER_HANDLE_NONE);
    driver_chunk chunk;
    raffia_fallback_reason reason;
    struct piece piece;
    unsigned char value = 0;
    void *other;
    assert_ok(D.chunk_create(0, &wanted, &chunk, &reason));
    assert_ok(place(0, chunk, &piece));
    assert_ok(write_bytes(0, piece.at, 0x71));
    assert_ok(D.mem_alloc(1, CHUNK, &other));
    printf("a peer's fill before it was given access: %s\n",
           D.fill(1, NULL, piece.at, 1, 4096) ? raffia_last_error() : "done");
    assert_ok(D.set_access(0, piece.at, CHUNK, 1, true));
    assert_ok(D.copy(1, NULL, other, piece.at, CHUNK));
    assert_ok(D.stream_wait(1, NULL));
    assert_ok(read_byte(1, (char *)other + CHUNK - 1, &value));
    assert_int_equal(value, 0x71);
    assert_ok(write_bytes(1, piece.at, 0x72));
    assert_ok(read_byte(0, (char *)piece.at + CHUNK - 1, &value));
    assert_int_equal(value, 0x72);
    assert_ok(D.context_state(0));
    assert_ok(D.context_state(1));
    assert_ok(D.mem_free(1, other, CHUNK));
    take_away(0, &piece);
}

static void memory_is_copied_from_one_device_to_the_other(void **state)
{
    (void)state;
    if (!has_two_devices())
        skip();
    void *blocks[2];
    unsigned char value = 0;
    for (int i = 0; i < 2; i++) {
        assert_ok(D.mem_alloc(i, CHUNK, &blocks[i]));
        assert_ok(write_bytes(i, blocks[i], (unsigned char)(i + 1)));
    }
    assert_ok(D.copy(0, NULL, blocks[1], blocks[0], CHUNK));
    assert_ok(D.stream_wait(0, NULL));
    assert_ok(read_byte(1, (char *)blocks[1] + CHUNK - 1, &value));
    assert_int_equal(value, 1);
    for (int i = 0; i < 2; i++)
        assert_ok(D.mem_free(i, blocks[i], CHUNK));
}

int main(int count, char **arguments)
{
    if (!gpu_test_has_device())
        return GPU_TEST_SKIPPED;
    if (count == 3 && !strcmp(arguments[1], child_word))
        return be_the_other_process(atoi(arguments[2]));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_device_named_is_opened),
        cmocka_unit_test(another_process_maps_an_exported_chunk),
        cmocka_unit_test(a_peer_uses_memory_it_was_given),
        cmocka_unit_test(memory_is_copied_from_one_device_to_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
