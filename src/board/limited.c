#include "board/limited.h"

void limited_note(struct binding_log *log, const struct gpu_sample *sample)
{
    const uint64_t power = GPU_REASON_SW_POWER_CAP | GPU_REASON_HW_POWER_BRAKE;
    struct binding_read read = {
        .at_ns = sample->at_ns,
        .counts = sample->has & GPU_HAS_LIMITED,
        .reasons = sample->has & GPU_HAS_REASONS,
        .limited_ns = sample->limited_ns,
        .limited = sample->has & GPU_HAS_REASONS && sample->reasons & power,
    };

    if (read.counts || read.reasons)
        binding_add(log, &read);
}

uint32_t limited_wants(const struct gpu_info *info, bool searches)
{
    return searches && !(info->abilities & GPU_CAN_LIMITED) ? GPU_HAS_REASONS : 0;
}
