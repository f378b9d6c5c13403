/* Calls that fail, one after the other, and processes that fork. */
#include "driver/sim/sim.h"
#include "life/child.h"
#include "resource/conformance.h"
#include "support/fault_loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static raffia_status live(void *context)
{
    const struct subject *subject = context;
    raffia_resource *resource;
    raffia_status status = subject->maker->make(subject->device->name, &resource);
    if (status)
        return status;
    const raffia_resource_ref ref = raffia_ref(resource);
    const size_t sizes[] = {100, 8 * KIB, 3 * MIB};
    void *blocks[3] = {0};
    for (size_t i = 0; i < 3 && !status; i++)
        status = raffia_allocate(ref, NULL, sizes[i], i == 1 ? 256 : 0, &blocks[i]);
    raffia_resource_release(resource);
    for (size_t i = 0; i < 3; i++)
        if (blocks[i]) {
            /* A free may need the device, which may fail then; the second try must not. */
            raffia_status freed =
                raffia_deallocate(ref, NULL, blocks[i], sizes[i], i == 1 ? 256 : 0);
            if (freed) {
                status = freed;
                assert_ok(raffia_deallocate(ref, NULL, blocks[i], sizes[i], i == 1 ? 256 : 0));
            }
        }
    return status;
}

void any_call_may_fail_and_nothing_is_lost(void **state)
{
    struct subject *subject = *state;
    /* It would give memory back to help the ones of the loop. */
    raffia_resource_release(subject->resource);
    subject->resource = NULL;
    assert_true(fault_loop(live, subject, 3000) > 0);
}

static int be_a_child(const struct subject *subject, void *block)
{
    void *none = NULL;
    const bool users = strcmp(subject->maker->name, "program's own") == 0;
    if (raffia_allocate(subject->ref, NULL, KIB, 0, &none) != RAFFIA_ERROR_FORKED || none)
        return 1;
    if (!users && !strstr(raffia_last_error(), "parent"))
        return 2;
    if (raffia_deallocate(subject->ref, NULL, block, 4 * KIB, 0))
        return 3;
    /* Questions are answered or refused, and nobody waits for a lock that is held by a thread that
     * is not there. */
    char stack[4096];
    raffia_block found;
    size_t bytes = 0;
    (void)raffia_resource_print_stack(subject->ref, stack, sizeof stack);
    (void)raffia_resource_properties_of(subject->ref);
    (void)!raffia_resource_find(subject->ref, block, &found);
    (void)!raffia_resource_usable_size(subject->ref, block, &bytes);
    (void)!raffia_resource_walk(subject->ref, count_block, &bytes);
    raffia_resource_release(subject->resource);
    raffia_resource *own;
    void *mine;
    if (subject->maker->traits & STREAMS_ONLY)
        return 0; /* no device of that kind is left to it */
    if (subject->maker->make("host", &own) ||
        raffia_allocate(raffia_ref(own), NULL, KIB, 0, &mine) ||
        raffia_deallocate(raffia_ref(own), NULL, mine, KIB, 0))
        return 4;
    raffia_resource_release(own);
    return 0;
}

static atomic_bool stop;

static void *keep_busy(void *argument)
{
    const struct subject *subject = argument;
    char stack[4096];
    while (!atomic_load(&stop)) {
        void *block;
        if (raffia_allocate(subject->ref, NULL, KIB, 0, &block) ||
            raffia_deallocate(subject->ref, NULL, block, KIB, 0))
            return "failed";
        (void)raffia_resource_print_stack(subject->ref, stack, sizeof stack);
    }
    return NULL;
}

static void fork_often(const struct subject *subject, void *block)
{
    for (int i = 0; i < 10; i++) {
        const pid_t child = fork(); /* maybe while the other thread holds a lock */
        assert_true(child >= 0);
        if (child == 0) {
            alarm(60);
            _exit(be_a_child(subject, block));
        }
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
    }
}

void a_child_neither_uses_nor_ends_its_parents(void **state)
{
    struct subject *subject = *state;
    pthread_t thread;
    void *wrong = NULL;
    if (subject->driver == &sim_driver)
        return; /* its threads are not the child's */
    void *block = must_allocate(subject, 4 * KIB, 0);
    assert_true(mark(subject, block, 4 * KIB));
    atomic_store(&stop, false);
    /* A sanitizer's own locks may be what the thread holds, and the child waits for them. */
    if (!SANITIZED)
        assert_int_equal(pthread_create(&thread, NULL, keep_busy, subject), 0);
    fork_often(subject, block);
    atomic_store(&stop, true);
    if (!SANITIZED)
        pthread_join(thread, &wrong);
    assert_null(wrong);
    assert_true(is_marked(subject, block, 4 * KIB));
    must_free(subject, block, 4 * KIB, 0);
}
