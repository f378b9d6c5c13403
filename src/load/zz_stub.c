#include <raffia/device.h>
#include <raffia/pool.h>
raffia_status raffia_pool_create(const raffia_pool_options *o, raffia_pool **p)
{
    (void)o, (void)p;
    return RAFFIA_ERROR_UNSUPPORTED;
}
raffia_status raffia_pool_query(raffia_pool *o, raffia_pool_stats *p)
{
    (void)o, (void)p;
    return RAFFIA_ERROR_UNSUPPORTED;
}
raffia_status raffia_pool_alloc(raffia_pool *o, size_t b, size_t a, void **p)
{
    (void)o, (void)p;
    (void)a, (void)b;
    return RAFFIA_ERROR_UNSUPPORTED;
}
raffia_status raffia_pool_free(raffia_pool *o, void *p)
{
    (void)o, (void)p;
    return RAFFIA_ERROR_UNSUPPORTED;
}
raffia_pool *raffia_pool_retain(raffia_pool *o)
{
    return o;
}
void raffia_pool_release(raffia_pool *o)
{
    (void)o;
}
raffia_status raffia_device_query(const char *o, raffia_device_info *i)
{
    (void)o, (void)i;
    return RAFFIA_ERROR_UNSUPPORTED;
}
