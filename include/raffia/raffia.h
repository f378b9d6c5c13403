/**
 * @file raffia.h
 * @brief All of Raffia's public headers.
 */
#ifndef RAFFIA_RAFFIA_H
#define RAFFIA_RAFFIA_H

#include <raffia/adaptors.h>
#include <raffia/base.h>
#include <raffia/buffer.h>
#include <raffia/config.h>
#include <raffia/copy.h>
#include <raffia/current_resource.h>
#include <raffia/device.h>
#include <raffia/dlpack.h>
#include <raffia/dtype.h>
#include <raffia/hint.h>
#include <raffia/load.h>
#include <raffia/log.h>
#include <raffia/memory_resources.h>
#include <raffia/pages.h>
#include <raffia/pinned.h>
#include <raffia/pool.h>
#include <raffia/resource.h>
#include <raffia/resources.h>
#include <raffia/status.h>
#include <raffia/stream.h>
#include <raffia/umd.h>
#include <raffia/version.h>

#endif
