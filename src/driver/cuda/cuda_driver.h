/*
 * NVIDIA GPUs, through the driver library that comes with the kernel module. It is opened when
 * somebody first asks for a GPU, and never linked: a machine without one notices nothing.
 *
 * Memory that came through this driver belongs to the primary context of its device, which the CUDA
 * runtime and the frameworks use too. It is retained when a device is first used, and kept: other
 * libraries may be using it when we are done. A call makes it current in its thread and puts back
 * what was current before. A device that nobody names is never touched.
 *
 * RAFFIA_CUDA_LIBRARY names the library to open instead of libcuda.so.1; "none" is none at all.
 */
#ifndef DRIVER_CUDA_CUDA_DRIVER_H
#define DRIVER_CUDA_CUDA_DRIVER_H

#include "driver/driver.h"

extern const struct driver cuda_driver;

/*
 * Whether this machine has a GPU that the process can use. Where there is none the answer costs one
 * failed dlopen(), once. A driver that is there and does not work is warned of, once, and counts as
 * none. In a forked child it answers what its parent found out.
 */
bool cuda_is_present(void);

/* Room for an address on the PCI bus. */
#define CUDA_PCI_ID_MAX 32

/* Where a device is on the bus, as the kernel's files name it ("0000:17:00.0"); "" if the driver
 * cannot tell. */
raffia_status cuda_device_pci_id(int index, char id[static CUDA_PCI_ID_MAX]);

#endif
