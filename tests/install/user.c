/* What a user of the library writes first; it is also compiled as C++. */
#include <raffia/raffia.h>

#include <stdio.h>

int main(void)
{
    raffia_device_info host;
    if (raffia_version() != RAFFIA_VERSION || raffia_device_query("host", &host) != RAFFIA_OK) {
        fprintf(stderr, "%s\n", raffia_last_error());
        return 1;
    }
    printf("%s %s %s\n", raffia_version_text(), host.name,
           host.total_bytes > 0 ? "works" : "fails");
    return 0;
}
