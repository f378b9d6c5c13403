/* The model in a directory. */
#ifndef LOAD_CATALOG_DIRECTORY_H
#define LOAD_CATALOG_DIRECTORY_H

#include <raffia/status.h>

/*
 * The file that stands for the directory: model.safetensors.index.json, else model.safetensors,
 * else the only *.safetensors file there is; else an error that lists what was found. Hidden files
 * do not count. The path is to be freed with core_free().
 */
raffia_status catalog_directory_find(const char *directory, char **path_p);

/*
 * Says at info level which *.safetensors files of the directory are not among `names` (in order,
 * bytewise): they are ignored. That they cannot be listed is no error.
 */
void catalog_directory_log_strays(const char *directory, const char *const *names, size_t count);

#endif
