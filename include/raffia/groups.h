/**
 * @file groups.h
 * @brief The groups of the reference manual. Documentation only: nothing needs to include it.
 *
 * @defgroup base Basics
 * @brief Conventions of all headers, and the version.
 *
 * @defgroup status Status and errors
 * @brief Status codes, and the sentence behind the last failure of a thread.
 *
 * @defgroup log Log
 * @brief Level and destination of messages.
 *
 * @defgroup configuration Configuration
 * @brief Settings of the process, from environment and program.
 *
 * @defgroup device Devices
 * @brief Whose memory is handed out, and the order of work on it.
 *
 * @defgroup pages Pages
 * @brief Page sizes asked for, got and verified; fallbacks and their reasons.
 *
 * @defgroup pool Pools
 * @brief Blocks out of verified huge pages.
 *
 * @defgroup umd Huge pages by device number
 * @brief The five calls of a user-mode driver, over one pool for each device.
 *
 * @defgroup memory_resource Memory resources
 * @brief Owners and refs, the table of operations that any allocator can fill in, and the resources
 *        that memory comes from.
 *
 * @defgroup resource_adaptor Resource adaptors
 * @brief Resources that stand in front of another: limits, statistics, leaks, logs.
 *
 * @defgroup current_resource Current device resource
 * @brief What memory comes from when nobody says: one for each device of the process.
 *
 * @defgroup memory_resources Output and temporary
 * @brief A pair of resources for calls that allocate on behalf of their caller.
 *
 * @defgroup pinned_memory Pinned memory
 * @brief The process's pinned host resource, and what it is used for.
 *
 * @defgroup copy Copies
 * @brief Between host and device, one or many at once, by a kernel or by the driver.
 *
 * @defgroup buffer Buffers
 * @brief Memory that keeps its resource, stream and device with it.
 *
 * @defgroup dlpack DLPack
 * @brief The exchange format of tensors between frameworks.
 *
 * @defgroup load Loading models
 * @brief Model files, from disk to their final place.
 *
 * @defgroup cpp C++
 * @brief Owners, and resources that RMM, libcudf and Thrust take.
 */
#ifndef RAFFIA_GROUPS_H
#define RAFFIA_GROUPS_H

#endif
