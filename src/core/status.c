/* The words for statuses, and the version. */
#include <raffia/status.h>
#include <raffia/version.h>

#define STRING_OF_VALUE(x) #x
#define STRING_OF(x)       STRING_OF_VALUE(x)

const char *raffia_status_name(raffia_status status)
{
    switch (status) {
#define STATUS_NAME(name, code, text)                                                              \
    case name:                                                                                     \
        return #name;
        RAFFIA_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
    }
    return "RAFFIA_UNKNOWN";
}

const char *raffia_status_text(raffia_status status)
{
    switch (status) {
#define STATUS_TEXT(name, code, text)                                                              \
    case name:                                                                                     \
        return text;
        RAFFIA_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}

int raffia_version(void)
{
    return RAFFIA_VERSION;
}

const char *raffia_version_text(void)
{
    return STRING_OF(RAFFIA_VERSION_MAJOR) "." STRING_OF(RAFFIA_VERSION_MINOR) "." STRING_OF(
        RAFFIA_VERSION_PATCH);
}
