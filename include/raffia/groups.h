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
 * @brief The table of operations that any allocator can fill in.
 *
 * @defgroup load Loading models
 * @brief Model files, from disk to their final place.
 */
#ifndef RAFFIA_GROUPS_H
#define RAFFIA_GROUPS_H

#endif
