#include "policy/parameters.h"

#include "core/settings.h"

void policy_parameters_for(const raffia_device_info *device, struct policy_parameters *parameters)
{
    struct core_device_rule rule;
    core_setting_device_rule(device->model, &rule);
    *parameters = (struct policy_parameters){
        .threshold =
            rule.has_threshold ? rule.threshold : core_setting_size(CORE_SETTING_HUGE_THRESHOLD),
        .page_size = core_setting_size(CORE_SETTING_PAGE_SIZE),
        .pool_share = rule.has_share ? rule.share : core_setting_share(CORE_SETTING_POOL_SHARE),
        .pool_maximum =
            rule.has_maximum ? rule.maximum : core_setting_size(CORE_SETTING_POOL_MAXIMUM),
    };
}
