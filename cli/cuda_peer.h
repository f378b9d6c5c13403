/*
 * What a CUDA program without Raffia would call: the CUDA driver's own allocators, to compare with.
 * The library itself uses none of these.
 */
#ifndef CLI_CUDA_PEER_H
#define CLI_CUDA_PEER_H

#include "driver/driver.h"

struct cuda_peer;

/*
 * The allocators of a device's driver, with its context made current in the calling thread, which
 * must be the one to use the peer. UNSUPPORTED where the device is not a CUDA device.
 */
raffia_status cuda_peer_open(struct driver_device device, struct cuda_peer **peer_p);
void cuda_peer_close(struct cuda_peer *peer);

/* cuMemAllocAsync() and cuMemFreeAsync(), what cudaMallocAsync() and cudaFreeAsync() call. What is
 * freed stays with the driver: the pool's release threshold is raised for as long as the peer is
 * open. */
raffia_status cuda_peer_alloc_async(struct cuda_peer *peer, driver_stream stream, size_t bytes,
                                    void **address_p);
raffia_status cuda_peer_free_async(struct cuda_peer *peer, driver_stream stream, void *address);

/* cuMemAlloc() and cuMemFree(): cudaMalloc() and cudaFree(). */
raffia_status cuda_peer_alloc(struct cuda_peer *peer, size_t bytes, void **address_p);
raffia_status cuda_peer_free(struct cuda_peer *peer, void *address);

/* cuMemHostAlloc() and cuMemFreeHost(): cudaHostAlloc() and cudaFreeHost(). */
raffia_status cuda_peer_host_alloc(struct cuda_peer *peer, size_t bytes, void **address_p);
raffia_status cuda_peer_host_free(struct cuda_peer *peer, void *address);

#endif
