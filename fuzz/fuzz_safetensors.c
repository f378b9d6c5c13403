/* Any bytes as a safetensors file: what is accepted must keep the promises of catalog.h. */
#include "load/catalog.h"
#include "load/catalog_build.h"
#include "load/catalog_invariants.h"
#include "load/safetensors.h"

#include <raffia/log.h>

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes);

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "it does not hold that %s\n", what);
    abort();
}

static bool accepts(const unsigned char *data, size_t bytes, bool lenient)
{
    size_t header_bytes;
    if (safetensors_header_bytes("fuzz", data, bytes, CATALOG_HEADER_BYTES_MAX, &header_bytes))
        return false;
    must(header_bytes <= bytes - SAFETENSORS_LENGTH_BYTES, "the header lies inside the file");
    struct catalog *catalog = catalog_create();
    if (!catalog)
        return false;
    bool accepted = !safetensors_parse("fuzz", data + SAFETENSORS_LENGTH_BYTES, header_bytes, bytes,
                                       lenient, 0, catalog) &&
                    !catalog_arrange(catalog);
    if (accepted) {
        const char *broken = catalog_broken_promise(catalog, bytes);
        must(!broken, broken);
        uint64_t data_bytes = 0;
        for (size_t i = 0; i < catalog->tensor_count; i++)
            data_bytes += catalog->tensors[i].bytes;
        uint64_t described = SAFETENSORS_LENGTH_BYTES + header_bytes + data_bytes;
        must(lenient ? described <= bytes : described == bytes, "tensors cover the file once");
    }
    catalog_close(catalog);
    return accepted;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes)
{
    raffia_log_set_level(RAFFIA_LOG_OFF);
    bool strictly = accepts(data, bytes, false);
    must(!strictly || accepts(data, bytes, true), "lenient accepts what strict accepts");
    if (!strictly)
        accepts(data, bytes, true);
    return 0;
}
